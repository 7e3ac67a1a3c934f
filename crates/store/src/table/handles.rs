//! The writing side of every table, and a writer at work. A [`Design`] says what kind of table it
//! is.

use super::loans::{LOAN_WORDS_MIN, Loan};
use super::shared::{
    CellIn, EntryIn, Heap, HomeBucketIn, Index, Ledger, LockIn, Shared, SlotIn, State,
};
use super::{
    Announced, Begun, Draft, Found, Headway, Large, Lent, Purpose, Reader, Reservation, Reserved,
    Step, Stored, Table, TableFigures, TableWriter, WithLent,
};
use crate::access::{Access, Gate};
use crate::batches::{Batches, Seat};
use crate::flushes::number_in;
use crate::groups::Groups;
use crate::heap::{Item, NewItem, Put, write_draft, write_value_over};
use crate::memory::Words;
use crate::removals::{RemovalObserver, Tap};
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::sync::Ordering::Release;
use glimmer_base::sync::{Arc, fence, weakened};
use glimmer_base::{Expiry, Keyhash, Moment};

/// One kind of table.
pub trait Design: Sized + 'static {
    /// Who may touch what.
    type Access: Access;
    /// Where items lie, under which index.
    type Heap: Heap;
    /// What only the writer has.
    type State: State;

    /// Carries out a flush: from now on nothing that was stored is found, and then the number of
    /// flushes is announced. Nothing is walked.
    fn flush(writer: &mut Writer<'_, Self>, flushes: u64);

    /// Stores an item that is within the limit. None if the item's value was to stay, and had to
    /// leave to make room.
    fn store(writer: &mut Writer<'_, Self>, put: &Put<'_>) -> Option<Stored>;

    /// [Stores](Self::store) an item whose value is put around the one that its key has, which has
    /// not expired.
    fn extend(writer: &mut Writer<'_, Self>, put: &Put<'_>) -> Option<Stored> {
        Self::store(writer, put)
    }

    /// Takes one step towards a place for a large value.
    fn reserve(writer: &mut Writer<'_, Self>, reservation: &mut Reservation<'_>) -> Step;

    /// A place that is reserved, as long as that.
    fn place_of(shared: &Shared<Self::Heap>, place: Reserved) -> Words<'_>;

    /// Takes back a place whose value was not stored. Where that is not done, the place is lost
    /// until eviction comes to it.
    fn abandon(_writer: &mut Writer<'_, Self>, _place: Reserved) {}

    /// Makes an item of a draft of it. If that cannot be done, the place is taken back.
    fn store_drafted(writer: &mut Writer<'_, Self>, put: &Put<'_>, draft: Draft) -> Option<Stored>;

    /// Writes down what only the writer knows, if the table lies in a file.
    fn save(_writer: &mut Writer<'_, Self>) {}

    /// Words that the places of uploads may take, if there are several.
    fn upload_words_max(writer: &Writer<'_, Self>) -> u64;

    /// Words that the places of uploads take.
    fn upload_words(writer: &mut Writer<'_, Self>) -> u64 {
        writer.ledger().uploads.words()
    }

    /// Lets the eviction rule know that the writer has read an item, where the heap says that this
    /// may [move](Heap::moves_what_is_read) it.
    fn count_read_or_move(
        _writer: &mut Writer<'_, Self>,
        _keyhash: Keyhash,
        _named: (SlotOf<Self>, EntryOf<Self>),
        _now: Moment,
    ) {
    }

    /// Whether the item of an entry may be written over where it lies by one of the same size.
    fn may_write_over(
        shared: &Shared<Self::Heap>,
        state: &Self::State,
        entry: EntryOf<Self>,
    ) -> bool;

    /// An item of this many words was written over by one of the same size: in the midst of the
    /// change, the entry is to tell so.
    fn written_over(
        shared: &Shared<Self::Heap>,
        state: &mut Self::State,
        entry: (CellIn<'_, Self::Heap>, EntryOf<Self>),
        words: usize,
    );

    /// Takes back the memory of an item whose entry has just been cleared.
    fn free(_writer: &mut Writer<'_, Self>, _found: &Found<'_, Self::Heap>) {}

    /// Entries were cleared under a lock: the index may need less memory.
    fn cleared(_writer: &mut Writer<'_, Self>, _lock: LockOf<Self>) {}

    /// See [`TableWriter::walk_on`]: for tables that move entries from
    /// chain to chain.
    fn walk_on(
        _writer: &mut Writer<'_, Self>,
        _chain: Option<usize>,
        _visit: &mut dyn FnMut(&[u8]),
    ) -> bool {
        true
    }

    /// See [`TableWriter::begin_sweep`].
    fn begin_sweep(_writer: &mut Writer<'_, Self>) -> u64 {
        0
    }

    /// See [`TableWriter::has_swept`].
    fn has_swept(_writer: &mut Writer<'_, Self>, _name: u64) -> bool {
        true
    }

    /// An item was given this expiry in its place.
    fn amended(_writer: &mut Writer<'_, Self>, _expiry: Expiry) {}

    /// See [`TableWriter::stored_s`].
    fn stored_s(_writer: &Writer<'_, Self>, _found: &Found<'_, Self::Heap>) -> Option<u32> {
        None
    }
}

/// Where an entry of a table stands.
pub type SlotOf<D> = SlotIn<<D as Design>::Heap>;
/// An entry of a table.
pub type EntryOf<D> = EntryIn<<D as Design>::Heap>;
/// What covers an entry of a table.
pub type LockOf<D> = LockIn<<D as Design>::Heap>;

/// The gate to the state of a table's writer.
type GateOf<D> = <<D as Design>::Access as Access>::Gate<<D as Design>::State>;
/// What one has inside the gate: exclusive access to the writer's state.
type GuardOf<'a, D> = <GateOf<D> as Gate<<D as Design>::State>>::Guard<'a>;

/// The writing side of a table. Under EREW and CREW there is one. Under CRCW each core has one, and
/// writers exclude one another.
pub struct Owner<D: Design> {
    pub(crate) shared: Arc<Shared<D::Heap>>,
    gate: GateOf<D>,
    seat: Seat,
}

/// A writer at work: the owner inside its gate. Requests are executed on this.
pub struct Writer<'a, D: Design> {
    pub(crate) shared: &'a Shared<D::Heap>,
    pub(crate) state: GuardOf<'a, D>,
    pub(crate) seat: &'a Seat,
    /// The key that the writer has entered for, and where its entry could be not long ago.
    lead: (Keyhash, HomeBucketIn<D::Heap>),
}

/// A table without its access mode: what every core may see of it, its writer's state, and the
/// writer's place among the batches.
pub struct Parts<H: Heap, S> {
    shared: Arc<Shared<H>>,
    state: S,
    seat: Seat,
}

impl<D: Design> Owner<D> {
    pub(crate) fn of(shared: Shared<D::Heap>, state: D::State) -> Self {
        Owner {
            shared: Arc::new(shared),
            gate: Gate::new(state),
            seat: Seat::alone(),
        }
    }
}

/// Passes the gate of a table, at a time when `flushes` flushes were due.
#[inline(always)]
fn pass<'a, D: Design>(
    shared: &'a Shared<D::Heap>,
    gate: &'a mut GateOf<D>,
    seat: &'a Seat,
    flushes: u64,
) -> GuardOf<'a, D> {
    let guard = gate.enter();
    if D::Access::SHARED_WRITES && !weakened("enter_release_fence") {
        fence(Release);
    }
    match shared.common.flushes.is_word(flushes) {
        true => guard,
        false => catch_up::<D>(shared, guard, seat, flushes),
    }
}

/// Carries out flushes, once the gate has been passed, and finds out whether there are groups to
/// look at.
#[cold]
#[inline(never)]
fn catch_up<'a, D: Design>(
    shared: &'a Shared<D::Heap>,
    state: GuardOf<'a, D>,
    seat: &'a Seat,
    flushes: u64,
) -> GuardOf<'a, D> {
    let (known, due) = (&shared.common.flushes, number_in(flushes));
    let mut writer = Writer {
        shared,
        state,
        seat,
        lead: (Keyhash(0), HomeBucketIn::<D::Heap>::default()),
    };
    // Another writer may know of more flushes. What it has stored since then stays.
    if known.get() < due {
        known.begin();
        D::flush(&mut writer, due);
    }
    let groups = shared.common.groups.as_ref();
    known.know_groups(groups.is_some_and(|groups| groups.is_any_known()));
    writer.state
}

/// Notes a read of the writer in the index entry.
#[inline(always)]
pub(crate) fn note_read<'a, D: Design>(
    shared: &'a Shared<D::Heap>,
    cell: CellIn<'a, D::Heap>,
    entry: EntryOf<D>,
) {
    let (index, most) = (&shared.index, shared.heap.reads_counted());
    if D::Access::SHARED_READS {
        index.count_read(cell, entry, most);
    } else {
        index.count_read_alone(cell, entry, most);
    }
}

