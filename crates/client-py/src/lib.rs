//! Floor 3: the client library for Python. `glimmer.pyi` describes it; `pip wheel crates/client-py` builds it.

mod errors;

use errors::{Raise, raise};
use glimmer_client::{Client as Native, Item as Found, Member, Placement, Settings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A value with what was stored beside it.
#[pyclass(frozen, get_all)]
struct Item {
    value: Py<PyBytes>,
    flags: u32,
    cas: u64,
}

/// A client of one server or of several. Threads may share it; their calls take turns, and none holds the interpreter while it waits.
#[pyclass(frozen)]
struct Client(Mutex<Native>);

/// A key's bytes: those of a text are UTF-8.
#[derive(FromPyObject)]
enum Key<'py> {
    Bytes(Bound<'py, PyBytes>),
    Text(Bound<'py, PyString>),
}

impl Key<'_> {
    fn bytes(&self) -> PyResult<Vec<u8>> {
        Ok(match self {
            Key::Bytes(bytes) => bytes.as_bytes().to_vec(),
            Key::Text(text) => text.to_cow()?.into_owned().into_bytes(),
        })
    }
}

impl Client {
    /// Calls without the interpreter, so that other threads run while this one waits.
    fn call<R: Send, E: Raise + Send>(
        &self,
        py: Python<'_>,
        key: &Key<'_>,
        call: impl FnOnce(&mut Native, &[u8]) -> Result<R, E> + Send,
    ) -> PyResult<R> {
        let key = key.bytes()?;
        py.detach(|| call(&mut self.lock(), &key)).map_err(raise)
    }

    fn lock(&self) -> MutexGuard<'_, Native> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (host, native_port, *, deadline = None, away_after = None, retry = None))]
    fn new(
        py: Python<'_>,
        host: String,
        native_port: u16,
        deadline: Option<f64>,
        away_after: Option<u32>,
        retry: Option<f64>,
    ) -> PyResult<Client> {
        let settings = settings(deadline, away_after, retry, false)?;
        let connected = py.detach(|| Native::connect_with((host.as_str(), native_port), settings));
        Ok(Client(Mutex::new(connected.map_err(raise)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (members, placement = "ketama", *, deadline = None, away_after = None, retry = None, eject = false))]
    fn connect_to_all(
        py: Python<'_>,
        members: Vec<(String, u16, u16, u32)>,
        placement: &str,
        deadline: Option<f64>,
        away_after: Option<u32>,
        retry: Option<f64>,
        eject: bool,
    ) -> PyResult<Client> {
        let settings = settings(deadline, away_after, retry, eject)?;
        let placement = match placement {
            "ketama" => Placement::Ketama,
            "ketama_weighted" => Placement::KetamaWeighted,
            "rendezvous" => Placement::Rendezvous,
            other => return Err(PyValueError::new_err(format!("no placement: {other}"))),
        };
        let member = |(host, port, native_port, weight)| Member {
            host,
            port,
            native_port,
            weight,
        };
        let members: Vec<Member> = members.into_iter().map(member).collect();
        let connected = py.detach(|| Native::connect_to_all(&members, placement, settings));
        Ok(Client(Mutex::new(connected.map_err(raise)?)))
    }

    fn get(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<Py<PyBytes>>> {
        let found = self.call(py, &key, |client, key| client.get(key))?;
        Ok(found.map(|item| PyBytes::new(py, &item.value).unbind()))
    }

    fn get_item(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<Item>> {
        let found = self.call(py, &key, |client, key| client.get_for_swap(key))?;
        Ok(found.map(|Found { value, flags, cas }| Item {
            value: PyBytes::new(py, &value).unbind(),
            flags,
            cas,
        }))
    }

    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let bytes = keys.iter().map(|key| key.extract::<Key<'_>>()?.bytes());
        let bytes = bytes.collect::<PyResult<Vec<_>>>()?;
        let answers = py.detach(|| {
            let names: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
            self.lock().get_many(&names)
        })?;
        let found = PyDict::new(py);
        for (key, answer) in keys.into_iter().zip(answers) {
            if let Some(item) = answer.map_err(raise)? {
                found.set_item(key, PyBytes::new(py, &item.value))?;
            }
        }
        Ok(found)
    }

    #[pyo3(signature = (key, value, flags = 0, expiry = 0))]
    fn put(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> PyResult<()> {
        self.call(py, &key, |client, key| {
            client.put(key, value, flags, expiry)
        })
    }

    #[pyo3(signature = (key, value, flags = 0, expiry = 0))]
    fn add(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> PyResult<bool> {
        self.call(py, &key, |client, key| {
            client.add(key, value, flags, expiry)
        })
    }

    #[pyo3(signature = (key, value, flags = 0, expiry = 0))]
    fn replace(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> PyResult<bool> {
        self.call(py, &key, |client, key| {
            client.replace(key, value, flags, expiry)
        })
    }

    #[pyo3(signature = (key, cas, value, flags = 0, expiry = 0))]
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        cas: u64,
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> PyResult<bool> {
        self.call(py, &key, |client, key| {
            client.compare_and_swap(key, cas, value, flags, expiry)
        })
    }

    #[pyo3(signature = (key, delta = 1))]
    fn increment(&self, py: Python<'_>, key: Key<'_>, delta: u64) -> PyResult<Option<u64>> {
        self.call(py, &key, |client, key| client.increment(key, delta))
    }

    #[pyo3(signature = (key, delta = 1))]
    fn decrement(&self, py: Python<'_>, key: Key<'_>, delta: u64) -> PyResult<Option<u64>> {
        self.call(py, &key, |client, key| client.decrement(key, delta))
    }

    fn delete(&self, py: Python<'_>, key: Key<'_>) -> PyResult<bool> {
        self.call(py, &key, |client, key| client.delete(key))
    }

    fn touch(&self, py: Python<'_>, key: Key<'_>, expiry: u32) -> PyResult<bool> {
        self.call(py, &key, |client, key| client.touch(key, expiry))
    }
}

/// The usual settings but for what is given. Times are in seconds.
fn settings(
    deadline: Option<f64>,
    away_after: Option<u32>,
    retry: Option<f64>,
    eject: bool,
) -> PyResult<Settings> {
    let usual = Settings::default();
    let us = |seconds: Option<f64>, usual_us| match seconds.map(Duration::try_from_secs_f64) {
        None => Ok(usual_us),
        Some(Ok(time)) => Ok(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        Some(Err(error)) => Err(PyValueError::new_err(error.to_string())),
    };
    Ok(Settings {
        deadline_us: us(deadline, usual.deadline_us)?,
        retry_us: us(retry, usual.retry_us)?,
        away_after: away_after.unwrap_or(usual.away_after),
        eject,
        ..usual
    })
}

#[pymodule]
fn glimmer(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Client>()?;
    module.add_class::<Item>()?;
    errors::add_to(module)
}
