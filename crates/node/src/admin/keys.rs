//! Keys that a client asks for by a pattern: those of a page of the index, or all of them.
//!
//! The number of keys comes before the first in the reply, so the keys are gathered. A page has
//! few. All keys are gathered for one client at a time, up to [`RESP_KEYS_BYTES_MAX`].

use std::mem;

use glimmer_base::limits::{
    PARTITIONS_MAX, RESP_KEYS_BYTES_MAX, RESP_PAGE_BYTES_HIGH, RESP_PAGE_CHAINS_MAX,
    RESP_PIECE_BYTES,
};
use glimmer_engine::{ListCursor, ListScope, Listed};
use glimmer_proto::Words;
use glimmer_proto::control::{Answer, Control, Scan};
use glimmer_proto::glob::Pattern;

use super::guard::DumpGuard;

/// Keys that are being gathered, and then sent.
pub(crate) struct Keys {
    words: Words,
    pattern: Box<[u8]>,
    /// The pattern as it is compared with keys, once the first is.
    compiled: Option<Pattern>,
    /// Steps of comparing that have not been paid for.
    steps: u64,
    page: Option<Page>,
    found: u32,
    gathered: Vec<u8>,
    /// What has been sent of them, once the reply has begun.
    sent: Option<usize>,
    /// The right to gather all keys.
    guard: Option<DumpGuard>,
}

/// What is left of a page.
struct Page {
    /// Keys that may still be looked at.
    keys: u32,
    /// Chains of the index that may still be.
    chains: u32,
}

/// Bits of a chain's number in a client's cursor; the rest is the partition's. A cursor is zero at
/// the beginning alone, and then at the end.
const CHAIN_BITS: u32 = 48;

/// Where a client's cursor stands.
pub(crate) fn place(cursor: u64) -> ListCursor {
    let (partition, chain) = (cursor >> CHAIN_BITS, cursor & ((1 << CHAIN_BITS) - 1));
    ListCursor::at_place(ListScope::Owned, (partition as usize, chain as usize))
}

/// The cursor of a place, for the client.
fn cursor(place: &ListCursor) -> u64 {
    let (partition, chain) = place.place();
    (partition as u64) << CHAIN_BITS | chain as u64
}

const _: () = assert!(PARTITIONS_MAX < 1 << (u64::BITS - CHAIN_BITS));

impl Keys {
    pub fn new(scan: &Scan<'_>, words: Words) -> Keys {
        let page = scan.page.map(|(_, keys)| Page {
            keys,
            chains: RESP_PAGE_CHAINS_MAX,
        });
        Keys {
            words,
            pattern: scan.pattern.into(),
            compiled: None,
            steps: 0,
            page,
            found: 0,
            gathered: Vec::new(),
            sent: None,
            guard: None,
        }
    }

    /// Takes the right to gather, if it needs one. Returns whether it may.
    pub fn may_gather(&mut self, take: impl FnOnce() -> Option<DumpGuard>) -> bool {
        if self.page.is_none() && self.guard.is_none() {
            self.guard = take();
        }
        self.page.is_some() || self.guard.is_some()
    }

    /// Whether it has the right to gather all keys.
    pub fn has_right(&self) -> bool {
        self.guard.is_some()
    }

    /// Looks at an item.
    pub fn visit(&mut self, item: &Listed<'_>) {
        if let Some(page) = &mut self.page {
            page.keys = page.keys.saturating_sub(1);
        }
        let compiled = &mut self.compiled;
        let pattern = compiled.get_or_insert_with(|| Pattern::new(&self.pattern));
        if pattern.fits(item.key, &mut self.steps) {
            self.words.emit_key(item.key, &mut self.gathered);
            self.found += 1;
        }
    }

    /// Steps of comparing keys with the pattern since this was asked last.
    pub fn take_steps(&mut self) -> u64 {
        mem::take(&mut self.steps)
    }

    /// A chain has been looked at.
    pub fn end_chain(&mut self) {
        if let Some(page) = &mut self.page {
            page.chains -= 1;
        }
    }

    /// Whether no more chains are looked at.
    pub fn has_enough(&self) -> bool {
        let bytes = self.gathered.len();
        match &self.page {
            Some(page) => page.keys == 0 || page.chains == 0 || bytes >= RESP_PAGE_BYTES_HIGH,
            None => bytes > RESP_KEYS_BYTES_MAX,
        }
    }

    /// Bytes that have been gathered.
    pub fn bytes(&self) -> usize {
        self.gathered.len()
    }

    /// Appends the next piece of the reply. `next` is where the walk has stopped; none at the end.
    /// Returns whether it was the last.
    pub fn send(&mut self, next: Option<&ListCursor>, out: &mut Vec<u8>) -> bool {
        let begin = match self.sent {
            Some(sent) => sent,
            None => {
                let has_failed = self.page.is_none() && self.has_enough();
                let answer = match has_failed {
                    true => Answer::TooManyKeys,
                    false => Answer::Keys {
                        cursor: next.map_or(0, cursor),
                        count: self.found,
                    },
                };
                let scan = Scan {
                    pattern: &[],
                    page: self.page.as_ref().map(|_| (0, 0)),
                };
                self.words.emit(&Control::Scan(scan), answer, out);
                if has_failed {
                    return true;
                }
                0
            }
        };
        let end = self.gathered.len().min(begin + RESP_PIECE_BYTES);
        out.extend_from_slice(&self.gathered[begin..end]);
        self.sent = Some(end);
        end == self.gathered.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_name_their_places() {
        for there in [(0, 1), (PARTITIONS_MAX, (1 << 48) - 1), (1, 0)] {
            let cursor = cursor(&ListCursor::at_place(ListScope::Owned, there));
            assert_ne!(cursor, 0);
            assert_eq!(place(cursor).place(), there);
        }
        assert_eq!(place(0).place(), (0, 0));
    }
}
