//! How a load opens its connections. Servers and protocols that this crate does not know plug in
//! here.

use std::{fmt, marker::PhantomData, sync::Arc};

use anyhow::{Result, ensure};
use glimmer_connect::Admission;
use glimmer_transport::packet::PacketTransport;

use super::datagrams::Sending;
use super::{Address, Awaited, Datagrams, Link, Protocol, Stream};

/// Keys in flight on a connection while all keys are stored or read back.
pub(super) const BURST_KEYS: u32 = 64;
/// The same limit over UDP, where the reply to a read of this many keys must fit into one datagram.
const BURST_KEYS_UDP: u32 = 16;

/// Work to be done with connections of any type.
pub trait Job {
    /// The result of the work.
    type Output;

    /// Does the work.
    fn run<L: Link + Awaited>(self, links: Vec<L>) -> Result<Self::Output>;
}

/// A server to which connections can be opened.
///
/// [`Target`](super::Target) is one of this crate's protocols, chosen at run time. [`Endpoint`] is
/// one protocol, chosen at compile time, for example your own; [`Endpoint::over`] has its datagrams
/// carried past the kernel's stack. What is neither datagrams nor a stream over TCP or a Unix
/// socket implements this trait itself, with a [`Link`] of its own.
pub trait Connect: Sync {
    /// Opens this many connections and does a job with them on the calling thread.
    ///
    /// # Errors
    ///
    /// If a connection cannot be opened or the job fails.
    fn open<J: Job>(&self, connections: usize, job: J) -> Result<J::Output>;

    /// Keys in flight on a connection while all keys are stored or read back.
    fn burst_keys(&self) -> u32 {
        BURST_KEYS
    }
}

/// An address at which a server speaks the protocol `P`.
pub struct Endpoint<P> {
    address: Address,
    admission: Admission,
    transport: Option<Arc<dyn PacketTransport>>,
    protocol: PhantomData<fn() -> P>,
}

impl<P> Endpoint<P> {
    /// The server at this address.
    pub fn new(address: Address) -> Endpoint<P> {
        Endpoint {
            address,
            admission: Admission::default(),
            transport: None,
            protocol: PhantomData,
        }
    }

    /// The same server, which wants this of its clients.
    pub fn admitting(self, admission: Admission) -> Endpoint<P> {
        Endpoint { admission, ..self }
    }

    /// The same server, whose datagrams this transport carries; the kernel's sockets do if there is
    /// none.
    pub fn over(self, transport: Option<Arc<dyn PacketTransport>>) -> Endpoint<P> {
        Endpoint { transport, ..self }
    }
}

impl<P> fmt::Debug for Endpoint<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Endpoint").field(&self.address).finish()
    }
}

impl<P: Protocol> Connect for Endpoint<P> {
    fn open<J: Job>(&self, connections: usize, job: J) -> Result<J::Output> {
        fn all<L>(count: usize, open: impl Fn() -> Result<L>) -> Result<Vec<L>> {
            (0..count).map(|_| open()).collect()
        }
        let admission = &self.admission;
        let is_tcp = matches!(self.address, Address::Tcp(_));
        let is_stream = is_tcp || matches!(self.address, Address::Unix(_));
        ensure!(
            is_tcp || admission.tls.is_none(),
            "only TCP is encrypted, and {} is not: leave --tls out",
            self.address
        );
        ensure!(
            is_stream || admission.login.is_none(),
            "a login goes over TCP or a Unix socket, and {} is neither: leave --auth-user out",
            self.address
        );
        ensure!(
            !is_stream || self.transport.is_none(),
            "--packet-transport carries datagrams, and {} is a stream: give udp:HOST:PORT, or one \
             of the native protocols",
            self.address
        );
        if let (Some(transport), Address::Udp(address) | Address::UdpTrains(address)) =
            (&self.transport, &self.address)
        {
            let open = || Datagrams::<P>::open_over(&**transport, *address);
            return job.run(all(connections, open)?);
        }
        match &self.address {
            Address::Tcp(address) => {
                let open = || Stream::<P>::tcp(*address, admission);
                job.run(all(connections, open)?)
            }
            Address::Unix(path) => {
                let open = || Stream::<P>::unix(path, admission);
                job.run(all(connections, open)?)
            }
            Address::Udp(address) => {
                let open = || Datagrams::<P>::open(*address, Sending::Plain);
                job.run(all(connections, open)?)
            }
            Address::UdpTrains(address) => {
                let open = || Datagrams::<P>::open(*address, Sending::Segmented);
                job.run(all(connections, open)?)
            }
        }
    }

    fn burst_keys(&self) -> u32 {
        burst_keys(&self.address)
    }
}

/// Keys in flight on a connection to this address, for a protocol whose replies fit into one
/// datagram.
pub(super) fn burst_keys(address: &Address) -> u32 {
    match address {
        Address::Udp(_) | Address::UdpTrains(_) => BURST_KEYS_UDP,
        Address::Tcp(_) | Address::Unix(_) => BURST_KEYS,
    }
}
