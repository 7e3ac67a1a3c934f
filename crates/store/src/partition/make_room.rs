//! Making room at the tail by passing items at the head: who is dead is passed by, who is live goes
//! or is kept, as the eviction rule says.
//!
//! An item at the head counts as live only if the index holds exactly this offset for it. That one
//! probe, whose bucket was fetched ahead, keeps dead items dead (deleted, overwritten and flushed
//! ones never come back) and makes the figures honest. The entry of an evicted item is left as it
//! is: it dangles, is recognised as such, and serves rules that want to remember who left.

use super::lookahead::Lookahead;
use super::{Shared, Writer, expired};
use crate::access::Access;
use crate::evict::{AtHead, Evict};
use crate::heap::{CircularLog, Header, Item, Marks, Offset};
use crate::index::{Entry, LogId, Slot};
use glimmer_base::{Keyhash, Moment};

/// Reinsertions into the same log per call, beyond one for every 16 words that are wanted: after
/// that live items go even if the rule would keep them, so that no single store walks the whole
/// log.
const REINSERTIONS_MAX: u64 = 256;

/// Words that the head runs ahead of what is wanted, so that it is published once for several
/// stores.
const AHEAD_WORDS: u64 = 16;

/// See [`AHEAD_WORDS`]; small logs are not emptied by it.
fn ahead(log_words: u64) -> u64 {
    AHEAD_WORDS.min(log_words / 64)
}

impl<A: Access, E: Evict> Writer<'_, A, E> {
    /// Makes at least `words` words free at the tail of a log.
    #[inline(always)]
    pub(super) fn make_room(&mut self, id: LogId, words: u64, now: Moment) {
        if self.free(id) < words {
            self.pass_items(id, words, now);
        }
    }

    /// Words that are free at the tail of a log.
    #[inline(always)]
    pub(super) fn free(&self, id: LogId) -> u64 {
        let (log, geometry) = (self.log(id), self.log(id).geometry());
        geometry.words() - geometry.distance(log.head(), self.tail(id))
    }

    #[inline(never)]
    fn pass_items(&mut self, id: LogId, words: u64, now: Moment) {
        let shared = self.shared;
        let (log, geometry) = (shared.log(id), shared.log(id).geometry());
        let wanted = words + ahead(geometry.words());
        let mut reinsertions_left = REINSERTIONS_MAX + words / 16;
        let mut head = log.head();
        while geometry.words() - geometry.distance(head, self.tail(id)) < wanted
            && head != self.tail(id)
        {
            self.look_ahead(id, log);
            let after = match shared.at(id, head) {
                Passing::Filler(after) => after,
                Passing::Item(item, after) => {
                    let keyhash =
                        self.state.lookahead[id as usize].take(shared, head, &item, after);
                    if let Some((slot, entry)) = shared.indexed(keyhash, id, head) {
                        let at_head = if expired(&item, now) {
                            shared.counters.expired_reclaimed.add(1);
                            shared
                                .counters
                                .expired_unfetched
                                .add(unfetched(&item, entry));
                            None
                        } else {
                            let room = id == LogId::Small
                                && entry.reads() == 0
                                && self.main_has_room(item.layout().words() as u64, now);
                            match self.rule.at_head(id, entry.reads(), room) {
                                AtHead::Keep { log, reads }
                                    if log != id || reinsertions_left > 0 =>
                                {
                                    Some((log, reads))
                                }
                                _ => {
                                    shared.counters.evictions.add(1);
                                    let unfetched = unfetched(&item, entry);
                                    shared.counters.evicted_unfetched.add(unfetched);
                                    if let Some(departures) = &shared.departures {
                                        departures.note(&item, unfetched == 0, now);
                                    }
                                    None
                                }
                            }
                        };
                        match at_head {
                            Some((to, reads)) => {
                                reinsertions_left =
                                    reinsertions_left.saturating_sub(u64::from(to == id));
                                self.keep(
                                    keyhash,
                                    (id, head, after),
                                    (slot, entry),
                                    (to, reads),
                                    now,
                                );
                            }
                            None => shared.counters.gone(&item),
                        }
                    }
                    after
                }
            };
            head = after;
        }
        log.publish_head(head, A::SHARED_READS);
    }

    #[inline(always)]
    fn look_ahead(&mut self, id: LogId, log: &CircularLog) {
        let tail = self.tail(id);
        let shared = self.shared;
        self.state.lookahead[id as usize].top_up(shared, log, tail);
    }

    /// Puts the item between `head` and `after` of log `id` at the tail of log `to`.
    fn keep(
        &mut self,
        keyhash: Keyhash,
        (id, head, after): (LogId, Offset, Offset),
        (slot, entry): (Slot, Entry),
        (to, reads): (LogId, u8),
        now: Moment,
    ) {
        let shared = self.shared;
        let (from_log, to_log) = (shared.log(id), shared.log(to));
        let words = from_log.geometry().distance(head, after);
        if to != id {
            self.make_room(to, words, now);
        }
        // The space at the tail may be the item's own, so it is copied out before the head is
        // published, and the chain stays locked while it is in neither place.
        let mut scratch = std::mem::take(&mut self.state.scratch);
        scratch.clear();
        from_log.copy_out(
            from_log.geometry().position(head),
            words as usize,
            &mut scratch,
        );
        let home = shared.index.bucket(shared.index.home(keyhash));
        home.write_begin(A::SHARED_READS);
        from_log.publish_head(after, A::SHARED_READS);
        let tail = self.tail(to);
        to_log.copy_in(to_log.geometry().position(tail), &scratch);
        let moved = Entry::new(entry.tag(), to, tail, reads).with_fetched(entry.is_fetched());
        shared
            .index
            .bucket(slot.bucket)
            .set_entry(slot.entry, moved);
        home.write_end(A::SHARED_READS);
        self.state.tails[to as usize] = to_log.geometry().advance(tail, words);
        self.give_back_scratch(scratch);
        shared.counters.reinsertions.add(1);
    }

    /// Whether the main log can take an item of `words` words without giving up a live one; dead
    /// items at its head are passed. What the head freed ahead of need, and the item by which
    /// it overshot, do not count as room.
    fn main_has_room(&mut self, words: u64, now: Moment) -> bool {
        let shared = self.shared;
        let (log, geometry) = (shared.log(LogId::Main), shared.log(LogId::Main).geometry());
        let wanted = 2 * words + ahead(geometry.words());
        let mut head = log.head();
        let start = head;
        while geometry.words() - geometry.distance(head, self.tail(LogId::Main)) < wanted
            && head != self.tail(LogId::Main)
        {
            head = match shared.at(LogId::Main, head) {
                Passing::Filler(after) => after,
                Passing::Item(item, after) => {
                    let keyhash = super::lookahead::hash(shared, &item);
                    if let Some((_, entry)) = shared.indexed(keyhash, LogId::Main, head) {
                        if !expired(&item, now) {
                            break;
                        }
                        shared.counters.expired_reclaimed.add(1);
                        shared
                            .counters
                            .expired_unfetched
                            .add(unfetched(&item, entry));
                        shared.counters.gone(&item);
                    }
                    after
                }
            };
        }
        if head != start {
            log.publish_head(head, A::SHARED_READS);
            self.state.lookahead[LogId::Main as usize] = Lookahead::at(head);
        }
        self.free(LogId::Main) >= wanted
    }

    /// Puts an item at the tail of its log because it was read, if the slot still holds it.
    #[inline(never)]
    pub(super) fn reinsert(&mut self, slot: Slot, entry: Entry, keyhash: Keyhash, now: Moment) {
        let shared = self.shared;
        let (id, log) = (entry.log(), shared.log(entry.log()));
        let at = log.geometry().position(entry.offset());
        let Some(item) = Item::read(log.place(at)) else {
            return;
        };
        let words = item.layout().words();
        let mut scratch = std::mem::take(&mut self.state.scratch);
        scratch.clear();
        log.copy_out(at, words, &mut scratch);
        // The item itself may be next at the head when room is made; counted as read, it is kept
        // there, and there is nothing left to do here.
        shared.index.count_read(slot, entry, E::READS_COUNTED);
        self.make_room(id, words as u64, now);
        let still_there = shared.index.get(slot).same_item(entry) && log.is_live(entry.offset());
        if still_there {
            let tail = self.tail(id);
            log.copy_in(log.geometry().position(tail), &scratch);
            let home = shared.index.bucket(shared.index.home(keyhash));
            home.write_begin(A::SHARED_READS);
            shared.index.bucket(slot.bucket).set_entry(
                slot.entry,
                Entry::new(entry.tag(), id, tail, 0).with_fetched(true),
            );
            home.write_end(A::SHARED_READS);
            self.state.tails[id as usize] = log.geometry().advance(tail, words as u64);
            shared.counters.reinsertions.add(1);
            self.scan_after(id, words as u64);
        }
        self.give_back_scratch(scratch);
    }

    /// Keeps the buffer for the next time, unless it has grown for a rare large item.
    fn give_back_scratch(&mut self, scratch: Vec<u64>) {
        const KEPT_WORDS: usize = 1 << 10;
        if scratch.capacity() <= KEPT_WORDS {
            self.state.scratch = scratch;
        }
    }
}

