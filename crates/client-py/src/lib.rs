//! Floor 3: the client library for Python. `glimmer.pyi` describes it to type checkers;
//! `pip wheel crates/client-py` builds it.

mod arguments;
mod errors;

use arguments::{
    Key, Member, Value, away_after, cas, deadline, delta, expiry, expiry_ms, flags, native_port,
    no_expiry, one_of, retry,
};
use errors::{Ended, Raise, inside, raise, with_others};
use glimmer_client::boundary::{self, Guarded, Panicked, guard};
use glimmer_client::{Client as Native, ConnectError, Item as Found, Placement, Settings};
use parking_lot::{Mutex, MutexGuard};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict};
use rustix::process::getpid;
use rustix::thread::gettid;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often a call that waits for its turn looks for signals.
const CHECK: Duration = Duration::from_millis(50);

/// A value with its flags and CAS unique.
#[pyclass(frozen, get_all, module = "glimmer")]
struct Item {
    /// The value.
    value: Py<PyBytes>,
    /// The 32-bit flags stored with the value.
    flags: u32,
    /// The CAS unique for Client.compare_and_swap.
    cas: u64,
}

#[pymethods]
impl Item {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let value = self.value.bind(py).repr()?;
        let (flags, cas) = (self.flags, self.cas);
        Ok(format!("Item(value={value}, flags={flags}, cas={cas})"))
    }
}

/// A client of one server.
///
/// Keys are bytes, or str encoded as UTF-8; values are bytes. Expiry times follow memcached: 0
/// means never, up to 30 days counts seconds from now, and larger values are seconds since 1970.
///
/// Times are in seconds. A call raises Silent after `deadline` (2). After `away_after` (3) missed
/// deadlines in a row the server is away: calls raise Away at once, and one call per `retry` (5) is
/// sent as a probe. With away_after=0, no server is ever away.
///
/// A signal handler runs while a call waits, and what it raises ends the call. It cannot use the
/// client whose call it interrupts.
///
/// Threads may share a client; their calls take turns. After a fork, the parent and the child are
/// two clients. A client is closed by close(), at the end of a with statement, or when it is
/// garbage-collected.
#[pyclass(frozen, module = "glimmer")]
struct Client {
    /// `None` after the client was closed.
    native: Mutex<Option<Guarded<Native>>>,
    /// The thread that uses it (see [`this_thread`]), or 0.
    user: AtomicUsize,
    /// For `repr`.
    servers: String,
}

/// A client that this thread uses.
struct Used<'a> {
    native: MutexGuard<'a, Option<Guarded<Native>>>,
    user: &'a AtomicUsize,
}

impl Drop for Used<'_> {
    fn drop(&mut self) {
        self.user.store(0, Ordering::Relaxed);
    }
}

/// A number other than 0 that no other thread has.
fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

impl Client {
    fn connected(
        py: Python<'_>,
        servers: String,
        connect: impl FnOnce() -> Result<Native, ConnectError> + Send,
    ) -> PyResult<Client> {
        let connected = match py.detach(|| guard(connect)) {
            Ok(connected) => connected.map_err(Ended::Failed),
            Err(Panicked) => Err(Ended::Panicked),
        };
        Ok(Client {
            native: Mutex::new(Some(Guarded::new(connected.map_err(raise)?))),
            user: AtomicUsize::new(0),
            servers,
        })
    }

