//! One connection: requests on their way out, steps of replies awaited, bytes received.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
};

use anyhow::{Context, Result, bail};

use super::{Protocol, Step, Taken, Tally, excerpt};

/// Bytes received at once. More than a burst of replies, and fifty of them stay in a core's own cache.
const INPUT_BYTES: usize = 16 << 10;

/// A non-blocking connection with requests under way.
pub struct Connection {
    socket: TcpStream,
    /// Requests built and not yet handed to the kernel.
    pub out: Vec<u8>,
    written: usize,
    /// Steps of replies not yet seen, oldest first.
    pub steps: VecDeque<Step>,
    input: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Connection {
    /// Connects to a server on this machine.
    pub fn open(address: SocketAddr) -> Result<Connection> {
        let socket =
            TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Connection {
            socket,
            out: Vec::with_capacity(INPUT_BYTES),
            written: 0,
            steps: VecDeque::with_capacity(256),
            input: vec![0; INPUT_BYTES].into(),
            start: 0,
            end: 0,
        })
    }

    /// The socket, to be waited on.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Whether requests are left that the kernel has not taken.
    pub fn has_output(&self) -> bool {
        self.written < self.out.len()
    }

    /// Hands requests to the kernel, as far as it takes them.
    pub fn send(&mut self) -> Result<()> {
        while self.has_output() {
            match self.socket.write(&self.out[self.written..]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("sending requests"),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// Receives what is there, once, and counts the replies that are complete. `on_reply` is told when the last step of a request's reply has
    /// been taken (the steps of reads of several keys count one by one).
    #[inline]
    pub fn receive(
        &mut self,
        protocol: &impl Protocol,
        tally: &mut Tally,
        mut on_reply: impl FnMut(Step),
    ) -> Result<()> {
        match self.socket.read(&mut self.input[self.end..]) {
            Ok(0) => bail!("the server closed the connection"),
            Ok(bytes) => self.end += bytes,
            Err(error) if is_transient(&error) => return Ok(()),
            Err(error) => return Err(error).context("receiving replies"),
        }
        while let Some(&step) = self.steps.front() {
            let input = &self.input[self.start..self.end];
            let bytes = match protocol.take(step, input) {
                Taken::Incomplete => break,
                Taken::Hit { bytes } => {
                    tally.hits += 1;
                    bytes
                }
                Taken::Miss { bytes } => {
                    tally.misses += 1;
                    bytes
                }
                Taken::Done { bytes } => {
                    tally.writes += u64::from(step == Step::Set);
                    bytes
                }
                Taken::Wrong => bail!("expected the reply to {step:?}, got {:?}", excerpt(input)),
            };
            self.start += bytes;
            self.steps.pop_front();
            on_reply(step);
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.input.len() {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.steps.is_empty() && self.end > 0 {
            bail!(
                "got bytes that nobody asked for: {:?}",
                excerpt(&self.input[..self.end])
            );
        }
        Ok(())
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
