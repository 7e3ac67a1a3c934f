//! Checks each argument that Python passes, so that an error names the argument and its valid
//! values.

use glimmer_client::Exptime;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyString, PyTuple};
use std::time::Duration;

/// A key as bytes. A `str` is encoded as UTF-8.
pub struct Key(pub Vec<u8>);

impl<'py> FromPyObject<'py> for Key {
    fn extract_bound(key: &Bound<'py, PyAny>) -> PyResult<Key> {
        if let Ok(text) = key.downcast::<PyString>() {
            return Ok(Key(text.to_cow()?.into_owned().into_bytes()));
        }
        let bytes = bytes_of(key);
        bytes
            .map(Key)
            .ok_or_else(|| wrong_type("a key", "bytes or str", key))
    }
}

/// A value as bytes.
pub struct Value(pub Vec<u8>);

impl<'py> FromPyObject<'py> for Value {
    fn extract_bound(value: &Bound<'py, PyAny>) -> PyResult<Value> {
        let bytes = bytes_of(value);
        bytes
            .map(Value)
            .ok_or_else(|| wrong_type("a value", "bytes", value))
    }
}

fn bytes_of(object: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    let bytes = object
        .downcast::<PyBytes>()
        .map(|bytes| bytes.as_bytes().to_vec());
    bytes.ok().or_else(|| {
        object
            .downcast::<PyByteArray>()
            .ok()
            .map(|bytes| bytes.to_vec())
    })
}

fn wrong_type(what: &str, wanted: &str, object: &Bound<'_, PyAny>) -> PyErr {
    let given = object
        .get_type()
        .name()
        .map_or_else(|_| "something else".into(), |n| n.to_string());
    PyTypeError::new_err(format!("{what} is {wanted}, not {given}"))
}

/// An integer within bounds.
fn number(name: &str, object: &Bound<'_, PyAny>, least: u64, most: u64) -> PyResult<u64> {
    let Ok(integer) = object.downcast::<PyInt>() else {
        return Err(wrong_type(name, "an int", object));
    };
    let number = integer.extract::<u64>().ok();
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "{name} is a number from {least} to {most}, not {integer}"
            ))
        })
}

/// The argument `expiry`.
pub fn expiry(object: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    expiry_of("expiry", object)
}

/// The argument `expiry_ms`.
pub fn expiry_ms(object: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    expiry_of("expiry_ms", object)
}

fn expiry_of(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    if object.is_none() {
        return Ok(None);
    }
    number(name, object, 0, u32::MAX.into()).map(|number| Some(number as u32))
}

/// What one of the arguments `expiry` and `expiry_ms` says.
pub fn one_of(expiry: Option<u32>, expiry_ms: Option<u32>) -> PyResult<Option<Exptime>> {
    match (expiry, expiry_ms) {
        (Some(_), Some(_)) => {
            let words = "expiry and expiry_ms exclude each other";
            Err(PyValueError::new_err(words))
        }
        (Some(number), None) => Ok(Some(Exptime::memcached(number))),
        (None, ms) => Ok(ms.map(Exptime::ms)),
    }
}

/// Neither was given where one is needed.
pub fn no_expiry() -> PyErr {
    PyTypeError::new_err("touch needs expiry or expiry_ms")
}

/// The argument `flags`.
pub fn flags(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    number("flags", object, 0, u32::MAX.into()).map(|number| number as u32)
}

/// The argument `cas`.
pub fn cas(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    number("cas", object, 0, u64::MAX)
}

/// The argument `delta`.
pub fn delta(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    number("delta", object, 0, u64::MAX)
}

/// The argument `native_port`.
pub fn native_port(object: &Bound<'_, PyAny>) -> PyResult<u16> {
    port("native_port", object)
}

fn port(name: &str, object: &Bound<'_, PyAny>) -> PyResult<u16> {
    number(name, object, 1, u16::MAX.into()).map(|number| number as u16)
}

/// The argument `away_after`.
pub fn away_after(object: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    if object.is_none() {
        return Ok(None);
    }
    let number = number("away_after", object, 0, u32::MAX.into())?;
    Ok(Some(number as u32))
}

/// The argument `deadline`, in microseconds.
pub fn deadline(object: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    seconds("deadline", object)
}

/// The argument `retry`, in microseconds.
pub fn retry(object: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    seconds("retry", object)
}

fn seconds(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if object.is_none() {
        return Ok(None);
    }
    let Ok(seconds) = object.extract::<f64>() else {
        return Err(wrong_type(name, "a number of seconds", object));
    };
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!(
            "{name} is a finite number of seconds, 0 or more, not {seconds}"
        )));
    }
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    Ok(Some(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
}

/// One of several servers: host, memcached's port, native port, weight.
pub struct Member(pub glimmer_client::Member);

impl<'py> FromPyObject<'py> for Member {
    fn extract_bound(object: &Bound<'py, PyAny>) -> PyResult<Member> {
        const WANTED: &str = "a tuple (host, port, native_port, weight)";
        let Ok(parts) = object.downcast::<PyTuple>() else {
            return Err(wrong_type("a member", WANTED, object));
        };
        let parts: Vec<_> = parts.iter().collect();
        let [host, tcp, native, weight] = &parts[..] else {
            let given = parts.len();
            let words = format!("a member is {WANTED}, not a tuple of {given}");
            return Err(PyTypeError::new_err(words));
        };
        let Ok(host) = host.extract::<String>() else {
            return Err(wrong_type("a member's host", "a str", host));
        };
        Ok(Member(glimmer_client::Member {
            host,
            port: port("a member's port", tcp)?,
            native_port: port("a member's native_port", native)?,
            weight: number("a member's weight", weight, 0, u32::MAX.into())? as u32,
        }))
    }
}
