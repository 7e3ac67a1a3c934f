//! Streams inside this process, with faults determined by a seed.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use glimmer_base::limits::STREAM_BUFFER_BYTES;

use super::{ByteStream, Ready, Received, Sent, StreamListener};
use crate::Endpoint;
use crate::chance::Chance;
use crate::signal::Signal;
use crate::wakeup::Wakeup;

/// Faults of a stream. Probabilities are between 0 and 1; by default there are no faults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamFaults {
    /// A receive returns only some of the sent bytes. The others are still on the way and are
    /// reported later.
    pub short_read: f64,
    /// A send accepts only some of the bytes for which there is room, perhaps none.
    pub short_write: f64,
    /// A receive or a send finds that the connection was reset.
    pub reset: f64,
    /// Capacity of each direction in bytes; at least 1.
    pub buffer_bytes: usize,
}

impl Default for StreamFaults {
    fn default() -> Self {
        StreamFaults {
            short_read: 0.0,
            short_write: 0.0,
            reset: 0.0,
            buffer_bytes: STREAM_BUFFER_BYTES,
        }
    }
}

/// One end of a connection inside this process. A poller of signals reports it.
pub struct LocalStream {
    connection: Arc<Mutex<Connection>>,
    /// The index of this end: it writes to the pipe with this index and reads from the other.
    end: usize,
    signal: Signal,
}

/// Both directions of a connection.
struct Connection {
    pipes: [Pipe; 2],
    names: [SocketAddr; 2],
    /// The signals of both ends.
    signals: [Signal; 2],
    faults: StreamFaults,
    random: Chance,
    is_reset: bool,
}

#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    /// The writer has finished.
    has_ended: bool,
    /// The reader is gone: any write resets the connection.
    is_deaf: bool,
    /// What the writer sends without a pause, after `bytes`.
    flood: Option<Flood>,
}

/// Bytes of a flood that are kept, at least, so that few copies make a receive.
const FLOOD_BYTES: usize = 4 << 10;

/// What an end sends that never stops.
struct Flood {
    bytes: Box<[u8]>,
    /// Where in `bytes` the next receive begins.
    at: usize,
    /// Receives that have brought some of it.
    receives: u64,
    receives_max: u64,
}

impl Pipe {
    /// Whether the reader finds bytes however much it has received.
    fn is_flooded(&self) -> bool {
        let goes_on = |flood: &Flood| flood.receives < flood.receives_max;
        !self.has_ended && self.flood.as_ref().is_some_and(goes_on)
    }
}

impl Flood {
    /// Appends this many bytes.
    fn pour(&mut self, mut count: usize, into: &mut Vec<u8>) {
        self.receives += 1;
        while count > 0 {
            let rest = &self.bytes[self.at..];
            let poured = rest.len().min(count);
            into.extend_from_slice(&rest[..poured]);
            self.at = (self.at + poured) % self.bytes.len();
            count -= poured;
        }
    }
}

impl LocalStream {
    /// Both ends of a connection. Its faults are determined by the seed and the order of calls. The
    /// names belong to the first and the second end.
    ///
    /// # Panics
    ///
    /// If a probability is not between 0 and 1, or the buffer has no capacity.
    pub fn pair(faults: StreamFaults, names: [SocketAddr; 2], seed: u64) -> [LocalStream; 2] {
        for probability in [faults.short_read, faults.short_write, faults.reset] {
            assert!((0.0..=1.0).contains(&probability), "{probability}");
        }
        assert!(faults.buffer_bytes > 0, "no byte fits");
        let signals = [Signal::default(), Signal::default()];
        let connection = Arc::new(Mutex::new(Connection {
            pipes: Default::default(),
            names,
            signals: signals.clone(),
            faults,
            random: Chance::new(seed),
            is_reset: false,
        }));
        let mut at = 0;
        signals.map(|signal| {
            let end = at;
            at += 1;
            let stream = LocalStream {
                connection: connection.clone(),
                end,
                signal,
            };
            stream.signal.note(stream.ready());
            stream
        })
    }

    /// What happens from here on to this connection, in both directions.
    pub fn set_faults(&self, faults: StreamFaults) {
        self.lock().faults = faults;
    }

