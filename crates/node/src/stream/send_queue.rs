//! What a connection has to be sent: bytes, and values that the table lends.

use std::io::IoSlice;

use glimmer_base::limits::BUFFER_BYTES;
use glimmer_base::sync::weakened;
use glimmer_engine::LentPart;
use glimmer_transport::Sent;
use glimmer_transport::stream::ByteStream;

use crate::budget::pool::Pool;

/// Replies on their way to a client, in order.
///
/// A value stays lent for as long as its client takes: it lies in the table, or in a copy that a
/// writer has made for all who borrow it, and the connection holds no memory for it. What is little
/// is copied into the buffer if the client leaves it waiting, because the table's loans are few.
#[derive(Default)]
pub(crate) struct SendQueue {
    /// The replies but for their lent parts. Empty when there is nothing to send.
    pub bytes: Vec<u8>,
    /// Bytes of the buffer that are sent.
    sent: usize,
    /// Lent parts that are not sent.
    lent: Vec<LentPart>,
    /// Bytes of the first lent part that are sent.
    part_sent: usize,
    awaits: Awaits,
    /// Its connection is in its worker's list of those that borrow.
    pub is_listed: bool,
    /// The value of a reply that is timed, and since when, in nanoseconds.
    pub timed: Option<(usize, u64)>,
}

/// What has to happen before more is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Awaits {
    #[default]
    Nothing,
    /// The connection's next turn: a slice was sent in the last one.
    Turn,
    /// The client, which has to take what it was sent.
    Client,
}

impl SendQueue {
    /// Takes replies: this buffer, and the lent parts that belong into it. It is empty before.
    #[inline]
    pub fn fill(&mut self, bytes: Vec<u8>, lent: impl Iterator<Item = LentPart>) {
        debug_assert!(self.is_empty() && self.lent.is_empty());
        self.bytes = bytes;
        self.lent.extend(lent);
    }