/// One if nobody is known to have fetched an item since it was stored, else zero.
#[inline(always)]
fn unfetched(item: &Item<'_>, entry: Entry) -> u64 {
    u64::from(!entry.is_fetched() && !item.marks().has(Marks::FETCHED))
}

/// What lies at a place of a log, and where the next thing begins.
enum Passing<'a> {
    Filler(Offset),
    Item(Item<'a>, Offset),
}

impl Shared {
    /// What lies at a place between head and tail; only for the writer.
    #[inline(always)]
    fn at(&self, id: LogId, offset: Offset) -> Passing<'_> {
        let (log, geometry) = (self.log(id), self.log(id).geometry());
        let at = geometry.position(offset);
        match Item::read(log.place(at)) {
            Some(item) => {
                Passing::Item(item, geometry.advance(offset, item.layout().words() as u64))
            }
            None => {
                let header = Header::read(log.place(at));
                assert!(
                    header.is_filler() && header.filler_words() > 0,
                    "a log holds items and fillers without a gap"
                );
                Passing::Filler(geometry.advance(offset, header.filler_words()))
            }
        }
    }

    /// The index entry that names exactly this place.
    #[inline(always)]
    fn indexed(&self, keyhash: Keyhash, id: LogId, offset: Offset) -> Option<(Slot, Entry)> {
        let mut candidates = self.index.candidates(keyhash);
        candidates.find(|(_, entry)| entry.log() == id && entry.offset() == offset)
    }
}
