//! The lookup's ports, and a device that drives them.

mod ports;

pub use ports::{In, LookupPorts, Out};
