//! The value that a connection's next request brings, while it arrives.

use glimmer_base::Keyhash;
use glimmer_engine::{Headway, Upload};
use glimmer_transport::Received;
use glimmer_transport::stream::ByteStream;

use super::queue::{Queue, QueuePlace};
use crate::budget::pool::Pool;

/// Bytes behind a value that are received together with its end: the end of the line, and often the
/// next request.
const UPLOAD_TAIL_BYTES: usize = 256;

/// A store that has announced its value.
#[derive(Clone, Debug)]
pub(crate) struct Announcement {
    pub keyhash: Keyhash,
    pub key: Box<[u8]>,
    /// Where the value begins in what its connection has received.
    pub value_at: usize,
    /// Bytes of the value.
    pub value_bytes: usize,
    /// Since when it has wanted a place, in milliseconds since the epoch.
    pub since_ms: u64,
    /// It has asked for a place in vain.
    pub is_refused: bool,
    /// The room that has been made for it.
    pub headway: Headway,
}

/// A value on its way to its place.
pub(crate) struct Incoming {
    pub upload: Upload,
    /// Bytes that have arrived.
    pub received: usize,
}

/// A large value that the next request of a connection brings. One that is received into the
/// connection's buffer is none.
pub(crate) enum LargeValue {
    /// It has yet to get a place. As far as it has arrived, it is in the buffer.
    Announced(Announcement),
    /// At its place.
    InPlace(Incoming),
    /// None: the commands of a transaction need one more place in the table.
    Queue(QueuePlace),
}

impl Incoming {
    /// A value that has arrived as a whole.
    pub fn complete(upload: Upload) -> Incoming {
        let received = upload.bytes();
        Incoming { upload, received }
    }

    /// Bytes that have yet to arrive.
    pub fn missing(&self) -> usize {
        self.upload.bytes() - self.received
    }

    /// Receives at most this many bytes of the value from what lies ahead of the socket. Returns
    /// their number.
    pub fn take_ahead(&mut self, queue: &mut Queue, bytes_max: usize, pool: &mut Pool) -> usize {
        let mut buffer = pool.take();
        let bytes = queue.take_ahead(&mut buffer, self.missing().min(bytes_max));
        self.upload.write(self.received, &buffer);
        self.received += bytes;
        pool.give(buffer);
        bytes
    }

    /// Receives once, at most this many bytes of the value. What follows the value is added to
    /// `after`.
    pub fn receive(
        &mut self,
        stream: &mut dyn ByteStream,
        bytes_max: usize,
        (after, pool): (&mut Vec<u8>, &mut Pool),
    ) -> Received {
        let missing = self.missing();
        let bytes_max = missing.min(bytes_max);
        let tail = &mut [0; UPLOAD_TAIL_BYTES];
        let tail = match bytes_max == missing {
            true => &mut tail[..],
            false => &mut [],
        };
        let (upload, at) = (&self.upload, self.received);
        let to_place = upload.receive(at, bytes_max, |region| stream.receive_to(region, tail));
        let received = to_place.unwrap_or_else(|| {
            let mut buffer = pool.take();
            let received = stream.receive_at_most(&mut buffer, bytes_max);
            upload.write(at, &buffer);
            pool.give(buffer);
            received
        });
        if let Received::Full(bytes) | Received::Drained(bytes) = received {
            let of_value = bytes.min(bytes_max);
            self.received += of_value;
            after.extend_from_slice(&tail[..bytes - of_value]);
        }
        received
    }
}
