//! Where servers and their clients run: on loopback, or in two network namespaces with virtual
//! cables between them.
//!
//! The namespaces have no names. They exist as long as this process holds their descriptors or a
//! server runs in one, and servers stop with this process. So nothing is left behind, however this
//! process ends, and there are no leftovers to look for at the next start.

mod cables;
mod offload;
mod pass;
mod threads;

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use anyhow::Result;
use glimmer_measure::namespaces::Namespace;
use serde::Serialize;

pub use cables::Namespaces;
pub(crate) use offload::tags_stay;

/// Where a server runs, and the address at which its clients find it.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its address.
    pub ip: IpAddr,
    /// Its network interface; `None` on loopback.
    pub interface: Option<String>,
    /// Who receives for that interface.
    pub receiver: Receiver,
    /// Its network namespace; `None` for the one of the calling thread.
    pub(crate) namespace: Option<Arc<Namespace>>,
}

impl Place {
    /// In the namespace of the calling thread.
    pub fn loopback() -> Place {
        Place {
            ip: Ipv4Addr::LOCALHOST.into(),
            interface: None,
            receiver: Receiver::Sender,
            namespace: None,
        }
    }

    /// Has the interface's thread receive on a core, if that is how this place receives. It takes
    /// effect with a server whose packet program is attached: the kernel has no threads before.
    ///
    /// # Errors
    ///
    /// If the kernel has none (before Linux 5.12), or hides them from this process.
    pub fn receive_on(&self, core: usize) -> Result<()> {
        match (self.receiver, &self.namespace, &self.interface) {
            (Receiver::Thread, Some(namespace), Some(interface)) => {
                namespace.inside(|| threads::switch_on(interface))?;
                threads::pin(interface, core)
            }
            _ => Ok(()),
        }
    }
}

/// How the client's end of a cable is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cable {
    /// As the kernel makes it. Segment batches pass whole, and nobody computes checksums.
    Plain,
    /// As a server with a packet program needs it: the client's end has a program that passes
    /// everything, checksums are computed, and nothing is coalesced. The kernel then cuts segment
    /// batches of replies before it sends them.
    ForPackets,
    /// The same without the program at the client's end, which then drops what a program at the
    /// server's driver sends. A server takes the kernel's generic mode.
    ForGeneric,
    /// As for packets, with a program at the server's end that passes everything: what the kernel
    /// itself costs with any program there.
    Empty,
}

/// Who receives for the server's end of a cable that has a packet program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receiver {
    /// The sender, within its system call, as the kernel does it unless told.
    Sender,
    /// A thread of the interface, as a network card's interrupt would on a core of the server.
    Thread,
}

/// Where servers and their clients run.
pub enum Lab {
    /// All on loopback. There is no interface for a packet program.
    Loopback,
    /// Servers in one namespace and clients in another.
    Namespaces(Namespaces),
}

impl Lab {
    /// A place for another server, with a cable of its own.
    pub fn place(&mut self, cable: Cable) -> Result<Place> {
        match self {
            Lab::Loopback => Ok(Place::loopback()),
            Lab::Namespaces(namespaces) => namespaces.place(cable),
        }
    }
}
