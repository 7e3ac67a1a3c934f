//! Failures as Python's exceptions.

use glimmer_client::boundary::Panicked;
use glimmer_client::{ConnectError, CountError, GetError, RemoveError, StoreError};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// Declares the exceptions with their documentation, and [`add_to`], which makes them known.
macro_rules! exceptions {
    ($($name:ident: $text:literal,)*) => {
        create_exception!(glimmer, Error, PyException, "Any failure. That there is no item is not one.");
        $(create_exception!(glimmer, $name, Error, $text);)*

        /// Makes the exceptions known.
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
    TooLarge: "The item is larger than the server takes.",
    OutOfMemory: "The server has no memory for it.",
    NotANumber: "The value is not a decimal number.",
    NoAddress: "The server's name has no address.",
    Refused: "Nothing listens at the server's native port. A change that was sent more than once may have been made.",
    Silent: "There was no answer in time. A change may have been made, once.",
    Away: "The server has let several deadlines pass one after another, and was not asked again yet.",
    Overloaded: "The server would not take the request however often it was asked, and has not carried it out.",
    TooManyWriters: "The server has no room to remember another writing client. The change was not made.",
    Closed: "The client has been closed.",
    InternalError: "A bug in this library. The client cannot be used any more; a change may have been made.",
}

/// What is raised for a failure. Neither the exception nor the failures are this crate's, and so it is a trait of its own and not the standard library's.
pub trait Raise {
    /// Its exception, with its words.
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

/// The failures that every operation has, and those of its own.
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

/// How a call of the client ended that has no answer.
pub enum Ended<E> {
    /// The client had been closed.
    Closed,
    /// There is a bug in this library.
    Panicked,
    /// The client says why.
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
