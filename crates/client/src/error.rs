//! How each operation fails. What is an answer, such as that there is no item, is none of these.

use crate::Failure;
use std::io;

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name stands for no address.
    #[error("the server's name has no address")]
    NoAddress,
    /// There is no socket to be had.
    #[error("no socket: {0}")]
    Socket(#[from] io::Error),
    /// Nobody told the directory in time.
    #[error("the server does not answer: is --native-port this port?")]
    Silent,
}

/// What any operation may fail with.
macro_rules! operation {
    ($(#[$doc:meta])* $name:ident { $($variant:ident: $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, thiserror::Error)]
        pub enum $name {
            $(#[doc = $text] #[error($text)] $variant,)*
            /// The key is empty, or longer than 250 bytes.
            #[error("a key has 1 to 250 bytes")]
            Key,
            /// There was no answer in time.
            #[error("the server did not answer in time")]
            Silent,
            /// The server has let several deadlines pass, and was not asked again yet.
            #[error("the server has been silent for too long, and was not asked")]
            Away,
            /// The server was asked again and again and would not take the request, which it has not carried out.
            #[error("the server is overloaded")]
            Overloaded,
            /// The server remembers the changes of as many clients as it has room for, and this
            /// client is not among them. It has not carried out the change.
            #[error("the server has no room to remember another writing client")]
            TooManyWriters,
            /// The server understood something else than was asked.
            #[error("the server and this client do not understand one another")]
            Protocol,
            /// The socket failed, or has ended with the runtime of its client. A change may have been made.
            #[error("the socket failed: {0}")]
            Socket(#[from] io::Error),
        }

        impl From<Failure> for $name {
            fn from(failure: Failure) -> $name {
                match failure {
                    Failure::Key => $name::Key,
                    Failure::Away => $name::Away,
                    Failure::Overloaded => $name::Overloaded,
                    Failure::TooManyWriters => $name::TooManyWriters,
                    Failure::Ended => $name::Socket(ended()),
                    Failure::Silent | Failure::Forgotten => $name::Silent,
                    Failure::Protocol | Failure::TooLarge => $name::Protocol,
                }
            }
        }
    };
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
