//! What became of a request, as a number.

use glimmer_client::{ConnectError, CountError, GetError, RemoveError, StoreError};
use std::ffi::{CStr, c_char};

/// What became of a request. The first three are answers; everything from GLIMMER_OUTCOME_KEY on is a failure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Ok = 0,
    /// There is no item.
    NotFound = 1,
    /// There is an item where there was to be none, or none or another where there was to be one.
    NotStored = 2,
    /// The key is empty, or longer than 250 bytes.
    Key = 16,
    /// The item is larger than the server takes.
    TooLarge = 17,
    /// The server has no memory for it.
    OutOfMemory = 18,
    /// The value is no decimal number.
    NotANumber = 19,
    /// There was no answer in time. A change may have been made.
    Silent = 20,
    /// The server was asked again and again and would not take the request, which it has not carried out.
    Overloaded = 21,
    /// The server and this client do not understand one another.
    Protocol = 22,
    /// The socket failed.
    Socket = 23,
    /// The server's name has no address, or there is no server.
    NoAddress = 24,
    /// An argument is null, no text where there is to be text, or a number that means nothing.
    Argument = 25,
    /// The server has let several deadlines pass, and was not asked again yet.
    Away = 26,
    /// The server has no room to remember another writing client. The change was not made.
    TooManyWriters = 27,
    /// Nothing listens at the server's native port. A change that was sent more than once may have been made.
    Refused = 28,
    /// A bug in this library. The client can only be freed; a change may have been made.
    Internal = 29,
}

impl Outcome {
    const ALL: [Outcome; 17] = [
        Outcome::Ok,
        Outcome::NotFound,
        Outcome::NotStored,
        Outcome::Key,
        Outcome::TooLarge,
        Outcome::OutOfMemory,
        Outcome::NotANumber,
        Outcome::Silent,
        Outcome::Overloaded,
        Outcome::Protocol,
        Outcome::Socket,
        Outcome::NoAddress,
        Outcome::Argument,
        Outcome::Away,
        Outcome::TooManyWriters,
        Outcome::Refused,
        Outcome::Internal,
    ];

    fn of_number(number: u32) -> Option<Outcome> {
        Self::ALL.into_iter().find(|&known| known as u32 == number)
    }

    fn text(self) -> &'static CStr {
        match self {
            Outcome::Ok => c"done",
            Outcome::NotFound => c"no item",
            Outcome::NotStored => c"not stored",
            Outcome::Key => c"a key has 1 to 250 bytes",
            Outcome::TooLarge => c"the item is larger than the server takes",
            Outcome::OutOfMemory => c"the server has no memory for it",
            Outcome::NotANumber => c"the value is no decimal number",
            Outcome::Silent => c"the server did not answer in time",
            Outcome::Overloaded => c"the server is overloaded",
            Outcome::Protocol => c"the server and this client do not understand one another",
            Outcome::Socket => c"the socket failed",
            Outcome::NoAddress => c"the server's name has no address",
            Outcome::Argument => c"an argument is missing or means nothing",
            Outcome::Away => c"the server has been silent for too long, and was not asked",
            Outcome::TooManyWriters => c"the server has no room to remember another writing client",
            Outcome::Refused => c"nothing listens at the server's native port",
            Outcome::Internal => c"a bug in the client library; the client cannot be used any more",
        }
    }
}

/// A glimmer_outcome in words, which end with a zero and are not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn glimmer_outcome_text(outcome: u32) -> *const c_char {
    let text = Outcome::of_number(outcome).map_or(c"no outcome of this library", Outcome::text);
    text.as_ptr()
}

impl From<ConnectError> for Outcome {
    fn from(error: ConnectError) -> Outcome {
        match error {
            ConnectError::NoAddress { .. } => Outcome::NoAddress,
            ConnectError::Socket(_) => Outcome::Socket,
            ConnectError::Refused(_) => Outcome::Refused,
            ConnectError::Silent(_) => Outcome::Silent,
        }
    }
}

/// The failures that every operation has, and those of its own.
macro_rules! from_operation {
    ($error:ident $(, $own:ident)*) => {
        impl From<$error> for Outcome {
            fn from(error: $error) -> Outcome {
                match error {
                    $error::Key => Outcome::Key,
                    $error::Silent(_) => Outcome::Silent,
                    $error::Refused(_) => Outcome::Refused,
                    $error::Away(_) => Outcome::Away,
                    $error::Overloaded(_) => Outcome::Overloaded,
                    $error::TooManyWriters(_) => Outcome::TooManyWriters,
                    $error::Protocol => Outcome::Protocol,
                    $error::Socket(_) => Outcome::Socket,
                    $($error::$own => Outcome::$own,)*
                }
            }
        }
    };
}

from_operation!(GetError);
from_operation!(StoreError, TooLarge, OutOfMemory);
from_operation!(CountError, NotANumber, OutOfMemory);
from_operation!(RemoveError);