const _: () = assert!(
    (KEY_BYTES_MAX + 2 * 256) / 8 < LOAN_WORDS_MIN || cfg!(any(loom, miri)),
    "an item with nothing beside a key and a short value is never lent"
);

/// Stores an item over the old one of its key if both take as much memory and neither has anything
/// beside a key and a short value, as most stores are. Returns its CAS unique. Only the entry that
/// the home carries is looked at. The gate has been passed.
#[inline(always)]
fn write_over<D: Design>(
    shared: &Shared<D::Heap>,
    state: &mut D::State,
    (keyhash, home): (Keyhash, HomeBucketIn<D::Heap>),
    item: &NewItem<'_>,
) -> Option<u64> {
    let (index, heap) = (&shared.index, &shared.heap);
    let ((slot, entry), cell) = index.carried(home, keyhash)?;
    if !heap.is_tagged_live(entry) && !weakened("carried_live") {
        return None;
    }
    // An item that is plain has no expiry, and one of its size is within the limit.
    let old = Item::plain_of_key(heap.words(entry), item.key)?;
    if !item.replaces_plain(&old) || !D::may_write_over(shared, state, entry) {
        return None;
    }
    let cas = match item.history.cas {
        Some(cas) => cas,
        None => state.ledger().cas.draw(),
    };
    let lock = index.lock(home, slot);
    index.begin_change(lock, D::Access::SHARED_READS);
    write_value_over(&old, item, cas);
    D::written_over(shared, state, (cell, entry), old.words());
    index.end_change(lock, D::Access::SHARED_READS);
    shared.common.counters.stored.add(1);
    shared.common.counters.in_place_updates.add(1);
    Some(cas)
}

