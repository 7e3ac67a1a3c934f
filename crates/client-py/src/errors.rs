//! Failures as Python's exceptions.

use glimmer_client::{ConnectError, CountError, GetError, RemoveError, StoreError};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(glimmer, Error, PyException);
create_exception!(glimmer, InvalidKey, Error);
create_exception!(glimmer, TooLarge, Error);
create_exception!(glimmer, OutOfMemory, Error);
create_exception!(glimmer, NotANumber, Error);
create_exception!(glimmer, Silent, Error);
create_exception!(glimmer, Away, Error);
create_exception!(glimmer, Overloaded, Error);
create_exception!(glimmer, TooManyWriters, Error);

/// Makes the exceptions known.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("InvalidKey", py.get_type::<InvalidKey>())?;
    module.add("TooLarge", py.get_type::<TooLarge>())?;
    module.add("OutOfMemory", py.get_type::<OutOfMemory>())?;
    module.add("NotANumber", py.get_type::<NotANumber>())?;
    module.add("Silent", py.get_type::<Silent>())?;
    module.add("Away", py.get_type::<Away>())?;
    module.add("Overloaded", py.get_type::<Overloaded>())?;
    module.add("TooManyWriters", py.get_type::<TooManyWriters>())
}

/// What is raised for a failure. Neither the exception nor the failures are this crate's, and so it is a trait of its own and not the standard library's.
pub trait Raise: std::fmt::Display {
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
            ConnectError::Silent => Silent::new_err(words),
            ConnectError::Socket(error) => error.into(),
            ConnectError::NoAddress => Error::new_err(words),
        }
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
                    $error::Silent => Silent::new_err(words),
                    $error::Away => Away::new_err(words),
                    $error::Overloaded => Overloaded::new_err(words),
                    $error::TooManyWriters => TooManyWriters::new_err(words),
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
