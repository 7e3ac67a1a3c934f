//! Many connections of hostile clients, driven by one thread.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustix::{
    io::Errno,
    net::{AddressFamily, SocketType, connect, socket, sockopt, sockopt::Timeout},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// Descriptors of this process other than these connections.
const DESCRIPTORS_OWN: usize = 64;
/// A server that takes longer to accept a connection counts as refusing it.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// Raises this process's limit of open descriptors for this many connections. Returns how many are
/// possible.
pub fn raise_descriptor_limit(connections: usize) -> Result<usize> {
    let wanted = (connections + DESCRIPTORS_OWN) as u64;
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current.unwrap_or(u64::MAX);
    if soft >= wanted {
        return Ok(connections);
    }
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let raise = |current, maximum| {
        let limit = Rlimit {
            current: Some(current),
            maximum: Some(maximum),
        };
        setrlimit(Resource::Nofile, limit).map(|()| current)
    };
    // Root may raise the hard limit as well; other users get what it allows.
    let raised = raise(wanted, hard.max(wanted));
    let raised = raised
        .or_else(|_| raise(hard.min(wanted), hard))
        .unwrap_or(soft);
    let fitting = (raised as usize)
        .saturating_sub(DESCRIPTORS_OWN)
        .min(connections);
    ensure!(
        fitting > 0,
        "no descriptors: the limit is {raised} (ulimit -n)"
    );
    Ok(fitting)
}

/// Makes a connection end with a reset, so that its port is free at once.
pub(super) fn reset_on_close(stream: &TcpStream) -> Result<()> {
    Ok(sockopt::set_socket_linger(stream, Some(Duration::ZERO))?)
}

/// A hostile client.
#[derive(Default)]
struct Villain {
    /// Its connection; `None` if it is closed.
    stream: Option<TcpStream>,
    /// Bytes of its message that it has sent on this connection.
    sent: usize,
    /// Bytes that it has received.
    taken: usize,
}

/// Many hostile clients. Connections that the server closes are counted and may be opened again.
pub struct Crowd {
    address: SocketAddr,
    /// Size of each client's receive buffer; `None` for the system's default.
    receive_bytes: Option<usize>,
    villains: Vec<Villain>,
    /// Connections that were opened.
    pub opened: u64,
    /// Connections that the server closed or refused.
    pub closed: u64,
}

impl Crowd {
    /// This many clients, none of them connected yet.
    pub fn new(address: SocketAddr, count: usize, receive_bytes: Option<usize>) -> Crowd {
        Crowd {
            address,
            receive_bytes,
            villains: (0..count).map(|_| Villain::default()).collect(),
            opened: 0,
            closed: 0,
        }
    }

    /// The number of clients.
    pub fn len(&self) -> usize {
        self.villains.len()
    }

    /// Whether there are no clients.
    pub fn is_empty(&self) -> bool {
        self.villains.is_empty()
    }

    /// Client `number` sends the rest of `words`, as much as the server accepts at once. Connects
    /// the client first if it is not connected.
    pub fn say(&mut self, number: usize, words: &[u8]) -> Result<()> {
        self.say_next(number, |sent| words.get(sent..).unwrap_or_default())
    }

    /// Client `number` sends what `next` says follows the bytes that it has sent on its connection,
    /// as much as the server accepts at once. Connects the client first if it is not connected.
    pub fn say_next<'w>(
        &mut self,
        number: usize,
        next: impl FnOnce(usize) -> &'w [u8],
    ) -> Result<()> {
        if self.villains[number].stream.is_none() {
            let stream = self.connect();
            self.opened += 1;
            let villain = &mut self.villains[number];
            *villain = Villain::default();
            match stream {
                Ok(stream) => villain.stream = Some(stream),
                Err(error) if is_refusal(&error) => {
                    self.closed += 1;
                    return Ok(());
                }
                Err(error) => return Err(error).context("connecting a hostile client"),
            }
        }
        let villain = &mut self.villains[number];
        let Some(stream) = &mut villain.stream else {
            return Ok(());
        };
        let mut words = next(villain.sent);
        while !words.is_empty() {
            match stream.write(words) {
                Ok(bytes) => {
                    villain.sent += bytes;
                    words = &words[bytes..];
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    villain.stream = None;
                    self.closed += 1;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Client `number` receives at most as many bytes as `into` holds. Returns their number, and
    /// notes if the server has closed the connection.
    pub fn take(&mut self, number: usize, into: &mut [u8]) -> usize {
        let villain = &mut self.villains[number];
        let Some(stream) = &mut villain.stream else {
            return 0;
        };
        match stream.read(into) {
            Ok(bytes @ 1..) => {
                villain.taken += bytes;
                bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Ok(_) | Err(_) => {
                villain.stream = None;
                self.closed += 1;
                0
            }
        }
    }

    /// Bytes that client `number` has received on its connection.
    pub fn taken(&self, number: usize) -> usize {
        self.villains[number].taken
    }

    /// A short summary of what happened to them.
    pub fn notes(&self) -> String {
        format!(
            "{} opened, {} closed by the server",
            self.opened, self.closed
        )
    }

    fn connect(&self) -> Result<TcpStream, Errno> {
        let family = match self.address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = socket(family, SocketType::STREAM, None)?;
        if let Some(bytes) = self.receive_bytes {
            // Before connecting, because the window is negotiated then.
            sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
        }
        sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        // The send timeout also covers connecting.
        sockopt::set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_MAX))?;
        connect(&socket, &self.address)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(TcpStream::from(socket))
    }
}

/// Whether the connection failed because of the server and not because of this machine.
fn is_refusal(error: &Errno) -> bool {
    matches!(
        *error,
        Errno::CONNREFUSED | Errno::CONNRESET | Errno::TIMEDOUT | Errno::INPROGRESS
    )
}