/// Stores an item once the gate has been passed. Most stores are of values of the same size as the
/// old ones. Only the others need a [`Writer`], which would lie in memory, and so do those of the
/// few keys that are followed, and of groups that were invalidated.
#[inline(always)]
fn put<'a, D: Design>(
    (shared, seat): (&'a Shared<D::Heap>, &'a Seat),
    mut state: GuardOf<'a, D>,
    (keyhash, home): (Keyhash, HomeBucketIn<D::Heap>),
    item: &NewItem<'_>,
    now: Moment,
) -> Stored {
    let home = shared.index.home_again(home, keyhash);
    let has_event = shared.common.has_event(item.key);
    if !has_event
        && !shared.follows(keyhash)
        && let Some(cas) = write_over::<D>(shared, &mut state, (keyhash, home), item)
    {
        return Stored::Yes(cas);
    }
    let writer: Writer<'_, D> = Writer {
        shared,
        state,
        seat,
        lead: (keyhash, home),
    };
    match has_event {
        true => put_born::<D>(writer, *item, now),
        false => put_apart::<D>(writer, *item, now),
    }
}

/// Stores an item by a writer that has entered for its key, whose group was not invalidated.
#[inline(never)]
fn put_apart<D: Design>(mut writer: Writer<'_, D>, item: NewItem<'_>, now: Moment) -> Stored {
    let (keyhash, _) = writer.lead;
    writer.put_unborn(keyhash, &item, now)
}

