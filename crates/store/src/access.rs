//! Who may touch a partition: EREW, CREW and CRCW (MICA §4.1.2) as types over one store.
//!
//! | | reads by other cores | writes by other cores | what it costs |
//! | --- | --- | --- | --- |
//! | [`Erew`] | no | no | nothing: no version moves, no fence, no lock |
//! | [`Crew`] | optimistic | no | a writer moves the bucket's version and publishes the log's head behind fences |
//! | [`Crcw`] | optimistic | one at a time | as CREW, and a lock per partition around every write |
//!
//! The rules are kept by ownership: a partition's writing side is a [`Gate`] around its writer's
//! state. Under EREW and CREW there is one gate and it cannot be shared, so one thread at a time
//! has it. Under CRCW every core holds a share and enters through a mutex. The paper locks single
//! buckets under CRCW; one lock for the partition excludes the same writers from the log's tail as
//! well and keeps eviction, which writes to other buckets, free of lock order. There are several
//! partitions per core, so that writers seldom meet.

use glimmer_base::sync::Ordering::Release;
use glimmer_base::sync::{Arc, Mutex, MutexGuard, fence, lock, weakened};
use std::ops::DerefMut;

/// An access mode.
pub trait Access: Send + Sync + 'static {
    /// What the mode is called in the configuration.
    const NAME: &'static str;
    /// Whether other cores read while one writes.
    const SHARED_READS: bool;
    /// Whether every core may write, so that even there reading goes without the lock.
    const SHARED_WRITES: bool;
    /// How the writing side is entered.
    type Gate<S: Send>: Gate<S>;
}

/// The way to the state that only one writer at a time may use.
pub trait Gate<S>: Send {
    /// The state, for as long as one writer works.
    type Guard<'a>: DerefMut<Target = S>
    where
        Self: 'a;

    /// A closed gate around the state.
    fn new(state: S) -> Self;

    /// Waits for its turn, if there are others.
    fn enter(&mut self) -> Self::Guard<'_>;

    /// A second key to the gate, if there may be one.
    fn share(&self) -> Option<Self>
    where
        Self: Sized;
}

/// A table's writer, as far as every table begins work in the same way.
pub(crate) trait CatchUp {
    /// How many flushes the table has carried out.
    fn flushes(&self) -> u64;

    /// Carries out a flush, after which that is the number.
    fn flush(&mut self, flushes: u64);
}

/// Begins work on a table at a time when `flushes` flushes were due: passes the gate, and has the
/// table catch up with the flushes.
///
/// # Memory that one writer gives up and another overwrites
///
/// A reader validates what it has copied by words that the writer changes before it gives memory
/// up: a version, a head, a number of flushes. Between that change and the first store to the memory
/// lies a release fence. The reader runs an acquire fence between its copy and its last look. If it
/// has copied one new byte, the fences synchronise, and its last look sees the change.
///
/// Where all may write, the thread that overwrites need not be the one that made the change. The
/// fence of the first thread orders nothing for the second: the lock makes the change happen before
/// the second thread's stores, but a relaxed store carries none of that to a reader that sees it.
/// So a writer that enters runs a release fence of its own, once for all that others have given up.
#[inline(always)]
pub(crate) fn enter<'a, A: Access, S: Send, W: CatchUp>(
    gate: &'a mut A::Gate<S>,
    writer: impl FnOnce(<A::Gate<S> as Gate<S>>::Guard<'a>) -> W,
    flushes: u64,
) -> W {
    let mut writer = writer(gate.enter());
    if A::SHARED_WRITES && !weakened("enter_release_fence") {
        fence(Release);
    }
    // Another writer may know of more flushes. What it has stored since then stays.
    if writer.flushes() < flushes {
        writer.flush(flushes);
    }
    writer
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

/// A gate with one key.
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

    fn share(&self) -> Option<Self> {
        None
    }
}

/// A gate that many hold and one at a time passes.
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

    fn share(&self) -> Option<Self> {
        Some(Locked(self.0.clone()))
    }
}
