//! Clients that ask for a large value again and again, and take it slowly.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use glimmer_loadgen::driver::Dialect;
use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};

/// How often each client takes a piece of what it has asked for.
const PERIOD: Duration = Duration::from_millis(100);
/// Bytes of a piece, and of the socket's receive buffer: the kernel takes little more in advance.
const PIECE_BYTES: usize = 64 << 10;
const KEY: &str = "slow-readers";

/// What slow readers ask of a server.
#[derive(Clone, Copy, Debug)]
pub struct SlowReaders {
    /// The server.
    pub server: SocketAddr,
    /// Its protocol: [`Dialect::Resp`], or else memcached's text.
    pub dialect: Dialect,
    /// Connections.
    pub clients: usize,
    /// Bytes of the value that they read.
    pub value_bytes: usize,
}

impl SlowReaders {
    /// Stores the value.
    pub fn store(&self) -> Result<()> {
        let (request, reply) = match self.dialect {
            Dialect::Resp => {
                let (name, bytes) = (KEY.len(), self.value_bytes);
                let words = format!("*3\r\n$3\r\nSET\r\n${name}\r\n{KEY}\r\n${bytes}\r\n");
                (words, "+OK\r\n")
            }
            _ => (
                format!("set {KEY} 0 0 {}\r\n", self.value_bytes),
                "STORED\r\n",
            ),
        };
        let mut stream = TcpStream::connect(self.server)?;
        let value = vec![b'v'; self.value_bytes];
        stream.write_all(&[request.as_bytes(), &value, b"\r\n"].concat())?;
        let mut answer = vec![0; reply.len()];
        stream.read_exact(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        ensure!(
            answer == reply,
            "a value of {} bytes: {answer}",
            self.value_bytes
        );
        Ok(())
    }

    /// Does the work beside these clients. Returns what came of it, and how often the server closed
    /// a connection of theirs.
    pub fn beside<T>(&self, work: impl FnOnce() -> T) -> Result<(T, u64)> {
        let (is_over, closed) = (AtomicBool::new(false), AtomicU64::new(0));
        let clients = (0..self.clients).map(|_| Client::connect(self));
        let mut clients = clients.collect::<Result<Vec<Client>>>()?;
        for client in &mut clients {
            client.go_on(self)?;
        }
        thread::scope(|scope| {
            let readers = scope.spawn(|| -> Result<()> {
                let pause = PERIOD / self.clients.max(1) as u32;
                for place in (0..clients.len()).cycle() {
                    if is_over.load(Relaxed) {
                        break;
                    }
                    if !clients[place].go_on(self)? {
                        closed.fetch_add(1, Relaxed);
                        clients[place] = Client::connect(self)?;
                    }
                    thread::sleep(pause);
                }
                Ok(())
            });
            let done = work();
            is_over.store(true, Relaxed);
            let readers = readers.join();
            readers.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((done, closed.load(Relaxed)))
        })
    }

    fn request(&self) -> String {
        match self.dialect {
            Dialect::Resp => format!("*2\r\n$3\r\nGET\r\n${}\r\n{KEY}\r\n", KEY.len()),
            _ => format!("get {KEY}\r\n"),
        }
    }

    fn reply_bytes(&self) -> usize {
        let bytes = self.value_bytes;
        let around = match self.dialect {
            Dialect::Resp => format!("${bytes}\r\n\r\n"),
            _ => format!("VALUE {KEY} 0 {bytes}\r\n\r\nEND\r\n"),
        };
        around.len() + bytes
    }
}

/// One slow reader.
struct Client {
    stream: TcpStream,
    /// Bytes of its reply that it has not taken.
    left: usize,
}

impl Client {
    fn connect(what: &SlowReaders) -> Result<Client> {
        let family = match what.server {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let stream = socket(family, SocketType::STREAM, None)?;
        // Before the connection is made, because the kernel offers the window then.
        sockopt::set_socket_recv_buffer_size(&stream, PIECE_BYTES)?;
        connect(&stream, &what.server).context("a slow reader")?;
        let stream = TcpStream::from(stream);
        stream.set_nonblocking(true)?;
        Ok(Client { stream, left: 0 })
    }

    /// Takes a piece, or asks for the value again. Returns whether the server has left the
    /// connection open.
    fn go_on(&mut self, what: &SlowReaders) -> Result<bool> {
        if self.left == 0 {
            self.left = what.reply_bytes();
            return Ok(self.stream.write_all(what.request().as_bytes()).is_ok());
        }
        let mut piece = [0; PIECE_BYTES];
        let bytes_max = self.left.min(PIECE_BYTES);
        match self.stream.read(&mut piece[..bytes_max]) {
            Ok(0) => Ok(false),
            Ok(bytes) => {
                self.left -= bytes;
                Ok(true)
            }
            Err(error) => Ok(error.kind() == ErrorKind::WouldBlock),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::BufRead, io::BufReader, net::TcpListener, time::Instant};

    /// A server that sends the value's bytes as fast as they are taken, and closes each
    /// connection after its first reply.
    #[test]
    fn they_ask_again_and_notice_that_they_are_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let readers = SlowReaders {
            server: listener.local_addr().unwrap(),
            dialect: Dialect::Text,
            clients: 1,
            value_bytes: 1_000,
        };
        let reply = format!("VALUE {KEY} 0 1000\r\n{}\r\nEND\r\n", "v".repeat(1_000));
        assert_eq!(readers.reply_bytes(), reply.len());
        thread::scope(|scope| {
            let server = scope.spawn(|| {
                for _ in 0..2 {
                    let (stream, _) = listener.accept().unwrap();
                    let mut lines = BufReader::new(&stream);
                    for _ in 0..2 {
                        let mut line = String::new();
                        lines.read_line(&mut line).unwrap();
                        assert_eq!(line, format!("get {KEY}\r\n"));
                        (&stream).write_all(reply.as_bytes()).unwrap();
                    }
                }
                // The third one stays.
                listener.accept().unwrap().0
            });
            let begin = Instant::now();
            let work = || {
                while !server.is_finished() && begin.elapsed() < Duration::from_secs(60) {
                    thread::sleep(Duration::from_millis(1));
                }
            };
            let ((), closed) = readers.beside(work).unwrap();
            assert_eq!(closed, 2);
        });
    }
}
