//! The link between the server and a process that simulates the circuit: the device's operations
//! over a Unix socket. `docs/accelerator-rtl-server.md` has the bytes.
//!
//! | file | idea |
//! | --- | --- |
//! | `frame` | where a frame begins and ends, and how its fields are read |
//! | `message` | what the two sides say to each other, as bytes |
//! | `operation` | the device's operations as the circuit's registers |
//! | `remote` | the server's side: a device at the other end |
//! | `host` | the device's side |
//! | `fuzzing` | what any bytes are, for the fuzz target |

mod frame;
mod fuzzing;
mod host;
mod message;
mod operation;
mod remote;

pub use frame::{FRAME_BYTES_MAX, Malformed};
pub use fuzzing::fuzz;
pub use host::{Host, HostError};
pub use message::{Answer, MAGIC, Request, VERSION};
pub use operation::{Operation, Registers, carry_out, refusal};
pub use remote::{ConnectError, Link};