    /// Whether there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The buffer, for replies that follow those that are in it.
    #[inline]
    pub fn buffer(&mut self, pool: &mut Pool) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = pool.take();
        }
        &mut self.bytes
    }

    /// The same, for replies with parts that are lent.
    #[inline]
    pub fn tail(&mut self, pool: &mut Pool) -> Tail<'_> {
        self.buffer(pool);
        Tail {
            bytes: &mut self.bytes,
            lent: &mut self.lent,
        }
    }

    /// Bytes that are not sent.
    pub fn unsent_bytes(&self) -> usize {
        self.bytes.len() - self.sent + self.lent_bytes() - self.part_sent
    }

    /// Bytes of the parts that are lent.
    #[inline]
    pub fn lent_bytes(&self) -> usize {
        self.lent.iter().map(|part| part.value.bytes()).sum()
    }

    /// Whether there are values in it that are lent.
    #[inline]
    pub fn borrows(&self) -> bool {
        !self.lent.is_empty()
    }

    /// The parts that are lent.
    pub fn lent(&self) -> impl Iterator<Item = &LentPart> {
        self.lent.iter()
    }

    /// Bytes of memory that it takes.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether the connection sends a slice in each of its turns.
    #[inline]
    pub fn takes_turns(&self) -> bool {
        self.awaits == Awaits::Turn
    }

    /// Has what is not sent wait for the connection's next turn.
    pub fn take_turns(&mut self) {
        self.awaits = Awaits::Turn;
    }

    /// Whether the client has to take what it was sent before it is sent more.
    #[inline]
    pub fn awaits_client(&self) -> bool {
        self.awaits == Awaits::Client
    }

    /// Sends at most `bytes_max` bytes. Returns their number, or nothing if the connection failed.
    #[inline]
    pub fn send(
        &mut self,
        stream: &mut dyn ByteStream,
        pool: &mut Pool,
        bytes_max: usize,
    ) -> Option<usize> {
        if !self.lent.is_empty() {
            return self.send_lent(stream, pool, bytes_max);
        }
        let waiting = self.bytes.len() - self.sent;
        let bytes = waiting.min(bytes_max);
        let sent = match stream.send(&self.bytes[self.sent..][..bytes]) {
            Sent::All => bytes,
            Sent::Part(bytes) => bytes,
            Sent::Failed => return None,
        };
        if sent == waiting {
            self.clear(pool);
            return Some(sent);
        }
        self.sent += sent;
        self.awaits = match sent < bytes {
            true => Awaits::Client,
            false => Awaits::Turn,
        };
        if weakened("short_write_loses_a_byte")
            && self.awaits_client()
            && self.sent + 1 < self.bytes.len()
        {
            self.sent += 1;
        }
        Some(sent)
    }

    /// [`send`](Self::send) of replies with lent parts.
    #[cold]
    #[inline(never)]
    fn send_lent(
        &mut self,
        stream: &mut dyn ByteStream,
        pool: &mut Pool,
        bytes_max: usize,
    ) -> Option<usize> {
        let (waiting, mut total) = (self.unsent_bytes(), 0);
        self.awaits = Awaits::Turn;
        while total < waiting.min(bytes_max) {
            let (offered, sent) = self.offer(stream, bytes_max - total);
            let bytes = match sent {
                Sent::All => offered,
                Sent::Part(bytes) => bytes,
                Sent::Failed => return None,
            };
            self.advance(bytes);
            total += bytes;
            if bytes < offered {
                self.awaits = Awaits::Client;
                break;
            }
        }
        if total == waiting {
            self.clear(pool);
        } else if self.awaits_client() && !self.leaves_waiting(pool) {
            return None;
        }
        Some(total)
    }

    /// Offers the stream the front of what is not sent, in one call: up to [`GATHERED_VALUES_MAX`]
    /// values, and what lies between. Returns the bytes that were offered, at most `bytes_max`, and
    /// what became of them.
    fn offer(&self, stream: &mut dyn ByteStream, bytes_max: usize) -> (usize, Sent) {
        let mut offered = (0, Sent::Failed);
        let mut send = |gathered: &Gathered<'_>| {
            let sent = stream.send_parts(gathered.slices());
            offered = (bytes_max - gathered.room, sent);
        };
        self.gather(0, self.sent, Gathered::new(bytes_max), &mut send);
        offered
    }

    /// Adds the bytes from here to the lent part of this number, that part, and all that follows,
    /// as far as there is room; then calls `send`, unless the first value is lost. While a value is
    /// used, this waits for no other one: a writer may hold that and wait for the first.
    fn gather(
        &self,
        nth: usize,
        from: usize,
        gathered: Gathered<'_>,
        send: &mut dyn FnMut(&Gathered<'_>),
    ) {
        let part = self.lent.get(nth);
        let end = part.map_or(self.bytes.len(), |part| part.at);
        let gathered = gathered.and(&self.bytes[from..end]);
        let Some(part) = part.filter(|_| gathered.room > 0 && nth < GATHERED_VALUES_MAX) else {
            return send(&gathered);
        };
        let first = if nth == 0 { self.part_sent } else { 0 };
        let range = first..part.value.bytes().min(first.saturating_add(gathered.room));
        let mut add = |value: &[u8]| self.gather(nth + 1, end, gathered.and(value), send);
        if nth == 0 {
            // Nothing is sent if it is lost, and the connection ends.
            let _is_there = part.value.with(range, &mut add);
        } else if !part.value.try_with(range, &mut add) {
            send(&gathered);
        }
    }

    /// Notes that this many bytes are sent.
    fn advance(&mut self, mut bytes: usize) {
        let mut whole_parts = 0;
        while let Some(part) = self.lent.get(whole_parts) {
            let head = bytes.min(part.at - self.sent);
            let value = (bytes - head).min(part.value.bytes() - self.part_sent);
            self.sent += head;
            self.part_sent += value;
            bytes -= head + value;
            if self.part_sent < part.value.bytes() {
                break;
            }
            self.part_sent = 0;
            whole_parts += 1;
        }
        self.lent.drain(..whole_parts);
        self.sent += bytes;
    }

    /// Keeps what the client does not take in as little memory as it needs. Returns false if a
    /// value that it copies is lost.
    fn leaves_waiting(&mut self, pool: &mut Pool) -> bool {
        if self.unsent_bytes() <= BUFFER_BYTES {
            return self.copy_all(pool);
        }
        self.compact(pool);
        true
    }

    /// Copies all that is not sent into one buffer. Returns false if a value is lost.
    fn copy_all(&mut self, pool: &mut Pool) -> bool {
        let unsent = self.unsent_bytes();
        let mut rest = pool.take_large(unsent).unwrap_or_default();
        rest.reserve_exact(unsent);
        if weakened("short_write_repeats_a_value") {
            self.part_sent = 0;
        }
        let mut is_whole = true;
        for part in self.lent.drain(..) {
            rest.extend_from_slice(&self.bytes[self.sent..part.at]);
            self.sent = part.at;
            let range = std::mem::take(&mut self.part_sent)..part.value.bytes();
            let append = &mut |value: &[u8]| rest.extend_from_slice(value);
            is_whole &= part.value.with(range, append);
        }
        rest.extend_from_slice(&self.bytes[self.sent..]);
        pool.give(std::mem::replace(&mut self.bytes, rest));
        self.sent = 0;
        is_whole
    }

    /// Has nothing to send any more.
    #[inline]
    pub fn clear(&mut self, pool: &mut Pool) {
        pool.give(std::mem::take(&mut self.bytes));
        if self.lent.capacity() > 0 {
            self.lent = Vec::new();
            self.is_listed = false;
        }
        (self.sent, self.part_sent) = (0, 0);
        self.awaits = Awaits::Nothing;
    }

    /// Moves what it holds into a buffer of its size, if it has one that is at least twice as
    /// large.
    pub fn compact(&mut self, pool: &mut Pool) {
        let waiting = self.bytes.len() - self.sent;
        if waiting > 0 && waiting <= self.bytes.capacity() / 2 {
            let small = self.bytes[self.sent..].to_vec();
            pool.give(std::mem::replace(&mut self.bytes, small));
            for part in &mut self.lent {
                part.at -= self.sent;
            }
            self.sent = 0;
        } else if self.bytes.capacity() > BUFFER_BYTES {
            self.bytes.shrink_to_fit();
        }
    }
}