/// The same where the group was.
#[cold]
#[inline(never)]
fn put_born<D: Design>(mut writer: Writer<'_, D>, item: NewItem<'_>, now: Moment) -> Stored {
    let (keyhash, _) = writer.lead;
    writer.put(keyhash, &item, now)
}

impl<D: Design> Writer<'_, D> {
    #[inline(always)]
    pub(crate) fn ledger(&mut self) -> &mut Ledger {
        self.state.ledger()
    }

    /// Lets others in who wait.
    pub(super) fn leave(self) {
        GateOf::<D>::leave(self.state);
    }

    /// Where the key's entry can be now.
    #[inline(always)]
    pub(crate) fn home(&self, keyhash: Keyhash) -> HomeBucketIn<D::Heap> {
        let (index, (lead, home)) = (&self.shared.index, self.lead);
        match lead == keyhash {
            true => index.home_again(home, keyhash),
            false => index.home(keyhash),
        }
    }
}

impl<D: Design> Table for Owner<D> {
    type Access = D::Access;
    type Writer<'a> = Writer<'a, D>;
    type HomeBucket = HomeBucketIn<D::Heap>;
    type Reader = Reader<D::Heap>;
    type Prefetcher = Shared<D::Heap>;
    type Parts = Parts<D::Heap, D::State>;