    /// From here on, this end never stops sending. Whenever the other end has received what was
    /// sent, it finds these bytes again, until it has received them this many times: a receiver
    /// that goes on for as long as there is something must come to an end in a test.
    ///
    /// # Panics
    ///
    /// If there are no bytes.
    pub fn flood(&self, bytes: &[u8], receives_max: u64) {
        assert!(!bytes.is_empty(), "nothing is no flood");
        let mut connection = self.lock();
        connection.pipes[self.end].flood = Some(Flood {
            bytes: bytes.repeat(FLOOD_BYTES.div_ceil(bytes.len())).into(),
            at: 0,
            receives: 0,
            receives_max,
        });
        connection.tell(1 - self.end);
    }

    /// How many receives of the other end have brought bytes of the flood.
    pub fn flooded(&self) -> u64 {
        let connection = self.lock();
        let flood = connection.pipes[self.end].flood.as_ref();
        flood.map_or(0, |flood| flood.receives)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Whether the connection fails, now or earlier.
    fn fails(&mut self) -> bool {
        if !self.is_reset && self.random.happens(self.faults.reset) {
            self.reset();
        }
        self.is_reset
    }

    fn reset(&mut self) {
        self.is_reset = true;
        self.pipes.iter_mut().for_each(|pipe| pipe.bytes.clear());
        self.tell(0);
        self.tell(1);
    }

    /// The readiness of an end.
    fn ready(&self, end: usize) -> Ready {
        let [out, incoming] = [end, 1 - end].map(|pipe| &self.pipes[pipe]);
        let fails = self.is_reset;
        Ready {
            readable: fails
                || !incoming.bytes.is_empty()
                || incoming.has_ended
                || incoming.is_flooded(),
            writable: fails || out.is_deaf || out.bytes.len() < self.faults.buffer_bytes,
            hung_up: fails || incoming.has_ended,
        }
    }

    /// Reports a change to the watcher of an end.
    fn tell(&self, end: usize) {
        self.signals[end].change(self.ready(end));
    }

    /// An end sent or received. Reports to the other end if anything moved, and to this end if more
    /// is possible although it was told otherwise.
    fn settle(&self, end: usize, has_moved: bool, has_more: bool) {
        if has_moved {
            self.tell(1 - end);
        }
        match has_more {
            true => self.tell(end),
            false => self.signals[end].note(self.ready(end)),
        }
    }
}

impl ByteStream for LocalStream {
    fn receive_at_most(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        let room = (into.capacity() - into.len()).min(bytes_max);
        debug_assert!(
            room > 0,
            "an empty receive looks like the end of the stream"
        );
        let mut connection = self.lock();
        if connection.fails() {
            return Received::Ended;
        }
        let Connection {
            pipes,
            faults,
            random,
            ..
        } = &mut *connection;
        let pipe = &mut pipes[1 - self.end];
        if pipe.bytes.is_empty() && pipe.has_ended {
            return Received::Ended;
        }
        let mut count = pipe.bytes.len().min(room);
        if random.happens(faults.short_read) {
            count = random.within(0..=count as u64) as usize;
        }
        into.extend(pipe.bytes.drain(..count));
        if count < room && pipe.bytes.is_empty() && pipe.is_flooded() {
            let flood = pipe.flood.as_mut().expect("it is flooded");
            flood.pour(room - count, into);
            count = room;
        }
        let has_more = count < room && !pipe.bytes.is_empty();
        connection.settle(self.end, count > 0, has_more);
        match count == room {
            true => Received::Full(count),
            false => Received::Drained(count),
        }
    }

    fn send_parts(&mut self, parts: &[IoSlice<'_>]) -> Sent {
        let mut connection = self.lock();
        let is_unheard = connection.pipes[self.end].is_deaf;
        if is_unheard {
            connection.reset();
        }
        if connection.fails() || connection.pipes[self.end].has_ended {
            return Sent::Failed;
        }
        let Connection {
            pipes,
            faults,
            random,
            ..
        } = &mut *connection;
        let pipe = &mut pipes[self.end];
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let mut count = bytes.min(faults.buffer_bytes - pipe.bytes.len());
        if random.happens(faults.short_write) {
            count = random.within(0..=count as u64) as usize;
        }
        let mut left = count;
        for part in parts {
            let taken = part.len().min(left);
            pipe.bytes.extend(&part[..taken]);
            left -= taken;
        }
        let has_room = pipe.bytes.len() < faults.buffer_bytes;
        connection.settle(self.end, count > 0, count < bytes && has_room);
        match count == bytes {
            true => Sent::All,
            false => Sent::Part(count),
        }
    }

    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Signal(&self.signal)
    }

