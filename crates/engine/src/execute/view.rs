//! Items as replies show them: see [`ItemView`].

use glimmer_base::{Expiry, Moment};
use glimmer_proto::outcome::{ItemState, ItemView};
use glimmer_store::heap::{Item, Marks};

/// An item in the memory of its table.
#[derive(Clone, Copy)]
pub struct View<'a>(pub Item<'a>);

impl ItemView for View<'_> {
    #[inline(always)]
    fn flags(&self) -> u32 {
        self.0.flags()
    }

    #[inline(always)]
    fn cas(&self) -> u64 {
        self.0.cas()
    }

    #[inline(always)]
    fn expiry(&self) -> Expiry {
        self.0.expiry()
    }

    #[inline(always)]
    fn value_bytes(&self) -> usize {
        self.0.value().len()
    }

    #[inline(always)]
    fn append_value(&self, out: &mut Vec<u8>) {
        self.0.value().append_to(out);
    }

    fn append_part(&self, from: usize, bytes: usize, out: &mut Vec<u8>) {
        self.0.value().part(from, bytes).append_to(out);
    }

    fn heap_bytes(&self) -> usize {
        8 * self.0.layout().words()
    }

    #[inline(always)]
    fn changes_with_read(&self, now: Moment) -> bool {
        let (item, marks) = (&self.0, self.0.marks());
        let is_noted = item.layout().extra && ![0, second(now)].contains(&item.accessed_s());
        is_noted || marks.has(Marks::STALE) && !marks.has(Marks::WON)
    }

    #[inline(always)]
    fn state(&self) -> ItemState {
        let marks = self.0.marks();
        ItemState {
            has_binary_key: marks.has(Marks::BINARY_KEY),
            is_stale: marks.has(Marks::STALE),
            is_won: marks.has(Marks::WON),
        }
    }
}

/// The second of this time, as items store it.
pub fn second(now: Moment) -> u32 {
    (now.ms / 1000) as u32
}

/// An empty item that a read has just created.
#[derive(Clone, Copy)]
pub struct Made {
    /// Its CAS unique.
    pub cas: u64,
    /// Whether its key was given in base64.
    pub has_binary_key: bool,
}

impl ItemView for Made {
    fn flags(&self) -> u32 {
        0
    }

    fn cas(&self) -> u64 {
        self.cas
    }

    fn expiry(&self) -> Expiry {
        Expiry::NEVER
    }

    fn value_bytes(&self) -> usize {
        0
    }

    fn append_value(&self, _out: &mut Vec<u8>) {}

    fn append_part(&self, _from: usize, _bytes: usize, _out: &mut Vec<u8>) {}

    fn heap_bytes(&self) -> usize {
        0
    }

    fn changes_with_read(&self, _now: Moment) -> bool {
        false
    }

    fn state(&self) -> ItemState {
        ItemState {
            has_binary_key: self.has_binary_key,
            ..ItemState::default()
        }
    }
}
