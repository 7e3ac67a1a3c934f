//! A connection that is encrypted.

use std::cell::Cell;
use std::io::IoSlice;
use std::sync::Arc;

use glimmer_base::limits::{TLS_RECEIVES_MAX, TLS_RECORD_BYTES_MAX, TLS_RECORDS_SENT_MAX};
use glimmer_transport::stream::{ByteStream, Handshaking, Ready, Received, Sent};
use glimmer_transport::{Endpoint, Wakeup};
use rustls::ServerConfig;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;

use crate::counters::Counters;
use crate::handshake::{Done, Handshake, Standing};
use crate::kept::Kept;
use crate::open::{CLOSE_NOTIFY, Open, WARNING};
use crate::record::{self, Fault, Slices, kind};

/// Bytes that rustls is reckoned to hold for the next keys of an open connection.
const KERNEL_BYTES: usize = size_of::<KernelConnection<ServerConnectionData>>() + 240;

/// Bytes that an open connection is reckoned to hold beside those.
const OTHER_BYTES: usize = 32;

/// Bytes of an alert: its level and what it says.
const ALERT_BYTES: usize = 2;
const FATAL: u8 = 2;

thread_local! {
    /// Where records are encrypted, before they are sent at once.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A connection that is encrypted, over another stream: the server's end.
///
/// Nothing is received or sent until [`ByteStream::handshake`] says that the handshake is over.
/// Dropping it tells the peer that nothing more comes.
pub struct TlsStream {
    /// Taken when the stream is reset.
    inner: Option<Box<dyn ByteStream>>,
    state: State,
    counters: Arc<Counters>,
    /// Records that the stream below has yet to take.
    held: Vec<u8>,
    /// Bytes of those that it has taken.
    held_sent: usize,
    /// Bytes of the caller that lie encrypted among those: the caller has yet to be told that they
    /// are sent, and offers them again.
    owed: usize,
    /// The stream below did not take all that it was last offered.
    is_slow: bool,
    /// The handshake is not over, or the end of it is not sent.
    is_handshaking: bool,
    /// The client has sent something. One that only looks whether the port is open has not failed.
    has_begun: bool,
    /// The peer sends no more.
    has_ended: bool,
    /// The peer has been told that nothing more comes.
    has_finished: bool,
    /// Bytes of memory that are counted.
    counted: usize,
}

enum State {
    Handshake(Option<Box<Handshake>>),
    Open(Box<Open>),
    Failed,
}

impl TlsStream {
    /// A stream over another one, on which nothing has been received. None if the configuration
    /// does not work.
    pub fn new(
        inner: Box<dyn ByteStream>,
        config: Arc<ServerConfig>,
        counters: Arc<Counters>,
    ) -> Option<TlsStream> {
        let handshake = Handshake::new(config).ok()?;
        let mut stream = TlsStream {
            inner: Some(inner),
            state: State::Handshake(Some(Box::new(handshake))),
            counters,
            held: Vec::new(),
            held_sent: 0,
            owed: 0,
            is_slow: false,
            is_handshaking: true,
            has_begun: false,
            has_ended: false,
            has_finished: false,
            counted: 0,
        };
        stream.recount();
        Some(stream)
    }

    /// Brings the count of memory up to date.
    fn recount(&mut self) {
        let state = match &self.state {
            State::Handshake(Some(handshake)) => handshake.bytes(),
            State::Open(open) => {
                let client = open.client.as_ref().map_or(0, String::capacity);
                let kernel = match open.traffic.kernel {
                    Some(_) => KERNEL_BYTES,
                    None => 0,
                };
                size_of::<Open>() + OTHER_BYTES + kernel + open.kept.capacity() + client
            }
            State::Handshake(None) | State::Failed => 0,
        };
        let now = size_of::<TlsStream>() + state + self.held.capacity();
        if now != self.counted {
            self.counters.recharge(self.counted, now);
            self.counted = now;
        }
    }

    /// Brings the count of memory up to date. Returns false if this connection holds a buffer while
    /// all together hold more than they may: it is closed.
    fn fits(&mut self) -> bool {
        self.recount();
        let is_holding = self.held_bytes() > 0 || matches!(self.state, State::Handshake(_));
        let fits = !is_holding || !self.counters.is_full();
        if !fits {
            self.counters.note_refusal();
            self.has_ended = true;
        }
        fits
    }

    /// Sends what is held. Returns whether nothing is left; none if the connection failed.
    fn flush(&mut self) -> Option<bool> {
        if self.held.is_empty() {
            return Some(true);
        }
        let inner = self.inner.as_mut()?;
        let rest = &self.held[self.held_sent..];
        match inner.send(rest) {
            Sent::All => {}
            Sent::Part(bytes) => {
                self.held_sent += bytes;
                if self.held_sent < self.held.len() {
                    return Some(false);
                }
            }
            Sent::Failed => return None,
        }
        (self.held, self.held_sent) = (Vec::new(), 0);
        Some(true)
    }

    /// The handshake has failed.
    fn fail_handshake(&mut self) {
        if self.has_begun && self.is_handshaking {
            self.counters.note_handshake_error();
        }
        self.state = State::Failed;
        self.is_handshaking = false;
    }

    /// Has the connection fail, tells the peer why, and counts it.
    fn fail(&mut self, fault: Fault) {
        self.counters.note_protocol_error();
        self.send_alert(FATAL, fault as u8);
        self.state = State::Failed;
        self.has_ended = true;
    }

    /// Sends an alert if it can be sent at once: nothing waits for it.
    fn send_alert(&mut self, level: u8, description: u8) {
        let is_free = self.flush() == Some(true);
        if let (State::Open(open), Some(inner), true) = (&mut self.state, &mut self.inner, is_free)
        {
            let alert: [u8; ALERT_BYTES] = [level, description];
            let mut sealed = Vec::with_capacity(record::OVERHEAD_BYTES + ALERT_BYTES + 1);
            (open.traffic.sealer).seal_bytes(kind::ALERT, &alert, &mut sealed);
            let _ = inner.send(&sealed);
        }
        self.has_finished = true;
    }

    /// Tells the peer that nothing more comes, once.
    fn close_notify(&mut self) {
        if !self.has_finished {
            self.send_alert(WARNING, CLOSE_NOTIFY);
        }
    }

    /// Receives into the room of a buffer. Returns the number of bytes of data, and what the stream
    /// below said last.
    fn receive_data(&mut self, into: &mut Vec<u8>, room: usize) -> Result<Received, Fault> {
        let (State::Open(open), Some(inner)) = (&mut self.state, &mut self.inner) else {
            return Ok(match self.is_handshaking {
                true => Received::Drained(0),
                false => Received::Ended,
            });
        };
        let end = into.len() + room;
        let mut received = 0;
        for _ in 0..TLS_RECEIVES_MAX {
            // What was received earlier.
            loop {
                let plain = open.kept.plain();
                let count = plain.len().min(end - into.len());
                into.extend_from_slice(&plain[..count]);
                open.kept.hand_on(count);
                received += count;
                if into.len() == end {
                    return Ok(Received::Full(received));
                }
                if self.has_ended || !open.kept.has_record()? {
                    break;
                }
                let record_kind = open.kept.open(&mut open.traffic.opener)?;
                if record_kind != kind::DATA {
                    let payload = open.kept.plain().to_vec();
                    open.kept.hand_on(payload.len());
                    self.has_ended |= open.control(record_kind, &payload)?.is_end();
                } else if !open.kept.plain().is_empty() {
                    open.key_updates = 0;
                }
            }
            if self.has_ended {
                break;
            }
            let encrypted = open.kept.encrypted();
            let whole = record::record_bytes(encrypted)?;
            let fits = whole.unwrap_or(encrypted.len() + 1) <= end - into.len();
            let last = if fits {
                let start = into.len();
                open.kept.move_to(into);
                let limit = end - into.len();
                let last = inner.receive_at_most(into, limit);
                let closed = open.decrypt(into, start)?;
                self.has_ended |= closed;
                received += into.len() - start;
                last
            } else {
                open.kept.receive(&mut **inner)?
            };
            match last {
                Received::Ended => {
                    if !open.kept.encrypted().is_empty() {
                        // The end of a record is missing.
                        self.counters.note_protocol_error();
                    }
                    self.has_ended = true;
                    break;
                }
                Received::Drained(_) if !self.has_ended && !open.kept.has_record()? => {
                    return Ok(Received::Drained(received));
                }
                _ if received > 0 => break,
                _ => {}
            }
        }
        Ok(match (received, self.has_ended) {
            (0, true) => Received::Ended,
            // More may wait, or the end.
            _ => Received::Full(received),
        })
    }

    /// Encrypts as much as is sent at once, and sends it. Returns how many bytes of the caller that
    /// was and how many of them are sent; none if the connection failed.
    fn send_some(&mut self, slices: &mut Slices<'_>, left: usize) -> Option<(usize, usize)> {
        let (State::Open(open), Some(inner)) = (&mut self.state, &mut self.inner) else {
            return None;
        };
        let mut scratch = SCRATCH.take();
        scratch.clear();
        open.renew_key(&mut scratch)?;
        let records_max = if self.is_slow {
            1
        } else {
            TLS_RECORDS_SENT_MAX
        };
        let mut offered = 0;
        // Where each record ends, and how many bytes of the caller are sent with it.
        let mut ends = [(0, 0); TLS_RECORDS_SENT_MAX];
        let mut records = 0;
        while records < records_max && offered < left {
            let length = (left - offered).min(TLS_RECORD_BYTES_MAX);
            let sealer = &mut open.traffic.sealer;
            sealer.seal(kind::DATA, slices, length, &mut scratch);
            offered += length;
            ends[records] = (scratch.len(), offered);
            records += 1;
        }
        let taken = match inner.send(&scratch) {
            Sent::All => scratch.len(),
            Sent::Part(bytes) => bytes,
            Sent::Failed => return None,
        };
        let whole = ends[..records].iter().rev().find(|(end, _)| *end <= taken);
        let sent = whole.map_or(0, |&(_, sent)| sent);
        self.is_slow = taken < scratch.len();
        if self.is_slow {
            self.held = scratch[taken..].to_vec();
            self.owed = offered - sent;
        }
        SCRATCH.set(scratch);
        Some((offered, sent))
    }
}

impl ByteStream for TlsStream {
    fn receive_at_most(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        let start = into.len();
        let room = (into.capacity() - start).min(bytes_max);
        debug_assert!(
            room > 0,
            "an empty receive looks like the end of the stream"
        );
        let received = self.receive_data(into, room).unwrap_or_else(|fault| {
            into.truncate(start);
            self.fail(fault);
            Received::Ended
        });
        match self.fits() {
            true => received,
            // What was received is whole requests, but nothing more comes.
            false => Received::Ended,
        }
    }

    fn send_parts(&mut self, parts: &[IoSlice<'_>]) -> Sent {
        let all: usize = parts.iter().map(|part| part.len()).sum();
        match self.flush() {
            Some(true) if self.is_handshaking => return Sent::Part(0),
            Some(true) => {}
            Some(false) => return Sent::Part(0),
            None => return Sent::Failed,
        }
        let mut slices = Slices::new(parts);
        let mut sent = std::mem::take(&mut self.owed);
        if sent > all {
            (self.owed, sent) = (sent - all, all);
        }
        slices.skip(sent);
        let mut encrypted = sent;
        while encrypted < all && self.held.is_empty() {
            let Some((offered, of_those)) = self.send_some(&mut slices, all - encrypted) else {
                return Sent::Failed;
            };
            encrypted += offered;
            sent += of_those;
        }
        if !self.fits() {
            return Sent::Failed;
        }
        match sent == all {
            true => Sent::All,
            false => Sent::Part(sent),
        }
    }

    fn wakeup(&self) -> Wakeup<'_> {
        self.inner
            .as_ref()
            .map_or(Wakeup::Poll, |inner| inner.wakeup())
    }

    fn ready(&self) -> Ready {
        let mut ready = self.inner.as_ref().map(|it| it.ready()).unwrap_or_default();
        if let State::Open(open) = &self.state {
            let has_record = open.kept.has_record().unwrap_or(true);
            ready.readable |= has_record || !open.kept.plain().is_empty();
        }
        ready
    }

    fn finish(&mut self) {
        self.close_notify();
        if let Some(inner) = &mut self.inner {
            inner.finish();
        }
    }

    fn reset(mut self: Box<Self>) {
        self.has_finished = true;
        if let Some(inner) = self.inner.take() {
            inner.reset();
        }
    }

    fn local(&self) -> Option<Endpoint> {
        self.inner.as_ref()?.local()
    }

    fn peer(&self) -> Option<Endpoint> {
        self.inner.as_ref()?.peer()
    }

    fn is_handshaking(&self) -> bool {
        self.is_handshaking
    }

    fn handshake(&mut self) -> Handshaking {
        if !self.is_handshaking {
            return Handshaking::Done;
        }
        let mut standing = self.advance_handshake();
        if !self.fits() {
            standing = Handshaking::Failed;
        }
        match standing {
            Handshaking::Waits | Handshaking::GoesOn => {}
            Handshaking::Done => self.is_handshaking = false,
            Handshaking::Failed => {
                self.fail_handshake();
            }
        }
        self.recount();
        standing
    }

    fn held_bytes(&self) -> usize {
        let kept = match &self.state {
            State::Open(open) => open.kept.capacity(),
            State::Handshake(_) | State::Failed => 0,
        };
        kept + self.held.capacity()
    }

    fn client_name(&self) -> Option<&str> {
        match &self.state {
            State::Open(open) => open.client.as_deref(),
            State::Handshake(_) | State::Failed => None,
        }
    }
}

impl TlsStream {
    fn advance_handshake(&mut self) -> Handshaking {
        match self.flush() {
            Some(true) => {}
            Some(false) => return Handshaking::Waits,
            None => return Handshaking::Failed,
        }
        let (State::Handshake(handshake), Some(inner)) = (&mut self.state, &mut self.inner) else {
            return Handshaking::Done;
        };
        let Some(mut handshake) = handshake.take() else {
            return Handshaking::Failed;
        };
        handshake.incoming.reserve(TLS_RECORD_BYTES_MAX / 4);
        let received = inner.receive_at_most(&mut handshake.incoming, TLS_RECORD_BYTES_MAX);
        self.has_begun |= !handshake.incoming.is_empty();
        let mut out = SCRATCH.take();
        out.clear();
        let standing = handshake.advance(&mut out);
        // The client may ask for the figures as soon as it has what is sent next.
        match &standing {
            Standing::Waits(_) => {}
            Standing::Done(done) if done.is_resumed => self.counters.note_resumed(),
            Standing::Done(_) => self.counters.note_new_session(),
            Standing::Failed => self.fail_handshake(),
        }
        self.held = out.clone();
        SCRATCH.set(out);
        let flushed = self.flush();
        match (standing, flushed) {
            (Standing::Failed, _) | (_, None) => Handshaking::Failed,
            (Standing::Waits(mut handshake), Some(is_flushed)) => {
                handshake.incoming.shrink_to_fit();
                self.state = State::Handshake(Some(handshake));
                match received {
                    Received::Ended => Handshaking::Failed,
                    Received::Full(_) if is_flushed => Handshaking::GoesOn,
                    _ => Handshaking::Waits,
                }
            }
            (Standing::Done(done), Some(is_flushed)) => {
                let Done {
                    traffic,
                    rest,
                    client,
                    ..
                } = *done;
                self.state = State::Open(Box::new(Open {
                    traffic,
                    kept: match rest.is_empty() {
                        true => Kept::default(),
                        false => Kept::records(rest),
                    },
                    owes_key: false,
                    key_updates: 0,
                    client,
                }));
                match is_flushed {
                    true => Handshaking::Done,
                    false => Handshaking::Waits,
                }
            }
        }
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        if self.is_handshaking {
            self.fail_handshake();
        }
        self.close_notify();
        self.counters.recharge(self.counted, 0);
    }
}
