//! What has been received of a client and is not finished.

use glimmer_base::Keyhash;
use glimmer_base::limits::{
    BUFFER_BYTES, BUFFER_BYTES_KEPT_MAX, MEMORY_WAIT_MS_MAX, RECEIVE_BYTES_SCARCE,
};

use super::incoming::{Announcement, LargeValue};
use super::queue::Queue;
use crate::budget::pool::Pool;
use glimmer_engine::Upload;

/// A full buffer of [`BUFFER_BYTES_KEPT_MAX`] or more grows by this fraction (1 / n) if it is not
/// known how much is missing. That is little, because others need memory, too. It grows with the
/// buffer, so that a command of very many arguments is copied a bounded number of times.
const GROWTH_SHARE: usize = 8;

/// Received bytes. There is memory behind it only while it holds some, or is about to.
pub(crate) struct ReceiveBuffer {
    /// Those before `start` are finished.
    pub bytes: Vec<u8>,
    pub start: usize,
    /// Unfinished bytes before which the parser is not worth calling.
    pub need: usize,
    /// The value of the next request, if it is large and is not received here.
    pub value: Option<Box<LargeValue>>,
    /// The commands of a long transaction, which are not kept here.
    pub queue: Option<Box<Queue>>,
}

/// Why nothing could be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// There is room to receive.
    Made,
    /// This many bytes of memory are missing.
    Missing(usize),
}

impl Default for ReceiveBuffer {
    fn default() -> ReceiveBuffer {
        ReceiveBuffer {
            bytes: Vec::new(),
            start: 0,
            need: 1,
            value: None,
            queue: None,
        }
    }
}

impl ReceiveBuffer {
    /// Bytes that are not finished.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Whether the parser has something to work on.
    #[inline]
    pub fn has_input(&self) -> bool {
        self.len() >= self.need
    }

    /// Bytes of memory behind it.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether the missing bytes belong to a value whose length is known and that is received here,
    /// so that it can be refused and swallowed.
    pub fn awaits_value(&self) -> bool {
        self.value.is_none() && self.need > self.len() + 1
    }

    /// Whether the value of the next request is received where it will lie.
    pub fn is_in_place(&self) -> bool {
        matches!(self.value.as_deref(), Some(LargeValue::InPlace(_)))
    }

    /// Whether the next request may be one whose value has yet to arrive: more is known of it than
    /// that it is not there.
    #[inline]
    pub fn may_expect_value(&self) -> bool {
        self.need > 1 || self.value.is_some()
    }

    /// Whether a value whose length is known has yet to arrive.
    #[inline]
    pub fn expects_value(&self) -> bool {
        self.need > self.len() + 1 || self.value.is_some()
    }

    /// Whether a place in the table is wanted.
    pub fn awaits_place(&self) -> bool {
        matches!(
            self.value.as_deref(),
            Some(LargeValue::Announced(_) | LargeValue::Queue(_))
        )
    }

    /// The key of the value that waits for a place, as its hash.
    pub fn announced_keyhash(&self) -> Option<Keyhash> {
        match self.value.as_deref() {
            Some(LargeValue::Announced(announcement)) => Some(announcement.keyhash),
            _ => None,
        }
    }

    /// Whether it has a place in the table, for a value or for commands.
    pub fn has_places(&self) -> bool {
        self.is_in_place() || self.queue.as_ref().is_some_and(|queue| queue.has_places())
    }

