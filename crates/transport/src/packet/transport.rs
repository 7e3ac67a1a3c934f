//! What turns an address into packet devices.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use super::{Instruction, PacketDevice};

/// A packet transport that a server can be told to use.
pub trait PacketTransport: Debug + Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// The transport with what follows its name and a colon on the command line, such as the name
    /// of an interface.
    ///
    /// # Errors
    ///
    /// What is wrong with the argument, or that it takes none or lacks one.
    fn with(&self, argument: Option<&str>) -> Result<Arc<dyn PacketTransport>, String>;

    /// Opens the device of the only worker that uses an address. A port of 0 is replaced by a free
    /// one.
    ///
    /// # Errors
    ///
    /// The address cannot be used, or belongs to another device.
    fn open(&self, address: SocketAddr) -> io::Result<Box<dyn PacketDevice>>;

    /// Opens a device for each of several workers that share an address. The transport spreads the
    /// peers among them. A port of 0 is replaced by a free one, the same for all.
    ///
    /// # Errors
    ///
    /// The address cannot be used, or belongs to a device outside this group.
    fn open_group(
        &self,
        address: SocketAddr,
        workers: usize,
    ) -> io::Result<Vec<Box<dyn PacketDevice>>>;

    /// Opens a device for each of several workers that share an address, as
    /// [`PacketTransport::open_group`] does. A program chooses the worker for each datagram.
    ///
    /// # Errors
    ///
    /// The same, and if the program cannot be used.
    fn open_steered(
        &self,
        address: SocketAddr,
        workers: usize,
        program: &[Instruction],
    ) -> io::Result<Vec<Box<dyn PacketDevice>>>;
}

/// Refuses an argument for the transport of this name, which takes none.
pub(crate) fn takes_none(name: &str, argument: Option<&str>) -> Result<(), String> {
    match argument {
        None => Ok(()),
        Some(argument) => Err(format!("{name} takes no argument, as {argument:?} is")),
    }
}
