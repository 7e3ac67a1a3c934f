//! Maps failures to Python exceptions.

use glimmer_client::boundary::Panicked;
use glimmer_client::{ConnectError, CountError, GetError, RemoveError, StoreError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::io;

/// Declares the exceptions with their documentation, and [`add_to`], which registers them.
macro_rules! exceptions {
    ($($name:ident: $text:expr,)*) => {
        create_exception!(
            glimmer,
            Error,
            PyException,
            concat!(
                "Base class of all failures. One that get_many raises has the values that were ",
                "found in `found`, and the failure of each other key in `failed`."
            )
        );
        $(create_exception!(glimmer, $name, Error, $text);)*

        /// Registers the exceptions.
        pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            let error = py.get_type::<Error>();
            error.setattr("found", py.None())?;
            error.setattr("failed", py.None())?;
            module.add("Error", error)?;
            module.add("SocketError", socket_error(py)?)?;
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

/// The class SocketError. It has two base classes, which `create_exception` does not give it.
fn socket_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let bases = (py.get_type::<Error>(), py.get_type::<PyOSError>());
        let contents = PyDict::new(py);
        contents.set_item("__module__", "glimmer")?;
        contents.set_item("__doc__", "The socket failed.")?;
        let class = py
            .get_type::<PyType>()
            .call1(("SocketError", bases, contents))?;
        PyResult::Ok(class.downcast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}

/// The exception for a failure of the socket, or what a signal handler raised while the call
/// waited.
fn raise_socket(error: io::Error, words: String) -> PyErr {
    let is_pythons = error.get_ref().is_some_and(|inner| inner.is::<PyErr>());
    if is_pythons {
        return error.into();
    }
    Python::attach(|py| match (socket_error(py), error.raw_os_error()) {
        (Ok(class), Some(number)) => PyErr::from_type(class.clone(), (number, words)),
        (Ok(class), None) => PyErr::from_type(class.clone(), (words,)),
        (Err(error), _) => error,
    })
}

/// The same failure again, in an exception that has what became of the other keys.
pub fn with_others<'py>(
    failure: &Bound<'py, PyAny>,
    found: Bound<'py, PyDict>,
    failed: Bound<'py, PyDict>,
) -> PyResult<PyErr> {
    let words = failure.getattr("args")?.downcast_into::<PyTuple>()?;
    let raised = failure.get_type().call1(words)?;
    raised.setattr("found", found)?;
    raised.setattr("failed", failed)?;
    Ok(PyErr::from_value(raised))
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
            ConnectError::Socket(error) => raise_socket(error, words),
            ConnectError::NoAddress { .. } => NoAddress::new_err(words),
        }
    }
}

impl Raise for io::Error {
    fn raise(self) -> PyErr {
        let words = self.to_string();
        raise_socket(self, words)
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
                    $error::Socket(error) => raise_socket(error, words),
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
    /// A signal handler used the client while a call of its own thread was waiting.
    Inside,
    /// A bug in this library made the call panic.
    Panicked,
    /// What a signal handler raised while the call waited for its turn.
    Raised(PyErr),
    /// The client's failure.
    Failed(E),
}

impl<E: Raise> Raise for Ended<E> {
    fn raise(self) -> PyErr {
        match self {
            Ended::Closed => Closed::new_err("the client has been closed"),
            Ended::Inside => inside(),
            Ended::Panicked => InternalError::new_err(Panicked.to_string()),
            Ended::Raised(error) => error,
            Ended::Failed(error) => error.raise(),
        }
    }
}

/// The exception for [`Ended::Inside`]. Python's own files raise the same.
pub fn inside() -> PyErr {
    PyRuntimeError::new_err("a signal handler cannot use the client whose call it interrupts")
}
