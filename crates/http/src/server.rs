//! The sockets, and who waits for them.

use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use glimmer_base::limits::HTTP_CONNECTIONS_MAX;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use crate::connection::{Connection, Finish};
use crate::{Reply, Request};

/// Connections that wait in the kernel to be accepted.
const BACKLOG: i32 = 64;

/// For how long no connection is accepted after one could not be, as when descriptors have run out.
/// The connections that wait would end each wait at once.
const ACCEPT_PAUSE_MS: u64 = 100;

/// Serves pages at some addresses.
pub struct Server {
    listeners: Vec<TcpListener>,
    connections: Vec<Connection<TcpStream>>,
    wake: Arc<OwnedFd>,
    began: Instant,
    /// Until when no connection is accepted, in milliseconds since it began.
    pauses_until_ms: u64,
    accept_error: Option<io::Error>,
}

/// Ends the wait of a server, from any thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Ends the wait that is in progress, or the next one.
    pub fn wake(&self) {
        // This fails only if the server has been woken very often, and is awake.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl Server {
    /// Listens at these addresses. A port of 0 is replaced by a free one.
    ///
    /// # Errors
    ///
    /// The address that cannot be listened at, with the reason.
    pub fn bind(addresses: &[SocketAddr]) -> Result<Server, (SocketAddr, io::Error)> {
        let listeners = addresses.iter().map(|&address| {
            let listener = listener_at(address);
            listener.map_err(|error| (address, error))
        });
        let first = |error| {
            let any = SocketAddr::from(([0, 0, 0, 0], 0));
            (addresses.first().copied().unwrap_or(any), error)
        };
        Server::over(listeners.collect::<Result<_, _>>()?).map_err(first)
    }

    /// Serves at sockets that listen already.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn over(listeners: Vec<TcpListener>) -> io::Result<Server> {
        for listener in &listeners {
            listener.set_nonblocking(true)?;
        }
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Server {
            listeners,
            connections: Vec::new(),
            wake: Arc::new(wake),
            began: Instant::now(),
            pauses_until_ms: 0,
            accept_error: None,
        })
    }

    /// Where it listens, with the ports that were chosen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let addresses = self.listeners.iter().map(TcpListener::local_addr);
        addresses.flatten().collect()
    }

    /// What ends a wait.
    pub fn waker(&self) -> Waker {
        Waker(self.wake.clone())
    }

    /// Why a connection could not be accepted, if that has happened since the last call.
    pub fn take_accept_error(&mut self) -> Option<io::Error> {
        self.accept_error.take()
    }

    /// Waits until a client wants something, at most for this long, and serves it. `answer` gives
    /// the reply to a request.
    pub fn turn(&mut self, wait_ms: u64, answer: &mut dyn FnMut(&Request<'_>) -> Reply) {
        let now_ms = self.now_ms();
        let deadlines = self.connections.iter().map(Connection::deadline_ms);
        let mut wait_ms = deadlines
            .map(|it| it.saturating_sub(now_ms))
            .fold(wait_ms, u64::min);
        if self.connections.iter().any(Connection::is_waiting) {
            wait_ms = 0;
        }
        let listeners = match self.pauses_until_ms.saturating_sub(now_ms) {
            0 => &self.listeners[..],
            pause_ms => {
                wait_ms = wait_ms.min(pause_ms);
                &[]
            }
        };
        // An error that is not a signal's would come again at once; the sockets are looked at.
        let ready = self.wait(wait_ms, listeners).unwrap_or_default();
        let now_ms = self.now_ms();
        let mut index = 0;
        self.connections.retain_mut(|connection| {
            let is_ready = ready.connections.get(index) == Some(&true) || connection.is_waiting();
            index += 1;
            let is_open = !is_ready || connection.serve(now_ms, answer).unwrap_or(false);
            is_open && connection.deadline_ms() > now_ms
        });
        if ready.listeners {
            self.accept(now_ms, answer);
        }
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn wait(&self, wait_ms: u64, listeners: &[TcpListener]) -> io::Result<Ready> {
        let of = |connection: &Connection<_>| match connection.is_sending() {
            true => PollFlags::OUT,
            false => PollFlags::IN,
        };
        let wake = std::iter::once(PollFd::new(&*self.wake, PollFlags::IN));
        let (count, listeners) = (listeners.len(), listeners.iter());
        let listeners = listeners.map(|it| PollFd::new(it, PollFlags::IN));
        let connections = self
            .connections
            .iter()
            .map(|it| PollFd::new(&it.stream, of(it)));
        let mut polled: Vec<PollFd<'_>> = wake.chain(listeners).chain(connections).collect();
        let timeout = Timespec {
            tv_sec: (wait_ms / 1000) as i64,
            tv_nsec: (wait_ms % 1000 * 1_000_000) as i64,
        };
        poll(&mut polled, Some(&timeout))?;
        let is_ready = |it: &PollFd<'_>| !it.revents().is_empty();
        if is_ready(&polled[0]) {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        let (listeners, connections) = polled[1..].split_at(count);
        Ok(Ready {
            listeners: listeners.iter().any(is_ready),
            connections: connections.iter().map(is_ready).collect(),
        })
    }

    /// Takes the connections that wait, and serves what they have sent already.
    fn accept(&mut self, now_ms: u64, answer: &mut dyn FnMut(&Request<'_>) -> Reply) {
        for listener in &self.listeners {
            // A peer that connects in a loop must not keep the others waiting.
            for _ in 0..HTTP_CONNECTIONS_MAX {
                let stream = match listener.accept() {
                    Ok((stream, _)) => stream,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    // The client has left meanwhile.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                    Err(error) => {
                        self.pauses_until_ms = now_ms + ACCEPT_PAUSE_MS;
                        self.accept_error = Some(error);
                        break;
                    }
                };
                if stream.set_nonblocking(true).is_err() {
                    continue;
                }
                let _ = stream.set_nodelay(true);
                let mut connection = Connection::new(stream, now_ms);
                if connection.serve(now_ms, answer).unwrap_or(false) {
                    make_room(&mut self.connections, now_ms);
                    self.connections.push(connection);
                }
            }
        }
    }
}

impl Finish for TcpStream {
    fn finish(&mut self) {
        // This fails if the connection has failed already.
        let _ = self.shutdown(Shutdown::Write);
    }
}

/// Which sockets are ready.
#[derive(Default)]
struct Ready {
    listeners: bool,
    connections: Vec<bool>,
}

/// Closes the connection that has been silent for longest if there are as many as there may be.
fn make_room(connections: &mut Vec<Connection<TcpStream>>, now_ms: u64) {
    if connections.len() < HTTP_CONNECTIONS_MAX {
        return;
    }
    let silent = connections.iter().enumerate();
    let silent = silent.max_by_key(|(_, connection)| connection.silent_ms(now_ms));
    if let Some((index, _)) = silent {
        connections.swap_remove(index);
    }
}

fn listener_at(address: SocketAddr) -> io::Result<TcpListener> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        // The same port of IPv4 is an address of its own.
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    bind(socket.as_fd(), &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}
