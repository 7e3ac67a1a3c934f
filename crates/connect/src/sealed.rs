//! A stream in an encrypted connection, for tools that read and write one after the other.

use std::io::{self, Read, Write};

use anyhow::Result;

use crate::{Session, Tls};

/// Bytes that one read asks the socket for.
const READ_BYTES: usize = 32 << 10;

/// A blocking stream over TLS.
pub struct Sealed<S: Read + Write> {
    stream: S,
    /// `None` once it has been taken out.
    session: Option<Session>,
    /// Decrypted bytes from `start` on that nobody has read yet.
    data: Vec<u8>,
    start: usize,
}

impl<S: Read + Write> Sealed<S> {
    /// Shakes hands; see [`Session::begin`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn begin(tls: &Tls, host: &str, mut stream: S) -> Result<Sealed<S>> {
        let session = Session::begin(tls, host, &mut stream)?;
        Ok(Sealed {
            stream,
            session: Some(session),
            data: Vec::new(),
            start: 0,
        })
    }

    /// The encryption alone, for a caller that goes on with the socket itself. Nothing may have
    /// arrived that has not been read.
    pub fn into_session(mut self) -> Session {
        debug_assert_eq!(self.start, self.data.len(), "data that nobody would read");
        self.session.take().expect("it is there until now")
    }

    fn session(&mut self) -> &mut Session {
        self.session
            .as_mut()
            .expect("it is taken out only at the end")
    }

    fn send(&mut self) -> io::Result<()> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let sent = self.stream.write_all(session.leaving());
        session.sent(session.leaving().len());
        sent
    }
}

/// The stream over TLS.
pub fn over<S: Read + Write>(tls: &Tls, host: &str, stream: S) -> Result<Sealed<S>> {
    Sealed::begin(tls, host, stream)
}

/// An explained failure of TLS, as streams report failures.
fn failed(error: anyhow::Error) -> io::Error {
    io::Error::other(format!("{error:#}"))
}

impl<S: Read + Write> Read for Sealed<S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.start == self.data.len() {
            self.data.clear();
            self.start = 0;
            let session = self
                .session
                .as_mut()
                .expect("it is taken out only at the end");
            if session.has_ended() {
                return Ok(0);
            }
            // Many servers end without saying so, also memcached.
            let bytes = self.stream.read(session.room(READ_BYTES))?;
            if bytes == 0 {
                return Ok(0);
            }
            let mut take = |data: &[u8]| self.data.extend_from_slice(data);
            session.received(bytes, &mut take).map_err(failed)?;
            self.send()?;
        }
        let bytes = room.len().min(self.data.len() - self.start);
        room[..bytes].copy_from_slice(&self.data[self.start..self.start + bytes]);
        self.start += bytes;
        Ok(bytes)
    }
}

impl<S: Read + Write> Write for Sealed<S> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.session().seal(data).map_err(failed)?;
        self.send()?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl<S: Read + Write> Drop for Sealed<S> {
    fn drop(&mut self) {
        // The server may be gone.
        if let Some(session) = &mut self.session {
            session.end();
            let _ = self.send();
        }
    }
}
