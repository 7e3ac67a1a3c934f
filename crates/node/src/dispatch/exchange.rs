//! A rendezvous of all workers, for what is replaced in all of them at once.

use glimmer_base::sync::Ordering::{Acquire, Release};
use glimmer_base::sync::{AtomicUsize, Mutex, Thread, current, lock, weakened};

/// A rendezvous of all workers. Each hands in its part, the last one makes the new parts from the
/// old ones, and each takes its new part. Afterwards there can be another rendezvous.
///
/// 1. A worker [settles](Exchange::settle) when it no longer needs the others' old parts. It goes
///    on to work with its own, because others may still need it.
/// 2. When [all have settled](Exchange::have_settled), each [hands in](Exchange::hand_in) its part
///    and rests.
/// 3. The last one receives all parts, and [puts others back](Exchange::put_back).
/// 4. Each [takes back](Exchange::take_back) its part.
///
/// **Memory ordering.** The parts pass through a mutex, which orders them and all that was done
/// with them. A worker counts itself as settled with release, and a worker that has read the full
/// number with acquire sees what all did before. The number returns to zero only after every part
/// was taken back.
pub struct Exchange<T> {
    workers: usize,
    settled: AtomicUsize,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// By worker: the part that was handed in, or its replacement.
    parts: Vec<Option<T>>,
    /// The parts are replacements.
    are_back: bool,
    /// By worker: the thread that rests.
    resting: Vec<Option<Thread>>,
}

impl<T> Exchange<T> {
    /// For this number of workers.
    pub fn new(workers: usize) -> Exchange<T> {
        Exchange {
            workers,
            settled: AtomicUsize::new(0),
            state: Mutex::new(State {
                parts: (0..workers).map(|_| None).collect(),
                are_back: false,
                resting: (0..workers).map(|_| None).collect(),
            }),
        }
    }

    /// Whether no meeting is going on.
    pub fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        self.settled.load(Acquire) == 0 && state.parts.iter().all(Option::is_none)
    }

    /// A worker has settled. Returns whether it was the last one.
    pub fn settle(&self) -> bool {
        self.settled.fetch_add(1, Release) + 1 == self.workers
    }

    /// Whether all workers have settled.
    pub fn have_settled(&self) -> bool {
        self.settled.load(Acquire) == self.workers || weakened("handed_in_before_others_settled")
    }

    /// Takes a worker's part. Its thread may [park](glimmer_base::sync::park) from now on. Returns
    /// all parts if no other is missing; the caller then puts others back.
    pub fn hand_in(&self, worker: usize, part: T) -> Option<Vec<T>> {
        let mut state = lock(&self.state);
        state.parts[worker] = Some(part);
        state.resting[worker] = Some(current());
        if state.parts.iter().any(Option::is_none) {
            return None;
        }
        Some(state.parts.iter_mut().filter_map(Option::take).collect())
    }

    /// The parts that replace those that were handed in, in the order of the workers. Wakes the
    /// threads that rest.
    pub fn put_back(&self, parts: Vec<T>) {
        let mut state = lock(&self.state);
        for (place, part) in state.parts.iter_mut().zip(parts) {
            *place = Some(part);
        }
        state.are_back = true;
        state.wake();
    }

    /// A worker's new part, if it is there.
    pub fn take_back(&self, worker: usize) -> Option<T> {
        let mut state = lock(&self.state);
        if !state.are_back {
            return None;
        }
        let part = state.parts[worker].take()?;
        state.resting[worker] = None;
        if state.parts.iter().all(Option::is_none) {
            state.are_back = false;
            self.settled.store(0, Release);
        }
        Some(part)
    }

    /// The part that a worker has handed in itself, unless all have done so: the meeting will not
    /// be completed.
    pub fn withdraw(&self, worker: usize) -> Option<T> {
        let mut state = lock(&self.state);
        match state.are_back {
            true => None,
            false => state.parts[worker].take(),
        }
    }

    /// Wakes the threads that rest, so that they look around.
    pub fn wake(&self) {
        lock(&self.state).wake();
    }
}

impl<T> State<T> {
    fn wake(&self) {
        for thread in self.resting.iter().flatten() {
            thread.unpark();
        }
    }
}
