//! A session, its packet device, and the task that moves datagrams between them.

use crate::answer::Told;
use crate::location::{Location, Search};
use crate::process::client_number;
use crate::{Ask, Failure, Session, Settings};
use glimmer_base::limits::PACKET_BATCH_MAX;
use glimmer_proto::native::RequestHeader;
use glimmer_transport::packet::{Message, PacketDevice, PacketTransport, RxBatch};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// The socket reports an error when a datagram was refused.
const INTEREST: Interest = Interest::READABLE.add(Interest::ERROR);

type Answered = oneshot::Sender<Result<Told, Failure>>;

/// One server. Dropping it ends its task.
pub struct Server {
    shared: Arc<Shared>,
    task: AbortHandle,
}

/// State that the task shares with the callers.
struct Shared {
    /// The address at which the server is asked for its directory.
    address: Mutex<SocketAddr>,
    /// `None` after the task has ended.
    session: Mutex<Option<Session<Answered>>>,
    /// Notified when there is something to send.
    asked: Notify,
    /// Notified when the directory has arrived or the server has refused.
    settled: Notify,
    begun: Instant,
}

/// A device, with the descriptor that tells when it has received something; `None` if it has to be
/// asked.
struct Watched {
    device: Box<dyn PacketDevice>,
    ready: Option<AsyncFd<OwnedFd>>,
    are_sockets: bool,
}

impl Watched {
    fn open(server: SocketAddr, transport: &dyn PacketTransport) -> io::Result<Watched> {
        let device = transport.open_towards(server)?;
        // Where the device does not support this, a closed port is noticed only at the deadline.
        let _ = device.report_refusals();
        let watch = |descriptor: BorrowedFd<'_>| {
            let descriptor = descriptor.try_clone_to_owned()?;
            // SAFETY: an owned descriptor stays open and unchanged for as long as it exists.
            let ready = unsafe { AsyncFd::register_with_interest(descriptor, INTEREST) };
            ready.map_err(io::Error::from)
        };
        Ok(Watched {
            ready: device.wakeup().descriptor().map(watch).transpose()?,
            device,
            are_sockets: transport.are_sockets(),
        })
    }
}

/// The way to the server.
struct Route {
    server: Location,
    transport: Arc<dyn PacketTransport>,
    settings: Settings,
    search: Search,
}

impl Route {
    /// Follows a server that does not answer to the address that its name has now. Past the
    /// kernel's stack, a device may be the only one that there can be, and servers stay.
    fn follow(&mut self, shared: &Shared) -> Option<Watched> {
        if !self.transport.are_sockets() {
            return None;
        }
        let mut session = shared.session();
        // It may have been heard since the last look.
        let session = session.as_mut().filter(|session| session.is_lost())?;
        let (now_us, interval_us) = (shared.now_us(), self.settings.retry_us);
        let address = (self.search).advance(&self.server, now_us, interval_us)?;
        // Without a descriptor, the next search may succeed.
        let watched = Watched::open(address, &*self.transport).ok()?;
        let client = client_number().ok()?;
        session.give_up(now_us, &mut |answered: Answered, reply| {
            let _ = answered.send(reply.map(Told::of));
        });
        *session = Session::new(self.settings, client);
        self.server.address = address;
        *shared.address() = address;
        Some(watched)
    }
}

impl Server {
    /// Starts a task on the caller's runtime.
    pub fn open(
        server: Location,
        transport: Arc<dyn PacketTransport>,
        settings: Settings,
    ) -> io::Result<Server> {
        let watched = Watched::open(server.address, &*transport)?;
        let shared = Arc::new(Shared {
            address: Mutex::new(server.address),
            session: Mutex::new(Some(Session::new(settings, client_number()?))),
            asked: Notify::new(),
            settled: Notify::new(),
            begun: Instant::now(),
        });
        let route = Route {
            server,
            transport,
            settings,
            search: Search::default(),
        };
        let driven = Driven(shared.clone());
        let task = tokio::spawn(drive(driven, watched, route)).abort_handle();
        Ok(Server { shared, task })
    }

    /// The address at which the server is asked for its directory.
    pub fn address(&self) -> SocketAddr {
        *self.shared.address()
    }

    /// Waits until the directory has arrived or the server has refused, without a deadline.
    pub async fn settle(&self) {
        let settled = self.shared.settled.notified();
        if !self.is_settled() {
            settled.await;
        }
    }

    /// Whether the directory has arrived, or nothing listens at the server's port.
    pub fn is_settled(&self) -> bool {
        let session = self.shared.session();
        session.as_ref().is_some_and(is_settled)
    }

    /// Whether the directory has arrived.
    pub fn is_found(&self) -> bool {
        let session = self.shared.session();
        session
            .as_ref()
            .is_some_and(|session| session.directory().is_some())
    }

    /// Whether the server is away.
    pub fn is_away(&self) -> bool {
        let session = self.shared.session();
        let now_us = self.shared.now_us();
        session
            .as_ref()
            .is_some_and(|session| session.is_away(now_us))
    }

