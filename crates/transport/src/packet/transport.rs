//! What turns an address into packet devices.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use super::{Instruction, PacketDevice};

/// A packet transport, or what is wrong with the text that is to name one.
pub type Named = Result<Arc<dyn PacketTransport>, String>;

/// A kind of packet transport that a server can be told to use.
#[derive(Clone, Copy, Debug)]
pub struct TransportKind {
    /// Its name on the command line.
    pub name: &'static str,
    /// The transport with what follows the name and a colon on the command line, such as the name
    /// of an interface. Fails if the argument is wrong, or if the kind takes none or lacks one.
    pub with: fn(Option<&str>) -> Named,
}

/// A packet transport.
pub trait PacketTransport: Debug + Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Opens the device of the only worker that uses an address. A port of 0 is replaced by a free
    /// one.
    ///
    /// # Errors
    ///
    /// The address cannot be used, or belongs to another device.
    fn open(&self, address: SocketAddr) -> io::Result<Box<dyn PacketDevice>>;

    /// Opens the device of a client of this server: at any port, of the server's family.
    ///
    /// # Errors
    ///
    /// As for [`PacketTransport::open`].
    fn open_towards(&self, server: SocketAddr) -> io::Result<Box<dyn PacketDevice>> {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        self.open(SocketAddr::new(any, 0))
    }

    /// Whether each device is a socket of the kernel's. Otherwise a forked child can neither use
    /// nor drop the devices of its parent, as both have the same memory, and a device may have
    /// several sources: a call that receives something may leave more than that.
    fn are_sockets(&self) -> bool {
        false
    }

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

    /// The network interface that its devices take for themselves, if they take one.
    fn interface(&self) -> Option<&str> {
        None
    }

    /// The transport, if it has a program at an interface, which another part of the server may
    /// have there, too.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Bytes of memory that the devices of this many workers will take for packets, beside those of
    /// the batches that they fill.
    fn memory_bytes(&self, workers: usize) -> usize {
        let _ = workers;
        0
    }

    /// How many workers there are. It is said before the first device is opened, if at all.
    fn expect_workers(&self, workers: usize) {
        let _ = workers;
    }

    /// Whether its interface was down or gone when something was last to be sent or received by it.
    fn is_away(&self) -> bool {
        false
    }

    /// What it has counted, if it goes past the kernel's stack and its devices are open.
    fn figures(&self) -> Option<Bypass> {
        None
    }
}

/// What a transport past the kernel's stack says of itself.
#[derive(Clone, Debug, Default)]
pub struct Bypass {
    /// The interface.
    pub interface: String,
    /// How frames come from it.
    pub mode: String,
    /// Its queues.
    pub queues: usize,
    /// What the operator should know of it.
    pub warning: Option<String>,
    /// Whether it was down or gone when something was last to be sent or received by it.
    /// Datagrams go by the kernel's stack then.
    pub is_away: bool,
    /// Datagrams that arrived past the kernel's stack.
    pub received: u64,
    /// Datagrams that left past it.
    pub sent: u64,
    /// Of those that arrived, datagrams at another queue than that of their worker.
    pub elsewhere: u64,
    /// What would have the NIC bring them to the right queue, if any were elsewhere.
    pub steering: Option<String>,
    /// Datagrams that arrived by the kernel's stack.
    pub kernel_received: u64,
    /// Datagrams that left by it.
    pub kernel_sent: u64,
    /// Frames that were not answered, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// Questions that were answered in the kernel's stead, by kind.
    pub answered: Vec<(&'static str, u64)>,
    /// Datagrams that were lost because nobody knew the way to their receiver, where that is not
    /// the kernel's to know.
    pub unresolved: Option<u64>,
    /// Frames that the kernel dropped because a ring was full.
    pub dropped_full: u64,
    /// Frames that it dropped because no frame was free to be filled.
    pub dropped_no_frame: u64,
    /// Frames that wait to be received.
    pub rx_waiting: u64,
    /// Frames that wait to be sent.
    pub tx_waiting: u64,
    /// Frames that wait to be filled.
    pub fill_waiting: u64,
    /// Frames that are free to be sent.
    pub frames_free: u64,
    /// How many calls brought 1 frame, 2 to 3, 4 to 7 and so on.
    pub bursts: Vec<u64>,
}

/// Refuses an argument for the transport of this name, which takes none.
pub(crate) fn takes_none(name: &str, argument: Option<&str>) -> Result<(), String> {
    match argument {
        None => Ok(()),
        Some(argument) => Err(format!("{name} takes no argument, as {argument:?} is")),
    }
}
