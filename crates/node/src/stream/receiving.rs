//! Values that are being received, and whether all of them can be completed.
//!
//! A receive buffer grows as the bytes of a value arrive. If it grew whenever there was room, a few
//! connections could come to hold all the memory, and none of them could complete its value. So it
//! grows only if there is an order afterwards in which each value can be completed in the room that
//! the ones before it give back. In the words of the banker's algorithm (Dijkstra, EWD 623, and
//! Habermann 1969), the state stays *safe*.

use super::connection::Connection;
use super::key::ConnectionKey;

/// A value that is being received.
#[derive(Clone, Copy)]
struct Receiver {
    key: ConnectionKey,
    /// Bytes of its buffer.
    held: usize,
    /// Bytes by which the buffer has yet to grow.
    missing: usize,
}

/// The values that are being received, as they stand.
pub(super) struct Receivers(Vec<Receiver>);

impl Receivers {
    pub fn of<'a>(connections: impl Iterator<Item = (ConnectionKey, &'a Connection)>) -> Receivers {
        let receiving = connections.filter(|(_, connection)| connection.rx.awaits_value());
        let receiver = |(key, connection): (ConnectionKey, &Connection)| Receiver {
            key,
            held: connection.rx.capacity(),
            missing: connection.rx.need.saturating_sub(connection.rx.capacity()),
        };
        Receivers(receiving.map(receiver).collect())
    }

    /// Has a connection's buffer grow by this many bytes of the room, if all values can be
    /// completed then without the last `spared` bytes, which are for the first bytes of others. The
    /// one that lacks least may use those as well, because it soon gives back what it takes. Says
    /// whether the buffer has grown.
    pub fn grow(
        &mut self,
        key: ConnectionKey,
        bytes: usize,
        (room, spared): (usize, usize),
    ) -> bool {
        let Some(at) = self.0.iter().position(|receiver| receiver.key == key) else {
            return bytes <= room;
        };
        let before = self.0[at];
        let may_complete = before.missing <= room && Some(before.missing) == self.least_missing();
        self.0[at].held += bytes;
        self.0[at].missing = before.missing.saturating_sub(bytes);
        let left = room.checked_sub(bytes);
        let is_safe = |left: usize| left >= spared && self.is_safe(left - spared);
        let grows = left.is_some_and(|left| may_complete || is_safe(left));
        if !grows {
            self.0[at] = before;
        }
        grows
    }

    /// The least that any of the values lacks: in the banker's algorithm, the smallest claim.
    pub fn least_missing(&self) -> Option<usize> {
        let missing = self.0.iter().map(|receiver| receiver.missing);
        missing.filter(|&missing| missing > 0).min()
    }

    /// Whether there is an order in which all values can be completed. The one that lacks least is
    /// always a good choice for the next.
    fn is_safe(&self, mut room: usize) -> bool {
        let mut order: Vec<_> = self.0.iter().map(|r| (r.missing, r.held)).collect();
        order.sort_unstable();
        order.into_iter().all(|(missing, held)| {
            let is_complete = missing <= room;
            room += held;
            is_complete
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use slotmap::SlotMap;

    /// Values of which so much is held and so much is missing.
    fn receivers(values: &[(usize, usize)]) -> (Receivers, Vec<ConnectionKey>) {
        let mut keys = SlotMap::<ConnectionKey, ()>::with_key();
        let receivers = values.iter().map(|&(held, missing)| Receiver {
            key: keys.insert(()),
            held,
            missing,
        });
        let receivers = Receivers(receivers.collect());
        let keys = receivers.0.iter().map(|receiver| receiver.key).collect();
        (receivers, keys)
    }

    #[test]
    fn a_buffer_does_not_take_the_room_in_which_another_is_completed() {
        // Of 100 bytes, 40 are free, and the first value lacks all of them.
        let (mut receivers, keys) = receivers(&[(40, 40), (20, 60)]);
        assert!(!receivers.grow(keys[1], 20, (40, 0)));
        assert!(receivers.grow(keys[0], 40, (40, 0)));
        // The first is complete, and will give back 80.
        assert_eq!(receivers.0[0].missing, 0);
        assert!(!receivers.grow(keys[1], 20, (0, 0)), "there is no room");
    }

    #[test]
    fn what_is_spared_is_for_the_one_that_lacks_least() {
        let (mut receivers, keys) = receivers(&[(20, 10), (20, 30)]);
        assert!(receivers.grow(keys[1], 10, (40, 10)), "30 are left");
        assert!(
            !receivers.grow(keys[1], 10, (30, 25)),
            "less than is spared"
        );
        assert!(receivers.grow(keys[0], 10, (10, 10)));
        assert!(!receivers.grow(keys[1], 10, (5, 0)), "there is no room");
    }

    #[test]
    fn all_that_can_be_completed_one_after_the_other_are() {
        // Values of 30 bytes, of which each has 10, in a memory of 100 bytes.
        let (mut receivers, keys) = receivers(&[(10, 20); 8]);
        let mut room = 100 - 8 * 10;
        for key in keys {
            for _ in 0..2 {
                assert!(receivers.grow(key, 10, (room, 0)), "the next in turn");
                room -= 10;
            }
            let complete = receivers.0.remove(0);
            assert_eq!((complete.key, complete.missing), (key, 0));
            room += complete.held;
        }
        assert_eq!(room, 100);
    }

    /// Random requests to grow, of which the safe ones are granted, never end in a state in which
    /// no value can be completed.
    #[test]
    fn what_is_granted_can_be_completed() {
        let seed = 4;
        println!("seed {seed}");
        let mut random = SmallRng::seed_from_u64(seed);
        for _ in 0..2_000 {
            let total = random.random_range(50..200);
            let mut room = total;
            let mut values = Vec::new();
            for _ in 0..random.random_range(1..8) {
                let held = random.random_range(0..=room.min(10));
                room -= held;
                values.push((held, random.random_range(0..=total / 2)));
            }
            let (mut receivers, _) = receivers(&values);
            if !receivers.is_safe(room) {
                continue;
            }
            for _ in 0..100 {
                if receivers.0.is_empty() {
                    break;
                }
                let at = random.random_range(..receivers.0.len());
                let Receiver { key, held, missing } = receivers.0[at];
                if missing == 0 {
                    receivers.0.remove(at);
                    room += held;
                    continue;
                }
                let bytes = random.random_range(1..=missing);
                if receivers.grow(key, bytes, (room, 0)) {
                    room -= bytes;
                }
                let can_go_on = |r: &Receiver| r.missing <= room;
                assert!(receivers.0.iter().any(can_go_on), "deadlock");
            }
        }
    }
}
