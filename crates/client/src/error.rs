//! The errors of each operation. Regular answers, such as "there is no item", are not errors.
//!
//! `Debug` prints the same message as `Display`, so that an error returned from `main` is readable.

use crate::Failure;
use std::net::SocketAddr;
use std::{fmt, io};

/// Why a server cannot be used.
#[derive(thiserror::Error)]
pub enum ConnectError {
    /// The name has no address, or no server was given.
    #[error("{server} has no address: {reason}")]
    NoAddress {
        /// The name to be resolved.
        server: String,
        /// The resolver's error.
        reason: io::Error,
    },
    /// The socket, or the device of another transport, could not be opened.
    #[error("no socket for the native protocol: {0}")]
    Socket(#[from] io::Error),
    /// Nothing listens at the server's UDP port: its host refused the datagram.
    #[error(
        "nothing listens at UDP port {0}: is a server running there with --native-port, and \
         without TLS?"
    )]
    Refused(SocketAddr),
    /// No answer arrived in time.
    #[error(
        "{0} does not answer: is it the server's --native-port, and do UDP datagrams get through?"
    )]
    Silent(SocketAddr),
}

/// A failure and the server that it concerns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    pub failure: Failure,
    pub server: SocketAddr,
}

/// Defines the error of an operation: the failures that every operation has, and its own.
macro_rules! operation {
    ($(#[$doc:meta])* $name:ident { $($variant:ident: $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(thiserror::Error)]
        pub enum $name {
            $(#[doc = $text] #[error($text)] $variant,)*
            /// The key is empty, or longer than 250 bytes.
            #[error("a key has 1 to 250 bytes")]
            Key,
            /// No answer arrived in time.
            #[error("{0} did not answer in time")]
            Silent(SocketAddr),
            /// Nothing listens at the server's UDP port. A change that was sent more than once, or
            /// while other requests were in flight, may have been executed.
            #[error("nothing listens at UDP port {0}: has the server stopped?")]
            Refused(SocketAddr),
            /// The server has missed several deadlines and is not being asked for the moment.
            #[error("{0} has been silent for too long, and was not asked")]
            Away(SocketAddr),
            /// The server refused the request for lack of room each time. It has not executed the
            /// request.
            #[error("{0} is overloaded")]
            Overloaded(SocketAddr),
            /// The server has no room to remember another client's changes. It has not executed the
            /// change.
            #[error("{0} has no room to remember another client's changes")]
            TooManyWriters(SocketAddr),
            /// The server did not understand the request, or the client did not understand the
            /// answer.
            #[error("the server and this client do not understand each other")]
            Protocol,
            /// The socket failed, or it ended with the client's runtime. A change may have been
            /// executed.
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

    /// The list of servers is empty.
    pub(crate) fn no_server() -> ConnectError {
        ConnectError::NoAddress {
            server: "the list of servers".to_owned(),
            reason: io::Error::new(io::ErrorKind::InvalidInput, "it is empty"),
        }
    }
}

/// The resolver knows the name but returns no address.
pub(crate) fn none_known() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the resolver returned none")
}

fn ended() -> io::Error {
    let words = "the runtime that the client was made on has ended";
    io::Error::new(io::ErrorKind::NotConnected, words)
}

operation! {
    /// Why a read failed.
    GetError {}
}

operation! {
    /// Why a store failed. After [`StoreError::Silent`], the item may still have been stored: only
    /// the answer is missing.
    StoreError {
        TooLarge: "the item is larger than the server accepts",
        OutOfMemory: "the server has no memory for the item",
    }
}

operation! {
    /// Why an increment or decrement failed. After [`CountError::Silent`], it may still have been
    /// executed.
    CountError {
        NotANumber: "the value is not a decimal number",
        OutOfMemory: "the server has no memory for the item",
    }
}

operation! {
    /// Why a delete or touch failed. After [`RemoveError::Silent`], it may still have been
    /// executed.
    RemoveError {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: SocketAddr = SocketAddr::new(
        std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
        11300,
    );

    /// For an `Err` returned from `main`, Rust prints `Debug`.
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