    /// Calls without holding the interpreter lock, so that other threads run while this one waits.
    fn call<R: Send, E: Raise + Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Native) -> Result<R, E> + Send,
    ) -> PyResult<R> {
        let called = py.detach(|| {
            let used = self.lock().map_err(Ended::Raised)?;
            let mut used = used.ok_or(Ended::Inside)?;
            let native = used.native.as_mut().ok_or(Ended::Closed)?;
            match native.call(call) {
                Ok(answer) => answer.map_err(Ended::Failed),
                Err(Panicked) => Err(Ended::Panicked),
            }
        });
        called.map_err(raise)
    }

    /// Waits until no other thread uses the client, and runs signal handlers meanwhile. Returns
    /// `None` in a signal handler that this thread runs while it waits for an answer: it holds the
    /// lock already.
    fn lock(&self) -> PyResult<Option<Used<'_>>> {
        let this_thread = this_thread();
        if self.user.load(Ordering::Relaxed) == this_thread {
            return Ok(None);
        }
        let native = loop {
            if let Some(native) = self.native.try_lock_for(CHECK) {
                break native;
            }
            check_signals()?;
        };
        self.user.store(this_thread, Ordering::Relaxed);
        let user = &self.user;
        Ok(Some(Used { native, user }))
    }
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (host, native_port, *, deadline = None, away_after = None, retry = None))]
    fn new(
        py: Python<'_>,
        host: String,
        #[pyo3(from_py_with = native_port)] native_port: u16,
        #[pyo3(from_py_with = deadline)] deadline: Option<u64>,
        #[pyo3(from_py_with = away_after)] away_after: Option<u32>,
        #[pyo3(from_py_with = retry)] retry: Option<u64>,
    ) -> PyResult<Client> {
        let settings = settings(deadline, away_after, retry, false);
        Client::connected(py, format!("{host}:{native_port}"), || {
            let member = glimmer_client::Member::of(host, native_port);
            Native::connect_to_all(&[member], Placement::Rendezvous, settings)
        })
    }

    /// Connects to several servers, each given by host, memcached port, native port and weight.
    ///
    /// Keys are placed as in libmemcached ("ketama", "ketama_weighted") or by "rendezvous" hashing.
    /// With eject, the keys of a server that is away are placed on the others until it is back.
    #[staticmethod]
    #[pyo3(signature = (members, placement = "ketama", *, deadline = None, away_after = None,
        retry = None, eject = false))]
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn connect_to_all(
        py: Python<'_>,
        members: Vec<Member>,
        placement: &str,
        #[pyo3(from_py_with = deadline)] deadline: Option<u64>,
        #[pyo3(from_py_with = away_after)] away_after: Option<u32>,
        #[pyo3(from_py_with = retry)] retry: Option<u64>,
        eject: bool,
    ) -> PyResult<Client> {
        let settings = settings(deadline, away_after, retry, eject);
        let chosen = match placement {
            "ketama" => Placement::Ketama,
            "ketama_weighted" => Placement::KetamaWeighted,
            "rendezvous" => Placement::Rendezvous,
            other => {
                return Err(PyValueError::new_err(format!(
                    "placement is 'ketama', 'ketama_weighted' or 'rendezvous', not '{other}'"
                )));
            }
        };
        let members: Vec<_> = members.into_iter().map(|Member(member)| member).collect();
        let names = members
            .iter()
            .map(|member| format!("{}:{}", member.host, member.native_port));
        let servers = names.collect::<Vec<_>>().join(", ");
        Client::connected(py, format!("{servers} by {placement}"), || {
            Native::connect_to_all(&members, chosen, settings)
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let is_closed = || PyResult::Ok(self.lock()?.is_some_and(|used| used.native.is_none()));
        let end = if py.detach(is_closed)? {
            ", closed"
        } else {
            ""
        };
        Ok(format!("<glimmer.Client {}{end}>", self.servers))
    }

    /// Closes the client's sockets. Later calls raise Closed; closing again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let closed = self.lock()?.ok_or_else(inside)?.native.take();
            let _ = guard(|| drop(closed));
            Ok(())
        })
    }

    fn __enter__(client: Py<Client>) -> Py<Client> {
        client
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        self.close(py)
    }

    /// The value of a key, or None if there is none.
    fn get(&self, py: Python<'_>, key: Key) -> PyResult<Option<Py<PyBytes>>> {
        let found = self.call(py, |client| client.get(&key.0))?;
        Ok(found.map(|item| PyBytes::new(py, &item.value).unbind()))
    }

    /// Like get, with flags and CAS unique.
    fn get_item(&self, py: Python<'_>, key: Key) -> PyResult<Option<Item>> {
        let found = self.call(py, |client| client.get_for_swap(&key.0))?;
        Ok(found.map(|Found { value, flags, cas }| Item {
            value: PyBytes::new(py, &value).unbind(),
            flags,
            cas,
        }))
    }

    /// The values of those keys that have one. The requests are sent together. In the result, a
    /// bytearray is bytes.
    ///
    /// If keys fail, it raises the failure of the first of them. The exception's `found` has the
    /// values of the others, and its `failed` the failure of each key.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let names = keys.iter().map(|key| key.extract::<Key>());
        let names = names.collect::<PyResult<Vec<_>>>()?;
        let answers = self.call(py, |client| {
            let names: Vec<&[u8]> = names.iter().map(|key| &key.0[..]).collect();
            client.get_many(&names)
        })?;
        let (found, failed) = (PyDict::new(py), PyDict::new(py));
        for ((key, name), answer) in keys.into_iter().zip(names).zip(answers) {
            let key = match key.is_instance_of::<PyByteArray>() {
                true => PyBytes::new(py, &name.0).into_any(),
                false => key,
            };
            match answer {
                Ok(Some(item)) => found.set_item(key, PyBytes::new(py, &item.value))?,
                Ok(None) => {}
                Err(error) => failed.set_item(key, error.raise().into_value(py))?,
            }
        }
        match failed.values().iter().next() {
            None => Ok(found),
            Some(first) => Err(with_others(&first, found, failed)?),
        }
    }

    /// Stores a value.
    #[pyo3(signature = (key, value, flags = 0, expiry = None, *, expiry_ms = None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Key,
        value: Value,
        #[pyo3(from_py_with = flags)] flags: u32,
        #[pyo3(from_py_with = expiry)] expiry: Option<u32>,
        #[pyo3(from_py_with = expiry_ms)] expiry_ms: Option<u32>,
    ) -> PyResult<()> {
        let expiry = one_of(expiry, expiry_ms)?.unwrap_or_default();
        self.call(py, |client| client.put(&key.0, &value.0, flags, expiry))
    }

    /// Stores a value only if the key has none. Returns whether it was stored.
    #[pyo3(signature = (key, value, flags = 0, expiry = None, *, expiry_ms = None))]
    fn add(
        &self,
        py: Python<'_>,
        key: Key,
        value: Value,
        #[pyo3(from_py_with = flags)] flags: u32,
        #[pyo3(from_py_with = expiry)] expiry: Option<u32>,
        #[pyo3(from_py_with = expiry_ms)] expiry_ms: Option<u32>,
    ) -> PyResult<bool> {
        let expiry = one_of(expiry, expiry_ms)?.unwrap_or_default();
        self.call(py, |client| client.add(&key.0, &value.0, flags, expiry))
    }

    /// Stores a value only if the key has one already. Returns whether it was stored.
    #[pyo3(signature = (key, value, flags = 0, expiry = None, *, expiry_ms = None))]
    fn replace(
        &self,
        py: Python<'_>,
        key: Key,
        value: Value,
        #[pyo3(from_py_with = flags)] flags: u32,
        #[pyo3(from_py_with = expiry)] expiry: Option<u32>,
        #[pyo3(from_py_with = expiry_ms)] expiry_ms: Option<u32>,
    ) -> PyResult<bool> {
        let expiry = one_of(expiry, expiry_ms)?.unwrap_or_default();
        self.call(py, |client| client.replace(&key.0, &value.0, flags, expiry))
    }

    /// Stores a value only if the current item has this CAS unique. Returns whether it was stored.
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the keywords of the call in Python"
    )]
    #[pyo3(signature = (key, cas, value, flags = 0, expiry = None, *, expiry_ms = None))]
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: Key,
        #[pyo3(from_py_with = cas)] cas: u64,
        value: Value,
        #[pyo3(from_py_with = flags)] flags: u32,
        #[pyo3(from_py_with = expiry)] expiry: Option<u32>,
        #[pyo3(from_py_with = expiry_ms)] expiry_ms: Option<u32>,
    ) -> PyResult<bool> {
        let expiry = one_of(expiry, expiry_ms)?.unwrap_or_default();
        self.call(py, |client| {
            client.compare_and_swap(&key.0, cas, &value.0, flags, expiry)
        })
    }

    /// Adds to a decimal number, wrapping at 2^64. Returns the new number, or None if there is no
    /// item.
    #[pyo3(signature = (key, delta = 1))]
    fn increment(
        &self,
        py: Python<'_>,
        key: Key,
        #[pyo3(from_py_with = delta)] delta: u64,
    ) -> PyResult<Option<u64>> {
        self.call(py, |client| client.increment(&key.0, delta))
    }

    /// Subtracts from a decimal number, stopping at zero. Returns the new number, or None if there
    /// is no item.
    #[pyo3(signature = (key, delta = 1))]
    fn decrement(
        &self,
        py: Python<'_>,
        key: Key,
        #[pyo3(from_py_with = delta)] delta: u64,
    ) -> PyResult<Option<u64>> {
        self.call(py, |client| client.decrement(&key.0, delta))
    }

    /// Deletes an item. Returns whether there was one.
    fn delete(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
        self.call(py, |client| client.delete(&key.0))
    }

    /// Sets an item's expiry time. Returns whether there is an item.
    #[pyo3(signature = (key, expiry = None, *, expiry_ms = None))]
    fn touch(
        &self,
        py: Python<'_>,
        key: Key,
        #[pyo3(from_py_with = expiry)] expiry: Option<u32>,
        #[pyo3(from_py_with = expiry_ms)] expiry_ms: Option<u32>,
    ) -> PyResult<bool> {
        let expiry = one_of(expiry, expiry_ms)?.ok_or_else(no_expiry)?;
        self.call(py, |client| client.touch(&key.0, expiry))
    }

    /// Panics, to test the effect of a bug in the library on a program.
    #[cfg(feature = "planted-panic")]
    fn _planted_panic(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |_| -> std::io::Result<()> { panic!("planted") })
    }
}

