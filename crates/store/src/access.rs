//! Access modes: EREW, CREW and CRCW (MICA §4.1.2) as types over one store. A mode says which
//! threads may read and write a partition.
//!
//! | | reads by other cores | writes by other cores | what it costs |
//! | --- | --- | --- | --- |
//! | [`Erew`] | no | no | nothing: no version moves, no fence, no lock |
//! | [`Crew`] | optimistic | no | a writer moves versions and the log's head, with fences |
//! | [`Crcw`] | optimistic | one at a time | as CREW, and a lock per partition around every write |
//!
//! The rules are kept by ownership: a partition's writing side is a [`Gate`] around its writer's
//! state. Under EREW and CREW there is one gate and it cannot be shared, so one thread at a time
//! has it. Under CRCW every core holds a share and enters through a mutex. The paper locks single
//! buckets under CRCW; one lock for the partition excludes the same writers from the log's tail as
//! well and keeps eviction, which writes to other buckets, free of lock order. There are several
//! partitions per core, so that writers seldom meet.

use glimmer_base::sync::{Arc, Mutex, MutexGuard, lock, unlock_fairly, unlocked};
use std::ops::DerefMut;

/// An access mode.
pub trait Access: Send + Sync + 'static {
    /// What the mode is called in the configuration.
    const NAME: &'static str;
    /// Whether other cores read while one writes.
    const SHARED_READS: bool;
    /// Whether every core may write, so that even there reading goes without the lock.
    const SHARED_WRITES: bool;
    /// What lets one writer in at a time.
    type Gate<S: Send>: Gate<S>;
}

/// Mutual exclusion of a partition's writers: a lock where several threads may write, and plain
/// ownership where one may.
pub trait Gate<S>: Send {
    /// The state, for as long as one writer works.
    type Guard<'a>: DerefMut<Target = S>
    where
        Self: 'a;

    /// A gate around the state, which nobody has entered.
    fn new(state: S) -> Self;

    /// Waits for its turn, if there are others.
    fn enter(&mut self) -> Self::Guard<'_>;

    /// Lets those in who wait, before this thread enters again.
    fn leave(guard: Self::Guard<'_>);

    /// Another handle to the gate, if several threads may write.
    fn share(&self) -> Option<Self>
    where
        Self: Sized;

    /// The state, if this is the only handle to the gate.
    fn into_state(self) -> Option<S>
    where
        Self: Sized;
}

/// Exclusive read, exclusive write: only the owner touches a partition.
pub enum Erew {}

/// Concurrent read, exclusive write: any core reads, the owner writes.
pub enum Crew {}

/// Concurrent read, concurrent write: any core reads and writes; writers exclude one another.
pub enum Crcw {}

impl Access for Erew {
    const NAME: &'static str = "erew";
    const SHARED_READS: bool = false;
    const SHARED_WRITES: bool = false;
    type Gate<S: Send> = Owned<S>;
}

impl Access for Crew {
    const NAME: &'static str = "crew";
    const SHARED_READS: bool = true;
    const SHARED_WRITES: bool = false;
    type Gate<S: Send> = Owned<S>;
}

impl Access for Crcw {
    const NAME: &'static str = "crcw";
    const SHARED_READS: bool = true;
    const SHARED_WRITES: bool = true;
    type Gate<S: Send> = Locked<S>;
}

/// A gate with one handle, so that entering it costs nothing.
pub struct Owned<S>(S);

impl<S: Send> Gate<S> for Owned<S> {
    type Guard<'a>
        = &'a mut S
    where
        S: 'a;

    fn new(state: S) -> Self {
        Owned(state)
    }

    #[inline(always)]
    fn enter(&mut self) -> &mut S {
        &mut self.0
    }

    fn leave(_guard: &mut S) {}

    fn share(&self) -> Option<Self> {
        None
    }

    fn into_state(self) -> Option<S> {
        Some(self.0)
    }
}

/// A gate with several handles: a mutex.
pub struct Locked<S>(Arc<Mutex<S>>);

impl<S: Send> Gate<S> for Locked<S> {
    type Guard<'a>
        = MutexGuard<'a, S>
    where
        S: 'a;

    fn new(state: S) -> Self {
        Locked(Arc::new(Mutex::new(state)))
    }

    #[inline(always)]
    fn enter(&mut self) -> MutexGuard<'_, S> {
        lock(&self.0)
    }

    fn leave(guard: MutexGuard<'_, S>) {
        unlock_fairly(guard);
    }

    fn share(&self) -> Option<Self> {
        Some(Locked(self.0.clone()))
    }

    fn into_state(self) -> Option<S> {
        Arc::try_unwrap(self.0).ok().map(unlocked)
    }
}
