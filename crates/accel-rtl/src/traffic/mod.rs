//! The traffic manager's ports.

mod ports;

pub use ports::{In, Out, TrafficPorts};
