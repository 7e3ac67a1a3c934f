//! Large values that leave from the table's memory, while their batch is being executed.

use glimmer_base::limits::REPLY_BYTES_HIGH;
use glimmer_base::sync::weakened;
use glimmer_engine::{Offer, Outlet};
use glimmer_transport::Sent;
use glimmer_transport::stream::ByteStream;
use std::io::IoSlice;

use super::member::Member;
use crate::forward::batch::Asker;

/// The streams of a burst's members. `stream_of` knows them; datagrams have none.
///
/// A connection is parsed only while it has nothing to send, so a member's replies begin with what
/// is in its reply buffer, and a value may follow at once. It may not if another worker makes a
/// reply before it, or if the stream has not taken all of a value before it.
pub(super) struct Outlets<'b, F> {
    pub members: &'b mut [Member],
    pub stream_of: F,
    /// Bytes that the members have been sent in this burst.
    pub sent_bytes: &'b mut usize,
}

impl<'c, F: Fn(Asker) -> Option<&'c dyn ByteStream>> Outlet for Outlets<'_, F> {
    fn offer(&self, out: u32) -> Offer {
        let member = &self.members[out as usize];
        if member.reorder.is_some() || (self.stream_of)(member.asker).is_none() {
            return Offer::Copy;
        }
        match member.is_blocked || member.sent_bytes >= REPLY_BYTES_HIGH {
            true => Offer::Wait,
            false => Offer::Send,
        }
    }

    fn send(&mut self, out: u32, replies: &mut Vec<u8>, at: usize, value: &[u8]) {
        let member = &mut self.members[out as usize];
        let stream = (self.stream_of)(member.asker).filter(|_| !member.has_failed);
        let parts = [&replies[..at], value, &replies[at..]];
        let sent = match stream {
            Some(stream) => stream.send_parts(&parts.map(IoSlice::new)),
            None => Sent::Failed,
        };
        let bytes = match sent {
            Sent::All => replies.len() + value.len(),
            Sent::Part(bytes) => bytes,
            Sent::Failed => 0,
        };
        member.sent_bytes += bytes;
        *self.sent_bytes += bytes;
        match sent {
            Sent::Part(bytes) => {
                member.is_blocked = true;
                keep_unsent(replies, (at, value), bytes);
            }
            Sent::All => replies.clear(),
            Sent::Failed => {
                member.has_failed = true;
                replies.clear();
            }
        }
    }
}

/// Of replies and a value that belongs at offset `at` of them, keeps what follows the first `sent`
/// bytes.
fn keep_unsent(replies: &mut Vec<u8>, (at, value): (usize, &[u8]), sent: usize) {
    let value_sent = match weakened("short_write_repeats_a_value") {
        true => 0,
        false => sent.saturating_sub(at).min(value.len()),
    };
    let tail_sent = sent.saturating_sub(at + value.len());
    let tail = replies[at + tail_sent..].to_vec();
    replies.truncate(at);
    replies.drain(..sent.min(at));
    replies.reserve(value.len() - value_sent + tail.len());
    replies.extend_from_slice(&value[value_sent..]);
    replies.extend_from_slice(&tail);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_not_sent() {
        let (replies, value) = (b"earlier,head,tail", b"value");
        for at in [0, 13, replies.len()] {
            let whole = [&replies[..at], value, &replies[at..]].concat();
            for sent in 0..=whole.len() {
                let mut kept = replies.to_vec();
                keep_unsent(&mut kept, (at, value), sent);
                assert_eq!(kept, whole[sent..], "{sent} bytes, value at {at}");
            }
        }
    }
}