/// The defaults, except for the arguments that are given.
fn settings(
    deadline_us: Option<u64>,
    away_after: Option<u32>,
    retry_us: Option<u64>,
    eject: bool,
) -> Settings {
    let usual = Settings::default();
    Settings {
        deadline_us: deadline_us.unwrap_or(usual.deadline_us),
        retry_us: retry_us.unwrap_or(usual.retry_us),
        away_after: away_after.unwrap_or(usual.away_after),
        eject,
        ..usual
    }
}

/// Runs the handlers of signals that have arrived, if this is the main thread. Others have none to
/// run, and must not enter the interpreter while it shuts down.
fn check_signals() -> PyResult<()> {
    let is_main = gettid() == getpid();
    let checked = is_main.then(|| Python::try_attach(|py| py.check_signals()));
    // At the end, the interpreter takes in no thread.
    checked.flatten().unwrap_or(Ok(()))
}

/// A client of Glimmer's native protocol: each request goes straight to the core that owns its key,
/// over UDP.
///
///     with glimmer.Client("127.0.0.1", 11300) as client:
///         client.put("greeting", b"hello", expiry=60)
///         assert client.get("greeting") == b"hello"
#[pymodule]
fn glimmer(module: &Bound<'_, PyModule>) -> PyResult<()> {
    boundary::while_waiting(|| Ok(check_signals()?));
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Client>()?;
    module.add_class::<Item>()?;
    errors::add_to(module)
}