    /// Whether input lies ahead of that of the socket.
    #[inline]
    pub fn has_ahead(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.has_ahead())
    }

    /// Has the commands of its transaction lie ahead, and after them what has been received.
    pub fn replay(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.replay(std::mem::take(&mut self.bytes), self.start);
            self.start = 0;
            self.need = 1;
        }
    }

    /// Receives at most this many bytes of what lies ahead into the room that was made. Returns
    /// their number.
    #[cold]
    pub fn take_ahead(&mut self, bytes_max: usize) -> usize {
        let room = self.bytes.capacity() - self.bytes.len();
        let bytes = match &mut self.queue {
            Some(queue) => queue.take_ahead(&mut self.bytes, room.min(bytes_max)),
            None => 0,
        };
        self.trim_queue();
        bytes
    }

    /// The same for its value, which has its place in the table.
    pub fn take_ahead_in_place(&mut self, bytes_max: usize, pool: &mut Pool) -> usize {
        let (Some(LargeValue::InPlace(incoming)), Some(queue)) =
            (self.value.as_deref_mut(), &mut self.queue)
        else {
            return 0;
        };
        let bytes = incoming.take_ahead(queue, bytes_max, pool);
        if incoming.missing() == 0 {
            self.need = 1;
        }
        self.trim_queue();
        bytes
    }

    /// Refuses the transaction that waits for a place, if it has waited for long enough. Returns
    /// whether it does.
    pub fn gives_up_queue(&mut self, now_ms: u64) -> bool {
        let gives_up = match self.value.as_deref() {
            // Another worker, whose turn began later, may have noted since when.
            Some(LargeValue::Queue(place)) => {
                now_ms.saturating_sub(place.since_ms) >= MEMORY_WAIT_MS_MAX
            }
            _ => false,
        };
        if gives_up {
            self.value = None;
            self.queue.get_or_insert_default().is_refused = true;
        }
        gives_up
    }

    /// Has a value of a transaction that has waited for a place for long enough be received here:
    /// it may be the transaction's own commands that have the place. Returns whether it is.
    pub fn gives_up_place(&mut self, now_ms: u64) -> bool {
        let has_waited = match self.value.as_deref() {
            Some(LargeValue::Announced(announcement)) => {
                now_ms.saturating_sub(announcement.since_ms) >= MEMORY_WAIT_MS_MAX
            }
            _ => false,
        };
        let gives_up = has_waited && self.has_places();
        if gives_up {
            self.value = None;
        }
        gives_up
    }

    /// Gives back a queue that has nothing.
    fn trim_queue(&mut self) {
        self.queue.take_if(|queue| queue.is_empty());
    }

    /// Whether it has asked for a place for a value in vain.
    pub fn is_refused(&self) -> bool {
        match self.value.as_deref() {
            Some(LargeValue::Announced(announcement)) => announcement.is_refused,
            Some(LargeValue::Queue(place)) => place.is_refused,
            _ => false,
        }
    }

    /// Bytes of that value which have yet to arrive.
    pub fn missing_in_place(&self) -> usize {
        match self.value.as_deref() {
            Some(LargeValue::InPlace(incoming)) => incoming.missing(),
            _ => 0,
        }
    }

    /// Bytes that the next request has, as far as is known.
    pub fn request_bytes(&self) -> usize {
        match self.value.as_deref() {
            Some(LargeValue::InPlace(incoming)) => incoming.upload.bytes(),
            _ => self.need,
        }
    }

    /// Moves what has arrived of a value to its place. Returns the number of bytes. What is left
    /// lies in as much memory as it needs.
    pub fn move_value(
        &mut self,
        announcement: &Announcement,
        upload: &Upload,
        pool: &mut Pool,
    ) -> usize {
        let (header, rest) = self.bytes[self.start..].split_at(announcement.value_at);
        let (value, rest) = rest.split_at(rest.len().min(announcement.value_bytes));
        upload.write(0, value);
        let (received, left) = (value.len(), [header, rest].concat());
        // The parser goes on when the value is complete.
        self.need = match received < announcement.value_bytes {
            true => usize::MAX,
            false => 1,
        };
        self.start = 0;
        pool.give(std::mem::replace(&mut self.bytes, left));
        received
    }

    /// Makes room to receive into. An ordinary buffer is there for every turn; one that grows takes
    /// of the `room` for what connections hold. Bytes that arrive make it grow, not bytes that are
    /// announced: it doubles when it is full, up to [`BUFFER_BYTES_KEPT_MAX`], and then takes all
    /// that the value needs. For arguments after the value it grows in small steps, and `room` of
    /// [`BUFFER_BYTES`] is enough for one. While memory `is_scarce`, one that holds next to nothing
    /// and awaits no value receives into [`RECEIVE_BYTES_SCARCE`] bytes.
    #[inline]
    pub fn make_room(&mut self, pool: &mut Pool, room: usize, is_scarce: bool) -> Room {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
        let spare = self.capacity() - self.bytes.len();
        if self.start == 0 && spare > 0 && self.capacity() >= BUFFER_BYTES {
            return Room::Made;
        }
        if is_scarce && !self.awaits_value() {
            let rest = &self.bytes[self.start..];
            if rest.len() <= RECEIVE_BYTES_SCARCE / 2 {
                let mut bytes = Vec::with_capacity(RECEIVE_BYTES_SCARCE);
                bytes.extend_from_slice(rest);
                pool.give(std::mem::replace(&mut self.bytes, bytes));
                self.start = 0;
                return Room::Made;
            }
        }
        self.make_more_room(pool, room)
    }

    #[inline]
    fn make_more_room(&mut self, pool: &mut Pool, room: usize) -> Room {
        if self.capacity() < BUFFER_BYTES {
            let missing = BUFFER_BYTES - self.capacity();
            if self.need > BUFFER_BYTES && self.growth() > 0 && room < missing {
                return Room::Missing(missing);
            }
            let mut bytes = pool.take();
            bytes.extend_from_slice(&self.bytes[self.start..]);
            self.bytes = bytes;
            self.start = 0;
        }
        if self.start > 0 {
            self.bytes.copy_within(self.start.., 0);
            self.bytes.truncate(self.bytes.len() - self.start);
            self.start = 0;
        }
        let capacity = self.capacity();
        if self.bytes.len() < capacity {
            return Room::Made;
        }
        let wanted = match self.awaits_value() {
            true => self.grown(),
            false => capacity + self.step().min(room).max(BUFFER_BYTES),
        };
        if room < wanted - capacity {
            return Room::Missing(wanted - capacity);
        }
        self.bytes.reserve_exact(wanted - self.bytes.len());
        Room::Made
    }

    /// Whether there is space to receive into, or `room` to make some
    /// ([`make_room_ahead`](Self::make_room_ahead)).
    pub fn may_grow_ahead(&self, room: usize) -> bool {
        self.len() < self.capacity().max(BUFFER_BYTES) || room >= BUFFER_BYTES
    }

    /// Makes room to receive more of what cannot be parsed yet. Says whether there is some.
    pub fn make_room_ahead(&mut self, pool: &mut Pool, room: usize) -> bool {
        if self.len() < self.capacity().max(BUFFER_BYTES) {
            return self.make_room(pool, room, false) == Room::Made;
        }
        let grows = room >= BUFFER_BYTES;
        if grows {
            self.bytes.reserve_exact(self.capacity().min(room));
        }
        grows
    }

    /// Takes an ordinary buffer, if it has none and the next request is not known to need more.
    /// Says whether it has.
    #[inline]
    pub fn take_ordinary(&mut self, pool: &mut Pool) -> bool {
        let takes = self.capacity() == 0 && self.need <= BUFFER_BYTES;
        if takes {
            self.bytes = pool.take();
            self.start = 0;
        }
        takes
    }

    /// Bytes by which it is about to grow for the value that it receives: none if it receives none,
    /// if an ordinary buffer holds the value, or if there is space in the buffer.
    #[inline]
    pub fn growth(&self) -> usize {
        let capacity = self.capacity();
        match self.awaits_value() && self.len() == capacity && self.need > BUFFER_BYTES {
            true => self.grown() - capacity,
            false => 0,
        }
    }

    /// Its next size for the value that it receives. Buffers that are not kept for any time have
    /// the value's size, so that the allocator can use their memory for the next one.
    fn grown(&self) -> usize {
        let doubled = (2 * self.capacity()).max(BUFFER_BYTES);
        match doubled > BUFFER_BYTES_KEPT_MAX {
            true => self.need,
            false => doubled.min(self.need),
        }
    }

    /// Bytes by which it grows, if there is room for them, while it is not known how many bytes are
    /// missing.
    fn step(&self) -> usize {
        match self.capacity() < BUFFER_BYTES_KEPT_MAX {
            true => self.capacity(),
            false => self.capacity() / GROWTH_SHARE,
        }
    }

    /// Gives back the memory of an empty buffer.
    #[inline]
    pub fn trim(&mut self, pool: &mut Pool) {
        if self.len() == 0 {
            if self.capacity() > 0 {
                pool.give(std::mem::take(&mut self.bytes));
            }
            self.start = 0;
        }
    }

    /// Moves what it holds into a buffer of its size, if it has one that is at least twice as
    /// large.
    pub fn compact(&mut self, pool: &mut Pool) {
        if self.len() <= self.capacity() / 2 && self.capacity() >= BUFFER_BYTES {
            let small = self.bytes[self.start..].to_vec();
            pool.give(std::mem::replace(&mut self.bytes, small));
            self.start = 0;
        }
    }
}