/// The end of replies.
pub(crate) struct Tail<'a> {
    pub bytes: &'a mut Vec<u8>,
    /// The parts that are lent, by their places in the bytes.
    pub lent: &'a mut Vec<LentPart>,
}

impl Tail<'_> {
    /// Appends a reply, with the parts that are lent, by their places in it.
    #[inline]
    pub fn append(&mut self, reply: &[u8], lent: &mut dyn Iterator<Item = LentPart>) {
        let end = self.bytes.len();
        self.bytes.extend_from_slice(reply);
        self.lent.extend(lent.map(|part| part.moved(0, end)));
    }
}

/// Values that one call sends, at most.
const GATHERED_VALUES_MAX: usize = 8;

/// What one call sends: values, and the bytes before, between and after them.
#[derive(Clone, Copy)]
struct Gathered<'a> {
    slices: [IoSlice<'a>; 2 * GATHERED_VALUES_MAX + 1],
    count: usize,
    /// Bytes that may still be added.
    room: usize,
}

impl<'a> Gathered<'a> {
    fn new(room: usize) -> Gathered<'a> {
        Gathered {
            slices: [IoSlice::new(&[]); _],
            count: 0,
            room,
        }
    }

    /// With these bytes, as far as there is room for them.
    fn and(mut self, bytes: &'a [u8]) -> Gathered<'a> {
        let bytes = &bytes[..bytes.len().min(self.room)];
        self.slices[self.count] = IoSlice::new(bytes);
        self.count += 1;
        self.room -= bytes.len();
        self
    }

    fn slices(&self) -> &[IoSlice<'a>] {
        &self.slices[..self.count]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use glimmer_base::limits::BUFFER_BYTES;
    use glimmer_engine::{LentValue, Whereabouts};
    use glimmer_transport::stream::{LocalStream, StreamFaults};
    use rand::{Rng, SeedableRng, rngs::SmallRng};
    use std::cell::Cell;
    use std::net::SocketAddr;
    use std::ops::Range;

    /// Bytes of a value. What is left of a few is more than an ordinary buffer holds.
    const LENT_BYTES_MAX: usize = BUFFER_BYTES;

    /// A value of a table, and how often a reader has tried to use it.
    pub struct Value(pub Vec<u8>, pub Cell<u32>);

    impl LentValue for Value {
        fn bytes(&self) -> usize {
            self.0.len()
        }

        fn with(&self, range: Range<usize>, take: &mut dyn FnMut(&[u8])) -> bool {
            take(&self.0[range]);
            true
        }

        /// Now and then a writer uses it.
        fn try_with(&self, range: Range<usize>, take: &mut dyn FnMut(&[u8])) -> bool {
            self.1.set(self.1.get() + 1);
            !self.1.get().is_multiple_of(5) && self.with(range, take)
        }

        fn whereabouts(&self) -> Whereabouts<'_> {
            Whereabouts::InTable
        }
    }

    /// A value whose place a writer has needed, without memory for a copy.
    struct Lost(usize);

    impl LentValue for Lost {
        fn bytes(&self) -> usize {
            self.0
        }

        fn with(&self, _: Range<usize>, _: &mut dyn FnMut(&[u8])) -> bool {
            false
        }

        fn try_with(&self, _: Range<usize>, _: &mut dyn FnMut(&[u8])) -> bool {
            false
        }

        fn whereabouts(&self) -> Whereabouts<'_> {
            Whereabouts::Lost
        }
    }

    fn stream(buffer_bytes: usize, seed: u64) -> [LocalStream; 2] {
        let peer: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let faults = StreamFaults {
            buffer_bytes,
            ..StreamFaults::default()
        };
        LocalStream::pair(faults, [peer; 2], seed)
    }

    /// The connection fails rather than that its client gets other bytes.
    #[test]
    fn a_value_that_is_lost_ends_the_connection() {
        let part = |at| LentPart {
            out: 0,
            at,
            value: Box::new(Lost(100)),
        };
        let mut pool = Pool::new(1 << 20, 1 << 20);
        let [mut near, _far] = stream(2, 0);
        let mut queue = SendQueue::default();
        queue.fill(b"abc".to_vec(), [part(2)].into_iter());
        assert_eq!(queue.send(&mut near, &mut pool, 1_000), None);
    }

    /// Random replies, in slices of any length, to a client that takes any number of bytes at a
    /// time: what it receives is what it was to be sent.
    #[test]
    fn a_client_receives_every_byte_once() {
        for seed in 0..400 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let (mut bytes, mut lent, mut whole) = (Vec::new(), Vec::new(), Vec::new());
            let mut next = 0_u8;
            let mut some = |most: usize| -> Vec<u8> {
                let more = (0..rng.random_range(0..most)).map(|_| {
                    next = next.wrapping_add(1);
                    next
                });
                more.collect()
            };
            for _ in 0..4 {
                let (head, value) = (some(5), some(LENT_BYTES_MAX));
                bytes.extend_from_slice(&head);
                whole.extend([head, value.clone()].concat());
                lent.push(LentPart {
                    out: 0,
                    at: bytes.len(),
                    value: Box::new(Value(value, Cell::new(some(20).len() as u32))),
                });
            }
            let tail = [&some(5)[..], b"."].concat();
            bytes.extend_from_slice(&tail);
            whole.extend(tail);
            let [mut near, mut far] = stream(rng.random_range(1..LENT_BYTES_MAX), seed);
            let mut pool = Pool::new(1 << 20, 1 << 20);
            let mut queue = SendQueue::default();
            queue.fill(bytes, lent.into_iter());
            let mut received = Vec::new();
            let mut receive = |received: &mut Vec<u8>| {
                let mut buffer = Vec::with_capacity(BUFFER_BYTES);
                far.receive_at_most(&mut buffer, BUFFER_BYTES);
                received.extend(buffer);
            };
            let mut sent = 0;
            while !queue.is_empty() {
                assert_eq!(queue.unsent_bytes(), whole.len() - sent, "seed {seed}");
                let most = rng.random_range(1..LENT_BYTES_MAX);
                let bytes = queue.send(&mut near, &mut pool, most).unwrap();
                assert!(bytes <= most, "seed {seed}");
                sent += bytes;
                if rng.random() {
                    queue.compact(&mut pool);
                }
                receive(&mut received);
            }
            receive(&mut received);
            assert_eq!(received, whole, "seed {seed}");
        }
    }
}
