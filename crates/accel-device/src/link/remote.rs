//! The server's side: a device at the other end of a socket.
//!
//! A request waits for its answer. When none comes in time, or a wrong one, or the other side has
//! gone, the link ends for good. It shuts the socket down first: the other side looks at the socket
//! before each reply that it gives to a client, so it answers nobody from then on.

use super::frame::{FRAME_BYTES_MAX, HEAD_BYTES, split};
use super::message::{Answer, Request, VERSION};
use super::operation::{Operation, refusal};
use crate::device::{Capabilities, Device, DeviceCounters, DeviceError, Mode, NO_SLOT};
use glimmer_base::limits::LINK_PATIENCE_MS;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Why there is no link. Each is one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens on the socket.
    #[error("no device listens on this socket ({0}): start the circuit's simulation first")]
    NoSocket(io::Error),
    /// The other side does not answer.
    #[error(
        "the other side of the socket does not answer ({0}): does it serve another server \
         already, or is it no device?"
    )]
    Silent(io::Error),
    /// The other side answers something else.
    #[error("the other side of the socket is no device: {0}")]
    NoDevice(String),
    /// The other side speaks another version.
    #[error(
        "the device speaks version {0} of the link's protocol, and the server version {VERSION}: \
         take both from one build"
    )]
    OtherVersion(u16),
}

/// See the module's text.
pub struct Link {
    /// None when the link has ended.
    stream: Option<UnixStream>,
    capabilities: Capabilities,
    buffer: Vec<u8>,
    /// What was counted, as far as it was asked for.
    counters: DeviceCounters,
    on_loss: Box<dyn FnMut(&str) + Send>,
}

impl Link {
    /// Connects to the device that listens on a socket. `on_loss` is told once why the link has
    /// ended, if it ends.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    pub fn connect(
        path: &Path,
        on_loss: impl FnMut(&str) + Send + 'static,
    ) -> Result<Link, ConnectError> {
        let stream = UnixStream::connect(path).map_err(ConnectError::NoSocket)?;
        Link::over(stream, on_loss)
    }

    /// The same over a socket that is connected.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    pub fn over(
        mut stream: UnixStream,
        on_loss: impl FnMut(&str) + Send + 'static,
    ) -> Result<Link, ConnectError> {
        let patience = Some(Duration::from_millis(LINK_PATIENCE_MS));
        let limited = stream.set_read_timeout(patience);
        limited
            .and_then(|()| stream.set_write_timeout(patience))
            .map_err(ConnectError::Silent)?;
        let mut buffer = Vec::new();
        let hello = Request::Hello { version: VERSION };
        match exchange(&mut stream, &mut buffer, &hello) {
            Ok(Answer::Ready(capabilities)) => Ok(Link {
                stream: Some(stream),
                capabilities,
                buffer,
                counters: DeviceCounters::default(),
                on_loss: Box::new(on_loss),
            }),
            Ok(Answer::OtherVersion { version }) => Err(ConnectError::OtherVersion(version)),
            Ok(_) => Err(ConnectError::NoDevice("it answers out of turn".into())),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(ConnectError::NoDevice(error.to_string()))
            }
            Err(error) => Err(ConnectError::Silent(error)),
        }
    }

    fn ask(&mut self, request: &Request<'_>) -> Result<Answer, DeviceError> {
        let stream = self.stream.as_mut().ok_or(DeviceError::Lost)?;
        exchange(stream, &mut self.buffer, request).map_err(|error| self.lose(&reason(&error)))
    }

    fn operate(&mut self, operation: &Operation<'_>) -> Result<Option<usize>, DeviceError> {
        let Answer::Done { rd } = self.ask(&Request::Operate(*operation))? else {
            return Err(self.lose("it answers something else than an operation's result"));
        };
        if let Some(error) = refusal(rd) {
            return Err(error);
        }
        match (operation.has_slot(), usize::try_from(rd)) {
            (true, _) if rd == NO_SLOT.into() => Ok(None),
            (true, Ok(slot)) if slot < self.capabilities.slots => Ok(Some(slot)),
            (false, Ok(0)) => Ok(None),
            _ => Err(self.lose(&format!("{rd:#x} is no result of {operation:?}"))),
        }
    }

    fn lose(&mut self, reason: &str) -> DeviceError {
        if let Some(stream) = self.stream.take() {
            // The other side may have closed it.
            let _ = stream.shutdown(Shutdown::Both);
            (self.on_loss)(reason);
        }
        DeviceError::Lost
    }

    fn check_key(&self, key: &[u8]) -> Result<(), DeviceError> {
        match (1..=self.capabilities.key_bytes_max).contains(&key.len()) {
            true => Ok(()),
            false => Err(DeviceError::Key),
        }
    }
}

