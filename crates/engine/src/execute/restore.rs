//! Items from elsewhere: see [`Engine::restore`](crate::Engine::restore).

use super::Uniques;
use crate::Partitions;
use crate::job::{Arrival, Arrived};
use crate::partitions_of::Place;
use crate::pipeline::{Execute, Stages, staged};
use glimmer_base::Moment;
use glimmer_store::heap::{History, NewItem};
use glimmer_store::table::{Stored, Table, TableWriter};

/// Stores items whose keys have none.
pub fn restore<T: Table>(
    partitions: &mut Partitions<T>,
    (now, flushes): (Moment, u64),
    uniques: Uniques,
    arrivals: &[Arrival<'_>],
    each: &mut dyn FnMut(usize, Arrived),
) {
    let mut restoring = Restoring {
        now,
        flushes,
        uniques,
        each,
    };
    let keyhash = |arrival: &Arrival<'_>| arrival.keyhash;
    staged(partitions, arrivals, Stages::ALL, keyhash, &mut restoring);
}

struct Restoring<'a> {
    now: Moment,
    flushes: u64,
    uniques: Uniques,
    each: &'a mut dyn FnMut(usize, Arrived),
}

impl<T: Table> Execute<Partitions<T>, Arrival<'_>> for Restoring<'_> {
    fn execute(
        &mut self,
        partitions: &mut Partitions<T>,
        nth: usize,
        place: Place<T::HomeBucket>,
        arrival: &Arrival<'_>,
    ) {
        let &Arrival { keyhash, item } = arrival;
        let Some(owner) = partitions.owner(place) else {
            return (self.each)(nth, Arrived::Elsewhere);
        };
        let mut writer = owner.enter_at(keyhash, place.home, self.flushes);
        if writer.find(keyhash, item.key, self.now).is_some() {
            return (self.each)(nth, Arrived::Present);
        }
        let cas = match self.uniques {
            Uniques::Kept => item.history.cas,
            Uniques::Zero => Some(0),
        };
        let item = NewItem {
            history: History {
                cas,
                ..item.history
            },
            ..item
        };
        let arrived = match writer.put(keyhash, &item, self.now) {
            Stored::Yes(_) => Arrived::Stored,
            Stored::TooLarge => Arrived::TooLarge,
            Stored::OutOfMemory => Arrived::NoRoom,
        };
        (self.each)(nth, arrived);
    }
}

/// See [`Engine::highest_cas`](crate::Engine::highest_cas).
pub fn highest_cas<T: Table>(partitions: &mut Partitions<T>, flushes: u64) -> u64 {
    let mut highest = 0;
    each_owned(partitions, |owner| {
        highest = highest.max(owner.enter(flushes).cas_sequence().highest());
    });
    highest
}

/// See [`Engine::draw_cas_above`](crate::Engine::draw_cas_above).
pub fn draw_cas_above<T: Table>(partitions: &mut Partitions<T>, flushes: u64, cas: u64) {
    each_owned(partitions, |owner| {
        owner.enter(flushes).cas_sequence().go_above(cas);
    });
}

fn each_owned<T: Table>(partitions: &mut Partitions<T>, mut with: impl FnMut(&mut T)) {
    for partition in 0..partitions.count() {
        let is_owned = partitions.is_owned(partition);
        if let Some(owner) = partitions.writable(partition).filter(|_| is_owned) {
            with(owner);
        }
    }
}