    /// # Memory that one writer gives up and another overwrites
    ///
    /// A reader validates what it has copied by words that the writer changes before it gives
    /// memory up: a version, a head, a number of flushes. Between that change and the first store
    /// to the memory lies a release fence. The reader runs an acquire fence between its copy and
    /// its last look. If it has copied one new byte, the fences synchronise, and its last look sees
    /// the change.
    ///
    /// Where all may write, the thread that overwrites need not be the one that made the change.
    /// The fence of the first thread orders nothing for the second: the lock makes the change
    /// happen before the second thread's stores, but a relaxed store carries none of that to a
    /// reader that sees it. So a writer that enters runs a release fence of its own, once for all
    /// that others have given up.
    #[inline(always)]
    fn enter_at(
        &mut self,
        keyhash: Keyhash,
        home: Self::HomeBucket,
        flushes: u64,
    ) -> Writer<'_, D> {
        let state = pass::<D>(&self.shared, &mut self.gate, &self.seat, flushes);
        self.shared.common.entered();
        Writer {
            shared: &self.shared,
            state,
            seat: &self.seat,
            lead: (keyhash, home),
        }
    }

    /// Only a rule that moves what is read needs a [`Writer`], which would lie in memory.
    #[inline(always)]
    fn read_at<T>(
        &mut self,
        (keyhash, home): (Keyhash, Self::HomeBucket),
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T> {
        let shared = &*self.shared;
        let state = pass::<D>(shared, &mut self.gate, &self.seat, flushes);
        let home = shared.index.home_again(home, keyhash);
        let found = match shared.find_in_either(home, keyhash, key) {
            Some(found) if !shared.is_gone(&found, key, now) => found,
            _ => {
                shared.was_missed(keyhash, now);
                return None;
            }
        };
        let taken = take(&found.item);
        if shared.heap.moves_what_is_read() {
            shared.common.entered();
            let mut writer = Writer {
                shared,
                state,
                seat: &self.seat,
                lead: (keyhash, home),
            };
            D::count_read_or_move(&mut writer, keyhash, (found.slot, found.entry), now);
        } else {
            note_read::<D>(shared, found.cell, found.entry);
        }
        shared.was_hit(keyhash, found.entry, now);
        Some(taken)
    }

    #[inline(always)]
    fn put_at(
        &mut self,
        at: (Keyhash, Self::HomeBucket),
        item: &NewItem<'_>,
        now: Moment,
        flushes: u64,
    ) -> Stored {
        let (shared, seat) = (&*self.shared, &self.seat);
        let state = pass::<D>(shared, &mut self.gate, seat, flushes);
        put::<D>((shared, seat), state, at, item, now)
    }

    #[inline(always)]
    fn put_at_unless(
        &mut self,
        at: (Keyhash, Self::HomeBucket),
        item: &NewItem<'_>,
        now: Moment,
        flushes: u64,
        is_in_the_way: impl FnOnce() -> bool,
    ) -> Option<Stored> {
        let (shared, seat) = (&*self.shared, &self.seat);
        let state = pass::<D>(shared, &mut self.gate, seat, flushes);
        (!is_in_the_way()).then(|| put::<D>((shared, seat), state, at, item, now))
    }

    #[cold]
    #[inline(never)]
    fn draft(
        &mut self,
        home: Self::HomeBucket,
        flushes: u64,
        large: &Large<'_>,
        mut is_wanted: impl FnMut(&Writer<'_, D>) -> bool,
    ) -> Option<Draft> {
        if !D::Access::SHARED_WRITES {
            return None;
        }
        let Large {
            key,
            keyhash,
            value,
            now,
        } = *large;
        let at = (key, keyhash);
        let mut reservation = Reservation::of(Purpose::Draft, at, value.len(), now)?;
        let (number, place) = loop {
            let mut writer = self.enter_at(keyhash, home, flushes);
            if !is_wanted(&writer) {
                return None;
            }
            let drafts = &writer.shared.common.drafts;
            let number = drafts.next()?;
            let step = D::reserve(&mut writer, &mut reservation);
            if let Step::Reserved(place) = step {
                drafts.begin(number, place.at);
            }
            writer.leave();
            match step {
                Step::Reserved(place) => break (number, place),
                Step::Again => {}
                Step::Never => return None,
            }
        };
        write_draft(D::place_of(&self.shared, place), key, value);
        self.shared.common.drafts.end(number);
        Some(Draft::at(place, keyhash, value))
    }

    fn begin_upload(
        &mut self,
        home: Self::HomeBucket,
        flushes: u64,
        announced: &Announced<'_>,
        headway: &mut Headway,
    ) -> Begun {
        self.receive(home, flushes, announced, headway)
    }

    #[cold]
    #[inline(never)]
    fn lend<T>(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<WithLent<T>> {
        let shared = &self.shared;
        let _state = pass::<D>(shared, &mut self.gate, &self.seat, flushes);
        let found = shared.find_in_either(shared.index.home(keyhash), keyhash, key)?;
        if shared.is_gone(&found, key, now) {
            return None;
        }
        // Nothing is written before the gate is left, so that the item is still there.
        let loan = Loan::new(found.item, shared.note_loan(&found)?);
        Some((take(&found.item), Lent::of(loan, shared)))
    }

    fn reader(&self) -> Option<Self::Reader> {
        D::Access::SHARED_READS.then(|| Reader {
            shared: self.shared.clone(),
            seat: self.seat.clone(),
        })
    }

    fn save(&mut self, flushes: u64) {
        D::save(&mut self.enter(flushes));
    }

    fn share(&self, worker: usize) -> Option<Self> {
        Some(Owner {
            shared: self.shared.clone(),
            gate: self.gate.share()?,
            seat: self.seat.of_worker(worker),
        })
    }

    fn into_parts(self) -> Option<Self::Parts> {
        Some(Parts {
            shared: self.shared,
            state: self.gate.into_state()?,
            seat: self.seat,
        })
    }

    fn of_parts(parts: Self::Parts) -> Self {
        Owner {
            shared: parts.shared,
            gate: Gate::new(parts.state),
            seat: parts.seat,
        }
    }

    fn have_groups(&mut self, groups: &Arc<Groups>) {
        let shared = Arc::get_mut(&mut self.shared).expect("the table is not shared yet");
        shared.common.groups = Some(groups.clone());
    }

    fn observe(&mut self, tap: std::sync::Arc<Tap<dyn RemovalObserver>>) {
        let shared = Arc::get_mut(&mut self.shared).expect("the table is not shared yet");
        shared.common.exit.attach(tap);
    }

    fn join(&mut self, batches: &Arc<Batches>, worker: usize) {
        self.seat = Seat::new(batches, worker);
    }

    fn prefetcher(&self) -> Arc<Self::Prefetcher> {
        self.shared.clone()
    }

    fn figures(&self) -> Box<dyn TableFigures> {
        Box::new(self.shared.clone())
    }
}
