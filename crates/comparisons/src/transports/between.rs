//! A transport with everything that a server, its load and an echo beside it need.

use std::{fmt, time::Duration};

use anyhow::Result;
use glimmer_loadgen::driver::{Address, Dialect, Target};
use glimmer_measure::namespaces::Visit;

use super::{DPDK, Halves, IN_FLIGHT, Pace, Way, datagrams_per_s, reads, way_of_kind};
use crate::lab::Place;

/// The transport that the load generator has unless it is given one.
const SOCKETS: &str = "udp";

/// Two namespaces with a transport between them, and two more for its echo: an interface has one
/// program at a time.
pub struct Between {
    halves: Halves,
    echo_halves: Halves,
    way: Way,
}

impl fmt::Debug for Between {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Between({})", self.name())
    }
}

impl Between {
    /// The two ends of a transport of this kind: udp, udp-plain, xdp or dpdk. A process can have
    /// the last one only once.
    ///
    /// # Errors
    ///
    /// The kind is unknown, the program was built without it, or this machine lacks what it needs.
    pub fn of_kind(kind: &str) -> Result<Between> {
        let way = way_of_kind(kind)?;
        let (halves, echo_halves) = (Halves::new(1)?, Halves::new(1)?);
        // What this machine cannot do is said before anything is measured.
        drop(way.echo.open(&echo_halves, 1)?);
        Ok(Between {
            halves,
            echo_halves,
            way,
        })
    }

    /// The transport's name in tables.
    pub fn name(&self) -> &str {
        &self.way.name
    }

    /// Whether the load generator has a device of this transport, and not sockets.
    pub fn is_other_than_sockets(&self) -> bool {
        self.way.kind != SOCKETS
    }

    /// Whether a server polls it, and takes a whole core for that while it is not paused.
    pub fn is_polled(&self) -> bool {
        self.way.kind == DPDK
    }

    /// Where its server runs. TCP reaches it there, too.
    pub fn place(&self) -> Place {
        self.halves.place()
    }

    /// What its server is told.
    pub fn server_arguments(&self) -> [String; 2] {
        ["--packet-transport".to_owned(), self.way.server.clone()]
    }

    /// Moves the calling thread to where clients are, until the result is dropped. Loads are driven
    /// from there.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn visit_clients(&self) -> Result<Visit> {
        self.halves.visit_clients()
    }

    /// Cuts what either end sends to this many megabits per second, or no longer. Only what passes
    /// the kernel's queues of packets is cut, as what sockets send does.
    ///
    /// # Errors
    ///
    /// `tc` is missing, or fails.
    pub fn limit(&self, mbit_per_s: Option<u32>) -> Result<()> {
        self.halves.limit(mbit_per_s)
    }

    /// Reads over memcached's UDP protocol that a server of ours answers in a second: with as many
    /// in flight as keep it busy, and with as many sent as the client can send.
    ///
    /// # Errors
    ///
    /// The server does not start, or does not answer.
    pub fn reads_per_s(&self, measured: Duration) -> Result<[f64; 2]> {
        let paces = [Pace::InFlight(IN_FLIGHT), Pace::Flood];
        let driven = reads(&self.halves, &self.way, &paces, measured)?;
        Ok([driven[0].per_s(), driven[1].per_s()])
    }

    /// Its server's native port as clients of the same transport see it.
    ///
    /// # Errors
    ///
    /// The client's end of the transport cannot be made.
    pub fn native_target(&self, port: u16, dialect: Dialect) -> Result<Target> {
        let address = Address::Udp((self.way.server_at, port).into());
        let transport = match self.is_other_than_sockets() {
            true => Some((self.way.client.transport)()?),
            false => None,
        };
        Ok(Target {
            transport,
            ..Target::new(address, dialect)
        })
    }

    /// Datagrams of this length that come back in a second without a server, with this many of them
    /// under way. A server that polls has to be paused: it would take the echo's core.
    ///
    /// # Errors
    ///
    /// No datagram comes back.
    pub fn echoes_per_s(&self, bytes: usize, in_flight: usize, measured: Duration) -> Result<f64> {
        let requests = (&*vec![0; bytes], Pace::InFlight(in_flight));
        datagrams_per_s(&self.echo_halves, &self.way, requests, measured)
    }
}
