//! One encrypted connection, apart from any socket: it encrypts and decrypts bytes.

use std::io::{Read, Write};

use anyhow::{Context, Result, anyhow, bail};
use rustls::{
    Error,
    client::UnbufferedClientConnection,
    pki_types::ServerName,
    unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus},
};

use crate::{Tls, explain};

/// Bytes of the longest record, with its header: 16 KiB of data, and what encryption may add.
pub const RECORD_BYTES_MAX: usize = 5 + (16 << 10) + 256;
/// Bytes that a record adds to its data at most: a header, a nonce, a type and a tag.
const ADDED_BYTES: usize = 64;
/// Data of a full record.
const DATA_BYTES: usize = 16 << 10;

/// An encrypted connection that is established. It has buffers for encrypted bytes; the caller has
/// the socket.
///
/// Data leaves in as few records as it fits into. The buffers grow to the longest burst and stay;
/// what is allocated for each record, of up to 16 KiB, is rustls's.
pub struct Session {
    connection: Box<UnbufferedClientConnection>,
    tls: Tls,
    /// Bytes that have arrived and wait for the rest of their record.
    arrived: Buffer,
    /// Bytes that are to be sent.
    leaving: Buffer,
    ended: bool,
}

/// Bytes `start..end` of a vector that is used in full.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    fn filled(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Room for this many bytes after the others.
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes.len() - self.end < bytes && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let needed = self.end + bytes;
        if self.bytes.len() < needed {
            self.bytes.resize(needed.next_power_of_two(), 0);
        }
        &mut self.bytes[self.end..]
    }

    fn discard(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }
}

impl Session {
    /// Shakes hands over a stream that blocks. `host` is the name or address that the server's
    /// certificate has to bear.
    ///
    /// # Errors
    ///
    /// If the server does not speak TLS, or either side refuses the other. The text says what to
    /// do.
    pub fn begin(tls: &Tls, host: &str, stream: &mut (impl Read + Write)) -> Result<Session> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| anyhow!("{host} is no name that a certificate could bear"))?;
        let connection = UnbufferedClientConnection::new(tls.config.clone(), name);
        let connection = connection.context("TLS cannot be set up")?;
        let mut session = Session {
            connection: Box::new(connection),
            tls: tls.clone(),
            arrived: Buffer::default(),
            leaving: Buffer::default(),
            ended: false,
        };
        loop {
            let progress = session.progress(&[], &mut |_| {});
            // After a failure, this is the alert that tells the server why.
            let sent = stream.write_all(session.leaving.filled());
            progress?;
            sent.and_then(|()| stream.flush())
                .map_err(|error| explain::interrupted(&error))?;
            session.leaving = Buffer::default();
            if !session.connection.is_handshaking() {
                break;
            }
            match stream.read(session.arrived.room(RECORD_BYTES_MAX)) {
                Ok(0) => bail!(explain::CLOSED),
                Ok(bytes) => session.arrived.end += bytes,
                Err(error) => return Err(explain::interrupted(&error)),
            }
        }
        let common = &session.connection;
        if let (Some(version), Some(suite)) =
            (common.protocol_version(), common.negotiated_cipher_suite())
        {
            tls.note(version, suite);
        }
        Ok(session)
    }

    /// Encrypts data, and adds it to the bytes that [leave](Session::leaving).
    ///
    /// # Errors
    ///
    /// If the connection is at its end.
    pub fn seal(&mut self, data: &[u8]) -> Result<()> {
        // All that had arrived has been decrypted when it arrived.
        self.progress(data, &mut |_| {})
    }

    /// Bytes to send, oldest first.
    pub fn leaving(&self) -> &[u8] {
        &self.leaving.bytes[self.leaving.start..self.leaving.end]
    }

    /// The first of these bytes have been sent.
    pub fn sent(&mut self, bytes: usize) {
        self.leaving.discard(bytes);
    }

    /// Where the next bytes from the server belong: at least `bytes` of room, and that of a record.
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.arrived.room(bytes.max(RECORD_BYTES_MAX))
    }

    /// This many bytes have been put there. Hands the data of every complete record to `take`.
    ///
    /// # Errors
    ///
    /// If a record is wrong, or the server refuses this client. The text says what to do.
    pub fn received(&mut self, bytes: usize, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.arrived.end += bytes;
        self.progress(&[], take)
    }

    /// Whether the server has said that it sends nothing more.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Tells the server that nothing more will be sent; the bytes are added to those that leave.
    pub fn end(&mut self) {
        let filled = self.arrived.filled();
        let status = self.connection.process_tls_records(filled);
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state {
            let room = self.leaving.room(ADDED_BYTES);
            self.leaving.end += traffic.queue_close_notify(room).unwrap_or(0);
        }
    }

    /// Decrypts what has arrived, answers what TLS itself has to answer, and encrypts data.
    fn progress(&mut self, data: &[u8], take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let progress = self.turn(data, take);
        progress.map_err(|error| {
            let shaking = self.connection.is_handshaking();
            if !matches!(error, Error::AlertReceived(_)) {
                self.alert();
            }
            explain::refused(&error, &self.tls, shaking)
        })
    }

    /// After a failure: adds the alert that tells the server why to the bytes that leave. rustls
    /// gives it out first, and must not be asked for more after that.
    fn alert(&mut self) {
        let Session {
            connection,
            arrived,
            leaving,
            ..
        } = self;
        let status = connection.process_tls_records(arrived.filled());
        if let Ok(ConnectionState::EncodeTlsData(mut alert)) = status.state {
            leaving.end += alert.encode(leaving.room(ADDED_BYTES)).unwrap_or(0);
        }
    }

    fn turn(&mut self, data: &[u8], take: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        loop {
            let Session {
                connection,
                arrived,
                leaving,
                ended,
                ..
            } = self;
            let UnbufferedStatus { discard, state, .. } =
                connection.process_tls_records(arrived.filled());
            let is_last = match state {
                Err(error) => {
                    arrived.discard(discard);
                    return Err(error);
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        take(record?.payload);
                    }
                    false
                }
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    let mut room = ADDED_BYTES;
                    loop {
                        match message.encode(leaving.room(room)) {
                            Ok(bytes) => {
                                leaving.end += bytes;
                                break;
                            }
                            Err(EncodeError::InsufficientSize(needed)) => {
                                room = needed.required_size;
                            }
                            Err(EncodeError::AlreadyEncoded) => break,
                        }
                    }
                    false
                }
                // The caller sends everything that leaves, in this order.
                Ok(ConnectionState::TransmitTlsData(message)) => {
                    message.done();
                    false
                }
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let mut room = data.len() + (data.len() / DATA_BYTES + 1) * ADDED_BYTES;
                    while !data.is_empty() {
                        match traffic.encrypt(data, leaving.room(room)) {
                            Ok(bytes) => {
                                leaving.end += bytes;
                                break;
                            }
                            Err(EncryptError::InsufficientSize(needed)) => {
                                room = needed.required_size;
                            }
                            Err(EncryptError::EncryptExhausted) => {
                                return Err(Error::EncryptError);
                            }
                        }
                    }
                    true
                }
                Ok(ConnectionState::PeerClosed) => {
                    *ended = true;
                    false
                }
                Ok(ConnectionState::Closed) => {
                    *ended = true;
                    true
                }
                // It needs more bytes.
                Ok(_) => true,
            };
            arrived.discard(discard);
            if is_last {
                return Ok(());
            }
        }
    }
}
