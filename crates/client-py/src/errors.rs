//! Maps failures to Python exceptions.

use glimmer_client::boundary::Panicked;
use glimmer_client::{ConnectError, CountError, GetError, RemoveError, StoreError};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// Declares the exceptions with their documentation, and [`add_to`], which registers them.
macro_rules! exceptions {
    ($($name:ident: $text:expr,)*) => {
        create_exception!(glimmer, Error, PyException, "Base class of all failures.");
        $(create_exception!(glimmer, $name, Error, $text);)*

        /// Registers the exceptions.
        pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            module.add("Error", py.get_type::<Error>())?;
            $(module.add(stringify!($name), py.get_type::<$name>())?;)*
            Ok(())
        }
    };
}

exceptions! {
    InvalidKey: "A key has 1 to 250 bytes.",
    TooLarge: "The item is larger than the server accepts.",
    OutOfMemory: "The server has no memory for the item.",
    NotANumber: "The value is not a decimal number.",
    NoAddress: "The server's name has no address.",
    Refused: concat!(
        "Nothing listens at the server's native port. ",
        "If a change was sent more than once, it may have been executed."
    ),
    Silent: "No answer arrived in time. A change may have been executed once.",
    Away: "The server has missed several deadlines in a row and was not asked.",
    Overloaded: "The server refused the request for lack of room and has not executed it.",
    TooManyWriters: concat!(
        "The server has no room to remember another client's changes. ",
        "The change was not executed."
    ),
    Closed: "The client has been closed.",
    InternalError: concat!(
        "A bug in this library. The client can no longer be used; ",
        "a change may have been executed."
    ),
}

/// The exception for a failure. Neither the failures nor the exception type belong to this crate,
/// so it cannot implement the standard library's `From`.
pub trait Raise {
    /// The exception with its message.
    fn raise(self) -> PyErr;
}

/// [`Raise::raise`], for `map_err`.
pub fn raise(failure: impl Raise) -> PyErr {
    failure.raise()
}

impl Raise for ConnectError {
    fn raise(self) -> PyErr {
        let words = self.to_string();
        match self {
            ConnectError::Silent(_) => Silent::new_err(words),
            ConnectError::Refused(_) => Refused::new_err(words),
            ConnectError::Socket(error) => error.into(),
            ConnectError::NoAddress { .. } => NoAddress::new_err(words),
        }
    }
}

impl Raise for std::io::Error {
    fn raise(self) -> PyErr {
        self.into()
    }
}

/// Converts the failures that every operation has, and an operation's own failures.
macro_rules! raise_operation {
    ($error:ident $(, $own:ident)*) => {
        impl Raise for $error {
            fn raise(self) -> PyErr {
                let words = self.to_string();
                match self {
                    $error::Key => InvalidKey::new_err(words),
                    $error::Silent(_) => Silent::new_err(words),
                    $error::Refused(_) => Refused::new_err(words),
                    $error::Away(_) => Away::new_err(words),
                    $error::Overloaded(_) => Overloaded::new_err(words),
                    $error::TooManyWriters(_) => TooManyWriters::new_err(words),
                    $error::Protocol => Error::new_err(words),
                    $error::Socket(error) => error.into(),
                    $($error::$own => $own::new_err(words),)*
                }
            }
        }
    };
}

raise_operation!(GetError);
raise_operation!(StoreError, TooLarge, OutOfMemory);
raise_operation!(CountError, NotANumber, OutOfMemory);
raise_operation!(RemoveError);

/// Why a call returned no answer.
pub enum Ended<E> {
    /// The client was closed before.
    Closed,
    /// A bug in this library made the call panic.
    Panicked,
    /// The client's failure.
    Failed(E),
}

impl<E: Raise> Raise for Ended<E> {
    fn raise(self) -> PyErr {
        match self {
            Ended::Closed => Closed::new_err("the client has been closed"),
            Ended::Panicked => InternalError::new_err(Panicked.to_string()),
            Ended::Failed(error) => error.raise(),
        }
    }
}
