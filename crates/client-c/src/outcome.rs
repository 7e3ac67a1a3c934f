//! The outcome of a request as a number.

use glimmer_client::{ConnectError, CountError, GetError, RemoveError, StoreError};
use std::ffi::{CStr, c_char};

/// The outcome of a request. The first three are answers; every value from GLIMMER_OUTCOME_KEY on
/// is a failure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operation was executed.
    Ok = 0,
    /// There is no item.
    NotFound = 1,
    /// The condition for storing was not met: there is an item, none, or one with a different CAS
    /// unique.
    NotStored = 2,
    /// The key is empty, or longer than 250 bytes.
    Key = 16,
    /// The item is larger than the server accepts.
    TooLarge = 17,
    /// The server has no memory for the item.
    OutOfMemory = 18,
    /// The value is not a decimal number.
    NotANumber = 19,
    /// No answer arrived in time. A change may have been executed.
    Silent = 20,
    /// The server refused the request for lack of room each time. It has not executed the request.
    Overloaded = 21,
    /// The server did not understand the request, or the client did not understand the answer.
    Protocol = 22,
    /// The socket failed.
    Socket = 23,
    /// The server's name has no address, or no server was given.
    NoAddress = 24,
    /// An argument is null, not valid text, or out of range.
    Argument = 25,
    /// The server has missed several deadlines and is not being asked for the moment.
    Away = 26,
    /// The server has no room to remember another client's changes. The change was not executed.
    TooManyWriters = 27,
    /// Nothing listens at the server's native port. If a change was sent more than once, it may
    /// have been executed.
    Refused = 28,
    /// A bug in this library. The client can only be freed; a change may have been executed.
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
            Outcome::TooLarge => c"the item is larger than the server accepts",
            Outcome::OutOfMemory => c"the server has no memory for the item",
            Outcome::NotANumber => c"the value is not a decimal number",
            Outcome::Silent => c"the server did not answer in time",
            Outcome::Overloaded => c"the server is overloaded",
            Outcome::Protocol => c"the server and this client do not understand each other",
            Outcome::Socket => c"the socket failed",
            Outcome::NoAddress => c"the server's name has no address",
            Outcome::Argument => c"an argument is missing or invalid",
            Outcome::Away => c"the server has been silent for too long and was not asked",
            Outcome::TooManyWriters => {
                c"the server has no room to remember another client's changes"
            }
            Outcome::Refused => c"nothing listens at the server's native port",
            Outcome::Internal => c"a bug in the client library; the client can no longer be used",
        }
    }
}

/// The text of a glimmer_outcome: NUL-terminated, not to be freed.
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

/// Converts the failures that every operation has, and an operation's own failures.
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