    /// Issues a request. The returned receiver yields the answer, unless the task ends first.
    pub fn ask(&self, ask: &Ask<'_>) -> Result<oneshot::Receiver<Result<Told, Failure>>, Failure> {
        let (answered, answer) = oneshot::channel();
        {
            let mut session = self.shared.session();
            let session = session.as_mut().ok_or(Failure::Ended)?;
            let asked = session.ask(ask, answered, self.shared.now_us());
            if let Err((failure, _)) = asked {
                if failure == Failure::Away {
                    // The task searches for the server.
                    self.shared.asked.notify_one();
                }
                return Err(failure);
            }
        }
        self.shared.asked.notify_one();
        Ok(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    /// Locks the session briefly. No caller waits while holding the lock.
    fn session(&self) -> MutexGuard<'_, Option<Session<Answered>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self) -> MutexGuard<'_, SocketAddr> {
        self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call this while holding the session's lock, so that the session's time never goes backwards.
    fn now_us(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }
}

/// What the task drives. However the task ends (aborted, or with its runtime, even before its first
/// step), dropping this drops all requests, so that no caller waits for ever.
struct Driven(Arc<Shared>);

impl Drop for Driven {
    fn drop(&mut self) {
        let session = self.0.session().take();
        drop(session);
    }
}

/// Sends and receives until the task is aborted.
async fn drive(driven: Driven, mut watched: Watched, mut route: Route) {
    let shared = &driven.0;
    let mut batch = RxBatch::default();
    let mut is_lost = false;
    loop {
        if is_lost && let Some(elsewhere) = route.follow(shared) {
            watched = elsewhere;
        }
        let server = route.server.address;
        let Watched {
            device,
            ready,
            are_sockets,
        } = &mut watched;
        let wakes_us;
        (wakes_us, is_lost) = send(shared, &mut **device, server);
        let wakes = wakes_us.map(|wakes_us| shared.begun + Duration::from_micros(wakes_us));
        let sleep = async {
            match wakes {
                Some(wakes) => tokio::time::sleep_until(wakes).await,
                None => std::future::pending().await,
            }
        };
        let readiness = async {
            match ready {
                Some(ready) => Some(ready.ready(INTEREST).await),
                // Other tasks have their turn before the device is asked again.
                None if wakes.is_some() => {
                    tokio::task::yield_now().await;
                    None
                }
                // Nothing is expected.
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.asked.notified() => {}
            () = sleep => {}
            readiness = readiness => match readiness {
                Some(Ok(mut ready)) => {
                    let received = receive(shared, &mut **device, server, &mut batch);
                    if ready.ready().is_error() || received == 0 {
                        ready.clear_ready_matching(Ready::ERROR);
                        take_refusals(shared, &**device, server);
                    }
                    if received == 0 || *are_sockets && received < PACKET_BATCH_MAX {
                        ready.clear_ready_matching(Ready::READABLE);
                    }
                }
                // This fails only while the runtime shuts down, which ends the task as well.
                Some(Err(_)) => return,
                None => {
                    receive(shared, &mut **device, server, &mut batch);
                }
            }
        }
    }
}

/// Sends what is due. Returns when it must be called again even if nothing happens, and whether the
/// server does not answer.
fn send(shared: &Shared, device: &mut dyn PacketDevice, server: SocketAddr) -> (Option<u64>, bool) {
    let mut session = shared.session();
    let Some(session) = session.as_mut() else {
        return (None, false);
    };
    let now_us = shared.now_us();
    session.expire(now_us, &mut |answered: Answered, reply| {
        let _ = answered.send(reply.map(Told::of));
    });
    session.transmit(now_us, &mut |port, bytes, segment_bytes| {
        let to = SocketAddr::new(server.ip(), port.unwrap_or(server.port()));
        // A datagram that the kernel does not accept is lost, as any datagram may be.
        device.send(&[Message::segments(to, bytes, segment_bytes)]);
    });
    (session.wakes_us(), session.is_lost())
}

/// Handles the datagrams that have arrived. Returns the number of segment batches.
fn receive(
    shared: &Shared,
    device: &mut dyn PacketDevice,
    server: SocketAddr,
    batch: &mut RxBatch,
) -> usize {
    let received = device.receive(batch);
    let mut session = shared.session();
    let Some(session) = session.as_mut() else {
        return received;
    };
    let now_us = shared.now_us();
    for index in 0..received {
        let port = batch.peer(index).port();
        if port != server.port() && !session.has_port(port) {
            continue;
        }
        for datagram in batch.bytes(index).chunks(batch.segment_bytes(index)) {
            // If the receiver was dropped, the answer is discarded.
            session.receive(datagram, now_us, &mut |answered: Answered, reply| {
                let _ = answered.send(reply.map(Told::of));
            });
        }
    }
    if is_settled(session) {
        shared.settled.notify_waiters();
    }
    received
}

/// Handles reports of datagrams that reached a closed port.
#[cold]
fn take_refusals(shared: &Shared, device: &dyn PacketDevice, server: SocketAddr) {
    let mut session = shared.session();
    let Some(session) = session.as_mut() else {
        return;
    };
    let now_us = shared.now_us();
    let mut quoted = [0; RequestHeader::BYTES];
    while let Some((peer, bytes)) = device.take_refusal(&mut quoted) {
        let is_known_port = peer.port() == server.port();
        let quoted = &quoted[..bytes];
        session.bounce(
            is_known_port,
            quoted,
            now_us,
            &mut |answered: Answered, reply| {
                let _ = answered.send(reply.map(Told::of));
            },
        );
    }
    if is_settled(session) {
        shared.settled.notify_waiters();
    }
}

fn is_settled(session: &Session<Answered>) -> bool {
    session.directory().is_some() || session.is_refused()
}
