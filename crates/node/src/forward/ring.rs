//! A bounded ring between one producer and one consumer.

use std::mem::MaybeUninit;

use crossbeam_utils::CachePadded;
use glimmer_base::sync::Ordering::{self, Acquire, Relaxed, Release};
use glimmer_base::sync::{Arc, AtomicUsize, UnsafeCell, weakened};

/// Where the two ends meet. Positions count up for ever and wrap with `usize`; a position's slot is
/// its low bits.
///
/// **Invariant.** `head <= tail <= head + slots.len()` (as distances). The slots in `head..tail`
/// hold values and belong to the consumer; the others are uninitialised and belong to the producer.
/// Only the producer stores `tail`, only the consumer stores `head`, and each end exists once
/// ([`Producer`] and [`Consumer`] are not `Clone`, and pushing and popping take `&mut`).
///
/// **Why the orderings suffice.** A slot changes hands twice per lap.
/// - Producer to consumer: the value is written before `tail` is stored with Release; the consumer
///   reads the slot only after its Acquire load of `tail` saw that store, so the write happens
///   before the read.
/// - Consumer to producer: the value is moved out before `head` is stored with Release; the
///   producer writes the slot again only after its Acquire load of `head` saw that store, so the
///   read happens before the overwrite.
///
/// Each end keeps the other's position as it last saw it. An old one is only ever too careful: it
/// makes the ring look fuller to the producer and emptier to the consumer. Each of the four
/// orderings can be weakened by name (`weakenings.txt`), and `tests/loom_ring.rs` then fails.
struct Shared<T> {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: a slot is reached by one thread at a time (the invariant of `Shared`), and its value
// moves from one to the other.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: the thread that drops the last reference has exclusive access to the remaining values.
unsafe impl<T: Send> Send for Shared<T> {}

/// The end for adding values.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
    head_seen: usize,
}

/// The end for removing values.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    head: usize,
    tail_seen: usize,
}

/// The ordering for a hand-over, unless the one with this name is weakened.
#[inline(always)]
fn ordering(name: &str, needed: Ordering) -> Ordering {
    if weakened(name) { Relaxed } else { needed }
}

/// Creates a ring for up to `capacity` values, a power of two.
pub fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    assert!(capacity.is_power_of_two());
    let shared = Arc::new(Shared {
        tail: CachePadded::new(AtomicUsize::new(0)),
        head: CachePadded::new(AtomicUsize::new(0)),
        slots: (0..capacity)
            .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
            .collect(),
    });
    let producer = Producer {
        shared: shared.clone(),
        tail: 0,
        head_seen: 0,
    };
    let consumer = Consumer {
        shared,
        head: 0,
        tail_seen: 0,
    };
    (producer, consumer)
}

impl<T> Shared<T> {
    #[inline(always)]
    fn tail(&self) -> usize {
        self.tail.load(ordering("ring_acquire", Acquire))
    }

    #[inline(always)]
    fn set_tail(&self, tail: usize) {
        self.tail.store(tail, ordering("ring_release", Release));
    }

    #[inline(always)]
    fn head(&self) -> usize {
        self.head.load(ordering("ring_reuse_acquire", Acquire))
    }

    #[inline(always)]
    fn set_head(&self, head: usize) {
        self.head
            .store(head, ordering("ring_reuse_release", Release));
    }

    fn slot(&self, position: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[position & (self.slots.len() - 1)]
    }
}

impl<T> Producer<T> {
    /// Adds a value, or returns it if the ring is full.
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.tail.wrapping_sub(self.head_seen) == self.shared.slots.len() {
            self.head_seen = self.shared.head();
            if self.tail.wrapping_sub(self.head_seen) == self.shared.slots.len() {
                return Err(value);
            }
        }
        self.shared.slot(self.tail).with_mut(|slot| {
            // SAFETY: the slot lies outside `head..tail`, so it is the producer's and
            // uninitialised.
            unsafe { (*slot).write(value) };
        });
        self.tail = self.tail.wrapping_add(1);
        self.shared.set_tail(self.tail);
        Ok(())
    }
}

impl<T> Consumer<T> {
    /// Removes the oldest value.
    pub fn pop(&mut self) -> Option<T> {
        if self.head == self.tail_seen {
            self.tail_seen = self.shared.tail();
            if self.head == self.tail_seen {
                return None;
            }
        }
        let value = self.shared.slot(self.head).with(|slot| {
            // SAFETY: the slot lies in `head..tail`, so it is the consumer's and holds a value.
            // Incrementing `head` below ensures that it is read once.
            unsafe { (*slot).assume_init_read() }
        });
        self.head = self.head.wrapping_add(1);
        self.shared.set_head(self.head);
        Some(value)
    }

    /// Whether the ring is empty.
    pub fn is_empty(&self) -> bool {
        self.head == self.shared.tail()
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let tail = self.tail.load(Ordering::Relaxed);
        let mut head = self.head.load(Ordering::Relaxed);
        while head != tail {
            self.slot(head).with_mut(|slot| {
                // SAFETY: the last reference is being dropped, so both ends are gone, and slots in
                // `head..tail` hold values.
                unsafe { (*slot).assume_init_drop() };
            });
            head = head.wrapping_add(1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_in_order_and_a_full_ring_refuses() {
        let (mut producer, mut consumer) = ring(4);
        for lap in 0..5 {
            assert!(consumer.is_empty());
            for i in 0..4 {
                producer.push(lap * 10 + i).unwrap();
            }
            assert_eq!(producer.push(99), Err(99));
            for i in 0..4 {
                assert_eq!(consumer.pop(), Some(lap * 10 + i));
            }
            assert_eq!(consumer.pop(), None);
        }
    }

    #[test]
    fn values_left_in_the_ring_are_dropped_once() {
        let value = std::sync::Arc::new(());
        let (mut producer, mut consumer) = ring(8);
        for _ in 0..6 {
            producer.push(value.clone()).unwrap();
        }
        drop(consumer.pop());
        assert_eq!(std::sync::Arc::strong_count(&value), 6);
        drop((producer, consumer));
        assert_eq!(std::sync::Arc::strong_count(&value), 1);
    }
}
