//! The server behind a circuit: Glimmer's own, with a body that fills the circuit over a socket.

use glimmer_accel_device::Keeper;
use glimmer_accel_device::device::Device;
use glimmer_accel_device::link::Link;
use glimmer_hotset::{Body, Policy};
use glimmer_proto::Accepts;
use glimmer_server::MakeBody;
use std::fmt;
use std::path::PathBuf;

/// A circuit behind a Unix socket. What answers there passes on what it does not answer.
#[derive(Debug)]
pub struct Circuit {
    /// Where the process listens that simulates it.
    pub socket: PathBuf,
}

impl fmt::Display for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--circuit {}", self.socket.display())
    }
}

impl MakeBody for Circuit {
    fn name(&self) -> &'static str {
        "rtl"
    }

    fn memory_bytes(&self, slots: usize) -> usize {
        Keeper::bytes(slots)
    }

    fn check(&self, protocol: Accepts) -> Result<(), &'static str> {
        match protocol {
            Accepts::Any | Accepts::Binary => Ok(()),
            _ => Err("--circuit answers binary requests: leave -B out or give -B binary"),
        }
    }

    fn make(&self, slots: usize, policy: Box<dyn Policy>) -> Result<Box<dyn Body>, String> {
        let name = self.to_string();
        let on_loss = move |reason: &str| {
            tracing::error!(
                "{name}: device lost: {reason}; the server answers its keys from now on; restart \
                 the simulation and then the server to use it again"
            );
        };
        let link = Link::connect(&self.socket, on_loss).map_err(|error| error.to_string())?;
        match link.capabilities().slots {
            theirs if theirs == slots => Ok(Box::new(Keeper::new(Box::new(link), policy))),
            theirs => Err(format!(
                "the circuit has {theirs} slots: give --accelerate-slots {theirs}"
            )),
        }
    }
}
