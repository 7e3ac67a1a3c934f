//! Reads and expires all items, in portions.

use crate::Partitions;
use crate::flush::FlushClock;
use crate::job::{ListCursor, ListScope, Listed, SweepCursor, Visit, Visited};
use glimmer_base::Moment;
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_store::groups::GROUPS_DUE;
use glimmer_store::heap::{Item, Marks};
use glimmer_store::table::{Table, TableWriter};

/// See [`Engine::list`](crate::Engine::list).
pub fn list<T: Table>(
    partitions: &mut Partitions<T>,
    now: Moment,
    flushes: u64,
    cursor: &mut ListCursor,
    chains: usize,
    visit: &mut dyn FnMut(&Listed<'_>),
) -> bool {
    let mut visit = |item: &Item<'_>, was_read: bool| {
        let mut key = [0; KEY_BYTES_MAX + 6];
        let layout = item.layout();
        visit(&Listed {
            key: item.key(&mut key),
            expiry: item.expiry(),
            accessed_s: item.accessed_s(),
            cas: item.cas(),
            is_fetched: was_read || item.marks().has(Marks::FETCHED),
            is_binary_key: item.marks().has(Marks::BINARY_KEY),
            flags: item.flags(),
            value_bytes: layout.value_len,
            heap_bytes: 8 * layout.words(),
        });
    };
    let walked = walk(partitions, flushes, cursor, chains, |writer, chain| {
        writer.list(chain, now, &mut visit)
    });
    walked == chains
}

/// See [`Engine::visit`](crate::Engine::visit).
pub fn visit<T: Table>(
    partitions: &mut Partitions<T>,
    now: Moment,
    flushes: u64,
    cursor: &mut ListCursor,
    visit: &mut dyn FnMut(Visited<'_>),
) -> Visit {
    let (partition, chain) = cursor.place();
    if partition >= partitions.count() {
        return Visit::Over;
    }
    let is_owned = partitions.is_owned(partition);
    let Some(owner) = partitions.writable(partition).filter(|_| is_owned) else {
        cursor.advance(None);
        return Visit::Continues;
    };
    let mut writer = owner.enter(flushes);
    if chain == 0 {
        writer.walk_on(Some(0), &mut |_| ());
    }
    let next = writer.list(chain, now, &mut |item, was_read| {
        visit(Visited::Item(item, was_read));
    });
    match writer.walk_on(next, &mut |key| visit(Visited::Moved(key))) {
        true => {
            cursor.advance(next);
            Visit::Continues
        }
        false => {
            cursor.advance(Some(0));
            Visit::Restarts
        }
    }
}

/// See [`Engine::end_visits`](crate::Engine::end_visits).
pub fn end_visits<T: Table>(partitions: &mut Partitions<T>, flushes: u64, cursor: &ListCursor) {
    let (partition, _) = cursor.place();
    if partition < partitions.count()
        && let Some(owner) = partitions.writable(partition)
    {
        owner.enter(flushes).walk_on(None, &mut |_| ());
    }
}

/// See [`Engine::expire`](crate::Engine::expire).
pub fn expire<T: Table>(
    partitions: &mut Partitions<T>,
    now: Moment,
    flushes: u64,
    cursor: &mut ListCursor,
    chains: usize,
) -> Option<u64> {
    let mut removed = 0;
    let walked = walk(partitions, flushes, cursor, chains, |writer, chain| {
        let (some, next) = writer.expire(chain, now);
        removed += some;
        next
    });
    (walked > 0).then_some(removed)
}

/// See [`Engine::sweep`](crate::Engine::sweep).
pub fn sweep<T: Table>(
    partitions: &mut Partitions<T>,
    (now, flushes): (Moment, u64),
    clock: &FlushClock,
    cursor: &mut SweepCursor,
) -> Option<u64> {
    let groups = clock.groups()?;
    let count = partitions.count();
    let goes_on = cursor.chain.is_some() && partitions.is_owned(cursor.partition);
    // After the last partition the first is asked again, as another group may have been
    // invalidated.
    let partition = match goes_on {
        true => cursor.partition,
        false => (cursor.partition..count)
            .chain(0..cursor.partition.min(count))
            .find(|&at| partitions.is_owned(at) && groups.wants_sweep(at))?,
    };
    if !goes_on {
        // Before the gate is passed for the first time, so that all who pass it later know of these
        // groups.
        *cursor = SweepCursor {
            partition,
            chain: None,
            event: groups.latest(),
            name: 0,
        };
    }
    let owner = partitions.writable(partition)?;
    let mut writer = owner.enter(flushes | GROUPS_DUE);
    if cursor.chain.is_none() {
        cursor.name = writer.begin_sweep();
    }
    let (removed, next) = writer.expire(cursor.chain.unwrap_or(0), now);
    cursor.chain = next;
    if next.is_none() {
        let has_swept = writer.has_swept(cursor.name);
        drop(writer);
        if has_swept {
            clock.note_swept((partition, count), cursor.event);
        }
        cursor.partition += 1;
    }
    Some(removed)
}

/// Visits up to `chains` chains of the partitions in the cursor's scope. `visit` returns the next
/// chain of the partition. Returns the number of steps, which is lower at the end.
fn walk<T: Table>(
    partitions: &mut Partitions<T>,
    flushes: u64,
    cursor: &mut ListCursor,
    chains: usize,
    mut visit: impl FnMut(&mut T::Writer<'_>, usize) -> Option<usize>,
) -> usize {
    for walked in 0..chains {
        let (partition, chain) = cursor.place();
        if partition >= partitions.count() {
            return walked;
        }
        let is_owned = partitions.is_owned(partition);
        let owner = partitions.writable(partition);
        let owner = owner.filter(|_| is_owned || cursor.scope() == ListScope::Writable);
        cursor.advance(owner.and_then(|owner| visit(&mut owner.enter(flushes), chain)));
    }
    chains
}
