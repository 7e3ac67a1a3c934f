//! The lookup's ports, and a device that drives them.
//!
//! | file | idea |
//! | --- | --- |
//! | `shape` | the parameters of a circuit, and its software model |
//! | `ports` | the ports as structs |
//! | `pressure` | how often each port is not ready |
//! | `traffic` | what is sent and what came back, cycle by cycle, with random back-pressure |
//! | `circuit` | the circuit, clocked |
//! | `device` | the circuit as a device: operations with their answers |

mod circuit;
pub mod device;
mod ports;
mod pressure;
mod shape;
mod traffic;

pub use circuit::Circuit;
pub use ports::{In, LookupPorts, Out};
pub use pressure::Pressure;
pub use shape::Shape;
pub use traffic::{Item, Reply};
