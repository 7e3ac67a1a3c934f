//! Sessions with their packet devices and a clock, driven by the calling thread.

use crate::error::ConnectError;
use crate::location::{Location, Search};
use crate::process::{Process, client_number};
use crate::{Ask, Failure, Session, Settings, boundary};
use glimmer_proto::native::{Reply, RequestHeader};
use glimmer_transport::Poller;
use glimmer_transport::packet::{Message, PacketDevice, PacketSender, PacketTransport};
use glimmer_transport::packet::{RxBatch, Wakeup};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Called for each answer, with the tag of the request and the reply.
pub type OnAnswer<'a> = dyn FnMut(usize, Result<&Reply<'_>, Failure>) + 'a;

/// How often a waiting call does what [`boundary::while_waiting`] has been given.
const CHECK_US: u64 = 50_000;

/// Bytes of a refused datagram that are needed to identify it.
const QUOTED_BYTES: usize = RequestHeader::BYTES;

/// One server.
struct Link {
    session: Session<usize>,
    device: Box<dyn PacketDevice>,
    server: Location,
    search: Search,
}

/// The servers of a client.
pub struct Links {
    process: Process,
    settings: Settings,
    links: Vec<Link>,
    /// Tells which devices have received something; `None` if they have to be asked.
    poller: Option<Poller>,
    received: RxBatch,
    begun: Instant,
    /// When the present call next does what [`boundary::while_waiting`] has been given.
    check_due_us: Option<u64>,
    transport: Arc<dyn PacketTransport>,
}

impl Links {
    /// Opens a device for each server. No directory is known yet.
    pub fn open(
        servers: Vec<Location>,
        transport: Arc<dyn PacketTransport>,
        settings: Settings,
    ) -> io::Result<Links> {
        let process = Process::this()?;
        let poller = Poller::new(servers.len())?;
        let mut links = Vec::with_capacity(servers.len());
        let mut is_woken = true;
        for server in servers {
            let link = Link::open(server, &*transport, settings)?;
            match link.device.wakeup() {
                Wakeup::Poll => is_woken = false,
                wakeup => poller.watch_level(wakeup, links.len() as u64)?,
            }
            links.push(link);
        }
        Ok(Links {
            process,
            settings,
            links,
            poller: is_woken.then_some(poller),
            received: RxBatch::default(),
            begun: Instant::now(),
            check_due_us: None,
            transport,
        })
    }

    /// Must be called before the requests of each call. In a forked child, it opens new sockets and
    /// sessions; the requests in flight belong to the parent.
    #[inline]
    pub fn enter(&mut self) -> io::Result<()> {
        if !self.process.is_this() {
            self.open_anew()?;
        }
        self.check_due_us = None;
        let may_be_lost = |link: &Link| link.session.is_doubtful() || link.session.is_lost();
        if self.links.iter().any(may_be_lost) {
            self.hear_doubtful();
            self.search();
        }
        Ok(())
    }

    /// Handles what has arrived since the last call from servers that are away: any datagram ends
    /// that state, and no request may be sent that would have it read.
    #[cold]
    fn hear_doubtful(&mut self) {
        let now_us = self.now_us();
        for link in &mut self.links {
            if link.session.is_doubtful() {
                link.receive(&mut self.received, now_us, &mut |_, _| {});
            }
        }
    }

    /// Follows servers that do not answer to the addresses that their names have now. Past the
    /// kernel's stack, a device may be the only one that there can be, and servers stay.
    #[cold]
    fn search(&mut self) {
        if !self.transport.are_sockets() {
            return;
        }
        let now_us = self.now_us();
        for (token, link) in self.links.iter_mut().enumerate() {
            if !link.session.is_lost() {
                continue;
            }
            let interval_us = self.settings.retry_us;
            let moved = link.search.advance(&link.server, now_us, interval_us);
            let Some(address) = moved else {
                continue;
            };
            let server = link.server.at(address);
            // Without a descriptor, the next search may succeed.
            let opened = Link::open(server, &*self.transport, self.settings).and_then(|opened| {
                if let Some(poller) = &mut self.poller {
                    poller.watch_level(opened.device.wakeup(), token as u64)?;
                }
                Ok(opened)
            });
            if let Ok(opened) = opened {
                *link = opened;
            }
        }
    }