    fn ready(&self) -> Ready {
        self.lock().ready(self.end)
    }

    fn finish(&mut self) {
        let mut connection = self.lock();
        connection.pipes[self.end].has_ended = true;
        connection.tell(1 - self.end);
    }

    fn reset(self: Box<Self>) {
        self.lock().reset();
    }

    fn local(&self) -> Option<Endpoint> {
        Some(Endpoint::Ip(self.lock().names[self.end]))
    }

    fn peer(&self) -> Option<Endpoint> {
        let connection = self.lock();
        let name = Endpoint::Ip(connection.names[1 - self.end]);
        (!connection.is_reset).then_some(name)
    }
}

/// As with TCP, dropping an end with unread bytes resets the connection.
impl Drop for LocalStream {
    fn drop(&mut self) {
        let end = self.end;
        let mut connection = self.lock();
        if !connection.pipes[1 - end].bytes.is_empty() {
            connection.reset();
        }
        connection.pipes[1 - end].is_deaf = true;
        connection.pipes[end].has_ended = true;
        connection.signals[end].forget();
        connection.tell(1 - end);
    }
}

/// A listener for connections inside this process. Clones are the same listener; any of them
/// connects and accepts.
#[derive(Clone)]
pub struct LocalListener {
    address: SocketAddr,
    waiting: Arc<Mutex<VecDeque<LocalStream>>>,
    /// Those that were made and may still be there.
    made: Arc<Mutex<Vec<Weak<Mutex<Connection>>>>>,
    signal: Signal,
}

/// The end of a connection that its listener accepts.
const ACCEPTED: usize = 1;

/// A connection can be accepted.
const WAITING: Ready = Ready {
    readable: true,
    writable: false,
    hung_up: false,
};

impl LocalListener {
    /// A listener with this name.
    pub fn new(address: SocketAddr) -> LocalListener {
        LocalListener {
            address,
            waiting: Arc::default(),
            made: Arc::default(),
            signal: Signal::default(),
        }
    }

    /// Connects from this address. Returns the client's end; the other end waits to be accepted.
    ///
    /// # Panics
    ///
    /// As for [`LocalStream::pair`].
    pub fn connect(&self, from: SocketAddr, faults: StreamFaults, seed: u64) -> LocalStream {
        let [client, server] = LocalStream::pair(faults, [from, self.address], seed);
        let mut made = self.lock_made();
        made.retain(|connection| connection.strong_count() > 0);
        made.push(Arc::downgrade(&server.connection));
        self.lock().push_back(server);
        self.signal.change(WAITING);
        client
    }

    /// The process that listens ends at this moment: the ends that were accepted, or are to be,
    /// send nothing more, and nobody hears what is sent to them. What they have sent arrives.
    pub fn cut(&self) {
        for connection in self.lock_made().drain(..).filter_map(|one| one.upgrade()) {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            connection.pipes[ACCEPTED].has_ended = true;
            connection.pipes[1 - ACCEPTED].is_deaf = true;
            connection.tell(1 - ACCEPTED);
        }
    }

    fn lock_made(&self) -> MutexGuard<'_, Vec<Weak<Mutex<Connection>>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<LocalStream>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamListener for LocalListener {
    fn accept(&mut self) -> io::Result<Option<Box<dyn ByteStream>>> {
        let mut waiting = self.lock();
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.signal.note(Ready::default());
        }
        Ok(next.map(|stream| Box::new(stream) as Box<dyn ByteStream>))
    }

    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Signal(&self.signal)
    }

    fn local(&self) -> Option<Endpoint> {
        Some(Endpoint::Ip(self.address))
    }
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
