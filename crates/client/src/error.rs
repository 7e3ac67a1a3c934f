//! How each operation fails. What is an answer, such as that there is no item, is none of these.
//!
//! `Debug` prints the message, as `Display` does, so that an error which `main` returns tells what
//! happened and where.

use crate::Failure;
use std::net::SocketAddr;
use std::{fmt, io};

/// Why a server cannot be used.
#[derive(thiserror::Error)]
pub enum ConnectError {
    /// The name stands for no address, or there is no server at all.
    #[error("{server} has no address: {reason}")]
    NoAddress {
        /// What was to be resolved.
        server: String,
        /// What the resolver says.
        reason: io::Error,
    },
    /// The system gave no socket.
    #[error("no socket for the native protocol: {0}")]
    Socket(#[from] io::Error),
    /// Nothing listens at the server's UDP port; its host said so.
    #[error("nothing listens at UDP port {0}: is a server running there with --native-port?")]
    Refused(SocketAddr),
    /// Nothing answered in time.
    #[error(
        "{0} does not answer: is it the server's --native-port, and do UDP datagrams get through?"
    )]
    Silent(SocketAddr),
}

/// A failure, and the server that it concerns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    pub failure: Failure,
    pub server: SocketAddr,
}

/// What any operation may fail with.
macro_rules! operation {
    ($(#[$doc:meta])* $name:ident { $($variant:ident: $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(thiserror::Error)]
        pub enum $name {
            $(#[doc = $text] #[error($text)] $variant,)*
            /// The key is empty, or longer than 250 bytes.
            #[error("a key has 1 to 250 bytes")]
            Key,
            /// There was no answer in time.
            #[error("{0} did not answer in time")]
            Silent(SocketAddr),
            /// Nothing listens at the server's UDP port. A change that was sent more than once may
            /// have been made before.
            #[error("nothing listens at UDP port {0}: has the server stopped?")]
            Refused(SocketAddr),
            /// The server has let several deadlines pass, and was not asked again yet.
            #[error("{0} has been silent for too long, and was not asked")]
            Away(SocketAddr),
            /// The server was asked again and again and would not take the request, which it has not carried out.
            #[error("{0} is overloaded")]
            Overloaded(SocketAddr),
            /// The server remembers the changes of as many clients as it has room for, and this
            /// client is not among them. It has not carried out the change.
            #[error("{0} has no room to remember another writing client")]
            TooManyWriters(SocketAddr),
            /// The server understood something else than was asked.
            #[error("the server and this client do not understand one another")]
            Protocol,
            /// The socket failed, or has ended with the runtime of its client. A change may have been made.
            #[error("the socket failed: {0}")]
            Socket(#[from] io::Error),
        }

        impl From<Failed> for $name {
            fn from(Failed { failure, server }: Failed) -> $name {
                match failure {
                    Failure::Key => $name::Key,
                    Failure::Refused => $name::Refused(server),
                    Failure::Away => $name::Away(server),
                    Failure::Overloaded => $name::Overloaded(server),
                    Failure::TooManyWriters => $name::TooManyWriters(server),
                    Failure::Ended => $name::Socket(ended()),
                    Failure::Silent | Failure::Forgotten => $name::Silent(server),
                    Failure::Protocol | Failure::TooLarge => $name::Protocol,
                }
            }
        }

        debug_is_the_message!($name);
    };
}

macro_rules! debug_is_the_message {
    ($name:ident) => {
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, out)
            }
        }
    };
}

debug_is_the_message!(ConnectError);

impl ConnectError {
    /// A name that cannot be resolved.
    pub(crate) fn no_address(server: impl fmt::Debug, reason: io::Error) -> ConnectError {
        ConnectError::NoAddress {
            server: format!("{server:?}"),
            reason,
        }
    }

    /// No server was given.
    pub(crate) fn no_server() -> ConnectError {
        ConnectError::NoAddress {
            server: "an empty list of servers".to_owned(),
            reason: io::ErrorKind::InvalidInput.into(),
        }
    }
}

/// The resolver knows the name, and no address of it.
pub(crate) fn none_known() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the resolver returned none")
}

fn ended() -> io::Error {
    let words = "the runtime that the client was made on has ended";
    io::Error::new(io::ErrorKind::NotConnected, words)
}

operation! {
    /// Why a value was not read.
    GetError {}
}

operation! {
    /// Why a value was not stored. After [`StoreError::Silent`] it may have been: only the answer is known to be missing.
    StoreError {
        TooLarge: "the item is larger than the server takes",
        OutOfMemory: "the server has no memory for it",
    }
}

operation! {
    /// Why nothing was counted. After [`CountError::Silent`] it may have been.
    CountError {
        NotANumber: "the value is no decimal number",
        OutOfMemory: "the server has no memory for it",
    }
}

operation! {
    /// Why an item was not removed or touched. After [`RemoveError::Silent`] it may have been.
    RemoveError {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: SocketAddr = SocketAddr::new(
        std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
        11300,
    );

    /// What `main` prints of an `Err` is its `Debug`.
    #[test]
    fn an_error_that_main_returns_tells_the_whole_story() {
        let refused: Box<dyn std::error::Error> = Box::new(ConnectError::Refused(SERVER));
        let story = format!("{refused:?}");
        assert_eq!(story, refused.to_string());
        assert!(story.contains("192.0.2.1:11300") && story.contains("--native-port"));

        let reason = io::Error::other("failed to lookup");
        let unknown = ConnectError::no_address(("nowhere", 11300), reason);
        assert_eq!(
            format!("{unknown:?}"),
            "(\"nowhere\", 11300) has no address: failed to lookup"
        );
        for failure in [
            Failure::Silent,
            Failure::Refused,
            Failure::Away,
            Failure::Overloaded,
        ] {
            let failed = Failed {
                failure,
                server: SERVER,
            };
            let story = format!("{:?}", StoreError::from(failed));
            assert!(story.contains("192.0.2.1:11300"), "{story}");
        }
    }
}
