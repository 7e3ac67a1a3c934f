//! A reply with a large value that leaves from the table's memory, slice by slice.

use glimmer_engine::LentReply;
use glimmer_transport::Sent;
use glimmer_transport::stream::ByteStream;
use std::io::IoSlice;
use std::ops::Range;

/// The value of a reply, which is lent by the table while the reply leaves. What else is in the
/// reply lies in the connection's send buffer.
///
/// It is lent only while the client takes all that it is sent. What a client leaves waiting is
/// copied into the send buffer: a client that is slow has memory of its connection, and none of the
/// table's few loans.
pub(crate) struct Lending {
    reply: LentReply,
    /// Its request belongs to a turn that is timed, and began then, in nanoseconds.
    pub timed_since_ns: Option<u64>,
}

impl Lending {
    /// A reply that has yet to leave.
    pub fn new(reply: LentReply, timed_since_ns: Option<u64>) -> Box<Lending> {
        Box::new(Lending {
            reply,
            timed_since_ns,
        })
    }

    /// Bytes that are lent.
    pub fn bytes(&self) -> usize {
        self.reply.value.bytes()
    }

    /// Bytes of the whole value.
    pub fn value_bytes(&self) -> usize {
        self.reply.value_bytes
    }

    /// Sends a range of the reply, of which `around` is everything but the lent bytes.
    pub fn send(&self, around: &[u8], range: Range<usize>, stream: &dyn ByteStream) -> Sent {
        let (at, lent) = (self.reply.at, self.bytes());
        let head = &around[range.start.min(at)..range.end.min(at)];
        let value = within(&range, at, lent);
        let tail = &around[at..][within(&range, at + lent, around.len() - at)];
        let mut sent = Sent::Failed;
        self.reply.value.with(value, &mut |value| {
            sent = stream.send_parts(&[head, value, tail].map(IoSlice::new));
        });
        sent
    }

    /// Appends what follows the first `sent` bytes of the reply.
    pub fn append_rest(&self, around: &[u8], sent: usize, out: &mut Vec<u8>) {
        let (at, lent) = (self.reply.at, self.bytes());
        out.extend_from_slice(&around[sent.min(at)..at]);
        let range = sent..at + lent;
        self.reply
            .value
            .with(within(&range, at, lent), &mut |value| {
                out.extend_from_slice(value);
            });
        out.extend_from_slice(&around[at + sent.saturating_sub(at + lent)..]);
    }
}

/// The part of a range that falls on `len` bytes from `at` on, counted from there.
fn within(range: &Range<usize>, at: usize, len: usize) -> Range<usize> {
    let clamp = |end: usize| end.saturating_sub(at).min(len);
    clamp(range.start)..clamp(range.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_store::table::LentValue;

    struct Value(&'static [u8]);

    impl LentValue for Value {
        fn bytes(&self) -> usize {
            self.0.len()
        }

        fn with(&self, range: Range<usize>, take: &mut dyn FnMut(&[u8])) {
            take(&self.0[range]);
        }
    }

    #[test]
    fn what_is_kept_is_what_was_not_sent() {
        let (around, value) = (b"head,tail", b"value");
        for at in 0..=around.len() {
            let reply = LentReply {
                value: Box::new(Value(value)),
                at,
                value_bytes: value.len(),
            };
            let lending = Lending::new(reply, None);
            let whole = [&around[..at], value, &around[at..]].concat();
            for sent in 0..=whole.len() {
                let mut rest = Vec::new();
                lending.append_rest(around, sent, &mut rest);
                assert_eq!(rest, whole[sent..], "{sent} bytes, value at {at}");
            }
        }
    }
}
