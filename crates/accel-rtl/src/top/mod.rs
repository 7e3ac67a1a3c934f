//! The whole circuit's ports.

mod ports;

pub use ports::{In, Out, TopPorts};
