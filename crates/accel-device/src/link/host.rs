//! The device's side of a link, for the process that simulates the circuit. It does not wait unless
//! it is told to, so that a simulator can go on clocking.

use super::frame::{Malformed, split};
use super::message::{Answer, Request, VERSION};
use super::operation::carry_out;
use crate::device::{Capabilities, Device, DeviceCounters};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Bytes that are read at once.
const READ_BYTES: usize = 4096;

/// Why a link has ended that was not closed between two requests.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The server sends something else than requests.
    #[error("the server sends what is no request: {0}")]
    Malformed(#[from] Malformed),
    /// The first request, or a later one, is out of turn.
    #[error("the server sends a request out of turn")]
    Turn,
    /// The server speaks another version.
    #[error("the server speaks version {0} of the protocol, and the device version {VERSION}")]
    OtherVersion(u16),
    /// The socket fails.
    #[error("the socket fails: {0}")]
    Socket(#[from] io::Error),
}

/// The device's side of a link to a server.
#[derive(Debug)]
pub struct Host {
    stream: UnixStream,
    capabilities: Capabilities,
    /// What was received and has not been carried out.
    received: Vec<u8>,
    is_greeted: bool,
    has_ended: bool,
}

impl AsFd for Host {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Host {
    /// The side of a device that can do this, and whose slots are all empty. The server's first
    /// request has not been read.
    ///
    /// # Errors
    ///
    /// The socket's.
    pub fn new(stream: UnixStream, capabilities: Capabilities) -> io::Result<Host> {
        stream.set_nonblocking(true)?;
        Ok(Host {
            stream,
            capabilities,
            received: Vec::new(),
            is_greeted: false,
            has_ended: false,
        })
    }

    /// Whether the server is there. To be asked before each reply to a client: when it is not, the
    /// device answers nobody any more, because nobody tells it of changes.
    pub fn is_there(&self) -> bool {
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut fds = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let polled = poll(&mut fds, Some(&Timespec::default()));
        !self.has_ended && polled.is_ok() && !fds[0].revents().intersects(gone)
    }

    /// Waits until there is something to read, or the server has gone, for this long at most.
    ///
    /// # Errors
    ///
    /// The socket's.
    pub fn wait(&self, most: Duration) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: most.as_secs() as _,
            tv_nsec: most.subsec_nanos().into(),
        };
        poll(
            &mut [PollFd::new(&self.stream, PollFlags::IN)],
            Some(&timeout),
        )?;
        Ok(())
    }

    /// Carries out what the server asks for, as far as it has come, by `operate` and `count`. The
    /// first of them returns an operation's result register. Returns whether the server is there.
    ///
    /// # Errors
    ///
    /// Why the link has ended. The device answers nobody any more.
    pub fn serve(
        &mut self,
        mut carry_out: impl FnMut(&Request<'_>) -> Answer,
    ) -> Result<bool, HostError> {
        let served = self.serve_some(&mut carry_out);
        self.has_ended |= !matches!(served, Ok(true));
        served
    }

    /// The same on a device in this process.
    ///
    /// # Errors
    ///
    /// Why the link has ended. The device answers nobody any more.
    pub fn serve_device(
        &mut self,
        device: &mut (impl Device + ?Sized),
        mut count: impl FnMut() -> DeviceCounters,
    ) -> Result<bool, HostError> {
        self.serve(|request| match request {
            Request::Operate(operation) => Answer::Done {
                rd: carry_out(operation, device),
            },
            _ => Answer::Counts(count()),
        })
    }

    fn serve_some(
        &mut self,
        carry_out: &mut impl FnMut(&Request<'_>) -> Answer,
    ) -> Result<bool, HostError> {
        let is_open = self.receive()?;
        let (mut done, mut answers) = (0, Vec::new());
        while let Some((frame, bytes)) = split(&self.received[done..])? {
            let request = Request::read(frame)?;
            done += bytes;
            let answer = match (self.is_greeted, request) {
                (false, Request::Hello { version: VERSION }) => Answer::Ready(self.capabilities),
                (false, Request::Hello { version }) => {
                    Answer::OtherVersion { version: VERSION }.append_to(&mut answers);
                    self.send(&answers)?;
                    return Err(HostError::OtherVersion(version));
                }
                (true, Request::Operate(_) | Request::Count) => carry_out(&request),
                _ => return Err(HostError::Turn),
            };
            self.is_greeted = true;
            answer.append_to(&mut answers);
        }
        self.received.drain(..done);
        if is_open {
            self.send(&answers)?;
        }
        Ok(is_open)
    }

    /// Reads what has come. Returns whether more may come.
    fn receive(&mut self) -> io::Result<bool> {
        let mut bytes = [0; READ_BYTES];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(false),
                Ok(count) => self.received.extend(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // One request is under way at a time, so there is no more than its frame.
            if matches!(split(&self.received), Ok(Some(_)) | Err(_)) {
                return Ok(true);
            }
        }
    }

    /// Answers are short, and the server waits for each, so the socket has room for them.
    fn send(&mut self, answers: &[u8]) -> io::Result<()> {
        match answers.is_empty() {
            true => Ok(()),
            false => self.stream.write_all(answers),
        }
    }
}