impl Device for Link {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn switch_mode(&mut self, mode: Mode) {
        if self.operate(&Operation::SwitchMode(mode)).is_err() {
            self.lose("it does not switch its mode");
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, DeviceError> {
        self.check_key(key)?;
        self.operate(&Operation::Delete { key })
    }

    fn reserve(&mut self, key: &[u8], weight: u8) -> Result<Option<usize>, DeviceError> {
        self.check_key(key)?;
        self.operate(&Operation::Reserve { key, weight })
    }

    fn associate_address(&mut self, slot: usize, address: usize) -> Result<(), DeviceError> {
        let address = u32::try_from(address).map_err(|_| DeviceError::Value)?;
        self.operate(&Operation::Address { slot, address })
            .map(|_| ())
    }

    fn associate_length_and_flags(
        &mut self,
        slot: usize,
        bytes: usize,
        flags: u32,
    ) -> Result<(), DeviceError> {
        let bytes = u32::try_from(bytes).map_err(|_| DeviceError::Value)?;
        self.operate(&Operation::Length { slot, bytes, flags })
            .map(|_| ())
    }

    fn associate_cas(&mut self, slot: usize, cas: u64) -> Result<(), DeviceError> {
        self.operate(&Operation::Cas { slot, cas }).map(|_| ())
    }

    fn write_value(&mut self, slot: usize, memory: &[u8]) -> Result<(), DeviceError> {
        if !(1..=self.capabilities.value_bytes_max).contains(&memory.len()) {
            return Err(DeviceError::Value);
        }
        self.operate(&Operation::WriteValue { slot, memory })
            .map(|_| ())
    }

    fn reset_counts(&mut self) -> Result<(), DeviceError> {
        self.operate(&Operation::ResetCounts).map(|_| ())
    }

    fn count(&self, _slot: usize) -> Option<u8> {
        None
    }

    fn counters(&mut self) -> Option<DeviceCounters> {
        match self.ask(&Request::Count) {
            Ok(Answer::Counts(counters)) => self.counters = counters,
            Ok(_) => drop(self.lose("it answers something else than its counters")),
            Err(_) => {}
        }
        Some(self.counters)
    }

    fn is_lost(&self) -> bool {
        self.stream.is_none()
    }

    fn give_up(&mut self, reason: &str) {
        self.lose(reason);
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("capabilities", &self.capabilities)
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

/// Sends a request, and waits for its answer.
fn exchange(
    stream: &mut UnixStream,
    buffer: &mut Vec<u8>,
    request: &Request<'_>,
) -> io::Result<Answer> {
    buffer.clear();
    request.append_to(buffer);
    stream.write_all(buffer)?;
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head)?;
    let bytes = u32::from_le_bytes(head) as usize;
    buffer.clear();
    buffer.extend(head);
    buffer.resize(HEAD_BYTES + bytes.min(FRAME_BYTES_MAX), 0);
    let malformed = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    if split(buffer).map_err(malformed)?.is_some() {
        stream.read_exact(&mut buffer[HEAD_BYTES..])?;
    }
    Answer::read(&buffer[HEAD_BYTES..]).map_err(malformed)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("it has not answered for {LINK_PATIENCE_MS} ms")
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => "it has ended".to_owned(),
        _ => error.to_string(),
    }
}
