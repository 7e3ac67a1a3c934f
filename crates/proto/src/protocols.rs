//! Every protocol, named once: what connections may speak, how the answer to a request for a key is
//! written, and how the answer to a command without a key is.
//!
//! A new protocol for connections is a parser ([`Speak`](crate::Speak)), the words of its replies
//! ([`Emit`](crate::outcome::Emit)) and of its commands without a key
//! ([`Converse`](crate::control::Converse)), and one line in each of these tables. Nothing else
//! names a protocol. A table hands its lines to the macro that makes the type in question.

/// What connections may speak. The last is spoken by those whose first byte belongs to no other.
macro_rules! connections {
    ($make:ident) => {
        $make! {
            /// The binary protocol.
            Binary(crate::binary::Parser),
            /// RESP, the protocol of Redis.
            Resp(crate::resp::Parser);
            /// The text protocol, the meta commands included.
            Text(crate::text::Parser)
        }
    };
}

/// How requests say that they want to be answered: what borrows from the request, and what does
/// not.
macro_rules! forms {
    ($make:ident) => {
        $make! {
            /// A meta command: by the flags of its request.
            Meta(crate::meta::Flags);
            /// The classic text protocol.
            Text(crate::text::Reply),
            /// The binary protocol.
            Binary(crate::binary::Header),
            /// The native protocol.
            Native(crate::native::Form),
            /// RESP, the protocol of Redis.
            Resp(crate::resp::Form),
        }
    };
}

/// How commands without a key are answered in protocols that have words of their own for it.
macro_rules! dialects {
    ($make:ident) => {
        $make! {
            /// The binary protocol.
            Binary(crate::binary::Words),
            /// RESP, the protocol of Redis.
            Resp(crate::resp::Words),
        }
    };
}