    #[cold]
    fn open_anew(&mut self) -> io::Result<()> {
        if !self.transport.are_sockets() {
            return Err(io::Error::other(format!(
                "a client over {} is of no use in a forked child: open another one there, with a \
                 transport of its own",
                self.transport.name()
            )));
        }
        let servers = self.links.iter().map(|link| link.server.clone()).collect();
        *self = Links::open(servers, self.transport.clone(), self.settings)?;
        Ok(())
    }

    /// Waits until every server has sent its directory or refused, or until `patience_us` is over.
    /// Succeeds if at least one server is known.
    pub fn find(&mut self, patience_us: u64) -> Result<(), ConnectError> {
        let deadline_us = self.now_us().saturating_add(patience_us);
        let is_known = |link: &Link| link.session.directory().is_some();
        let is_settled = |link: &Link| is_known(link) || link.session.is_refused();
        while !self.links.iter().all(is_settled) && self.now_us() < deadline_us {
            self.turn_until(Some(deadline_us), &mut |_, _| {})?;
        }
        let mut silent = self.links.iter().filter(|link| !is_settled(link));
        match (self.links.iter().any(is_known), silent.next()) {
            (true, _) => Ok(()),
            (false, Some(silent)) => Err(ConnectError::Silent(silent.server.address)),
            (false, None) => Err(ConnectError::Refused(self.server(0))),
        }
    }

    /// How many servers there are.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// The address at which a server is asked for its directory.
    pub fn server(&self, link: usize) -> SocketAddr {
        self.links[link].server.address
    }

    /// Adds a request to a server's session. The next [`Links::turn_until`] sends it.
    pub fn ask(&mut self, link: usize, ask: &Ask<'_>, tag: usize) -> Result<(), Failure> {
        let now_us = self.now_us();
        let session = &mut self.links[link].session;
        session
            .ask(ask, tag, now_us)
            .map_err(|(failure, _)| failure)
    }

    /// Whether a server is away.
    pub fn is_away(&self, link: usize) -> bool {
        self.links[link].session.is_away(self.now_us())
    }

    /// Whether requests are queued because the congestion window is full; see
    /// [`Session::has_queue`].
    pub fn has_queue(&self, link: usize) -> bool {
        self.links[link].session.has_queue()
    }

    /// Requests that have no answer yet.
    pub fn under_way(&self) -> usize {
        let links = self.links.iter();
        links.map(|link| link.session.under_way()).sum()
    }

    /// Ends all requests now, as their deadlines would.
    pub fn give_up(&mut self, mut on_answer: &mut OnAnswer<'_>) {
        let now_us = self.now_us();
        for link in &mut self.links {
            link.session.give_up(now_us, &mut on_answer);
        }
    }

    /// Sends what is due, waits until a datagram arrives, something is due again or this time has
    /// come, and handles what arrived.
    ///
    /// # Errors
    ///
    /// If waiting fails, or what [`boundary::while_waiting`] has been given.
    #[inline]
    pub fn turn_until(
        &mut self,
        until_us: Option<u64>,
        on_answer: &mut OnAnswer<'_>,
    ) -> io::Result<()> {
        let now_us = self.now_us();
        let check_due_us = self.check(now_us)?;
        let mut wakes_us = until_us;
        for link in &mut self.links {
            link.send(now_us, on_answer);
            let others_us = wakes_us.unwrap_or(u64::MAX);
            wakes_us = link
                .session
                .wakes_us()
                .map(|own_us| own_us.min(others_us))
                .or(wakes_us);
        }
        let wakes_us = wakes_us.unwrap_or(now_us).min(check_due_us);
        let wait_us = wakes_us.saturating_sub(self.now_us());
        let Some(poller) = &mut self.poller else {
            self.look(on_answer);
            return Ok(());
        };
        poller.wait(Some(Duration::from_micros(wait_us)))?;
        let now_us = self.begun.elapsed().as_micros() as u64;
        for index in 0..poller.ready_count() {
            let ready = poller.ready(index);
            let link = &mut self.links[ready.token as usize];
            let received = link.receive(&mut self.received, now_us, on_answer);
            if ready.failed || received == 0 {
                link.take_refusals(now_us, on_answer);
            }
        }
        Ok(())
    }

    /// Does what [`boundary::while_waiting`] has been given, if that is due. Returns when it is due
    /// again.
    #[inline]
    fn check(&mut self, now_us: u64) -> io::Result<u64> {
        let Some(check) = boundary::check() else {
            return Ok(u64::MAX);
        };
        let next_us = now_us.saturating_add(CHECK_US);
        let due_us = *self.check_due_us.get_or_insert(next_us);
        if now_us < due_us {
            return Ok(due_us);
        }
        self.check_due_us = Some(next_us);
        check()?;
        Ok(next_us)
    }

    /// Handles what has arrived at devices that wake nobody.
    fn look(&mut self, on_answer: &mut OnAnswer<'_>) {
        let now_us = self.now_us();
        let mut received = 0;
        for link in &mut self.links {
            received += link.receive(&mut self.received, now_us, on_answer);
        }
        if received == 0 {
            // The server may be on the same core.
            std::thread::yield_now();
        }
    }

    /// The time of this clock at which a request that is issued now fails.
    pub fn deadline_us(&self) -> u64 {
        self.now_us().saturating_add(self.settings.deadline_us)
    }

    /// Microseconds since the client was created.
    pub fn now_us(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }
}

impl Drop for Links {
    /// A forked child leaves devices that are not sockets to its parent, which uses the same
    /// memory.
    fn drop(&mut self) {
        if !self.transport.are_sockets() && !self.process.is_this() {
            std::mem::forget(std::mem::take(&mut self.links));
            std::mem::forget(std::mem::take(&mut self.received));
            std::mem::forget(self.transport.clone());
        }
    }
}

impl Link {
    fn open(
        server: Location,
        transport: &dyn PacketTransport,
        settings: Settings,
    ) -> io::Result<Link> {
        let device = transport.open_towards(server.address)?;
        // Where the device does not support this, a closed port is noticed only at the deadline.
        let _ = device.report_refusals();
        Ok(Link {
            session: Session::new(settings, client_number()?),
            device,
            server,
            search: Search::default(),
        })
    }

    /// Handles reports of datagrams that reached a closed port.
    #[cold]
    fn take_refusals(&mut self, now_us: u64, mut on_answer: &mut OnAnswer<'_>) {
        let mut quoted = [0; QUOTED_BYTES];
        while let Some((peer, bytes)) = self.device.take_refusal(&mut quoted) {
            let is_known_port = peer.port() == self.server.address.port();
            let quoted = &quoted[..bytes];
            (self.session).bounce(is_known_port, quoted, now_us, &mut on_answer);
        }
    }

    fn send(&mut self, now_us: u64, mut on_answer: &mut OnAnswer<'_>) {
        let Link {
            session,
            device,
            server,
            ..
        } = self;
        let server = server.address;
        session.expire(now_us, &mut on_answer);
        session.transmit(now_us, &mut |port, bytes, segment_bytes| {
            let to = SocketAddr::new(server.ip(), port.unwrap_or(server.port()));
            // A datagram that the kernel does not accept is lost, as any datagram may be.
            device.send(&[Message::segments(to, bytes, segment_bytes)]);
        });
    }

    /// Handles datagrams that have arrived. Returns the number of segment batches.
    fn receive(
        &mut self,
        received: &mut RxBatch,
        now_us: u64,
        mut on_answer: &mut OnAnswer<'_>,
    ) -> usize {
        let count = self.device.receive(received);
        for batch in 0..count {
            let port = received.peer(batch).port();
            if port != self.server.address.port() && !self.session.has_port(port) {
                continue;
            }
            for datagram in received.bytes(batch).chunks(received.segment_bytes(batch)) {
                self.session.receive(datagram, now_us, &mut on_answer);
            }
        }
        count
    }
}
