//! Large values are received where their items are to lie.
//!
//! The client announces a large value before it sends it. Then the table reserves a place for its
//! item, as for a [`Draft`](super::Draft): it is neither an item nor free. The bytes are stored
//! there as they arrive, over many turns and for as long as the client takes, while no lock of the
//! table is held. When all have arrived the request is executed as any other
//! ([`TableWriter::with_upload`](super::TableWriter::with_upload)). If it stores the value, the
//! place becomes the item, and nothing is copied.
//!
//! # Who may store to the place
//!
//! An [`Upload`] is one thread's at a time, but may move between threads. It stores to its place
//! with the lock of its [`Cell`] held, for one slice at a time, and waits for nothing meanwhile.
//!
//! A writer that needs the place for something else, such as the head of a log that comes to it,
//! does not wait for the client. It takes the lock, copies what has arrived to another place, and
//! notes that one in the cell. So each store of a receiver to the old place happens before the
//! copy, and the copy before whatever is stored there next.
//!
//! An upload that is dropped gives its place up without passing the table's gate, and so from any
//! thread. The cell notes that by a release store. The next writer that looks for room takes the
//! place back after an acquire load. Then nothing is stored there by the receiver any more.
//!
//! # Optimistic readers
//!
//! No entry names the place, so a reader meets it only if it has found the item that lay there
//! before. A writer gave that item up, by a change of a word that readers look at again (a head, a
//! version), before it reserved the place or moved the upload there. This happens before the
//! receiver takes the cell's lock, or before the upload is handed to it. The receiver runs a
//! release fence before each slice that it stores. So if a reader has copied one byte of the slice,
//! its acquire fence synchronises with that fence, and its last look sees that the item is gone.
//! The fence of the writer that reserved the place would not do, as the receiver may be another
//! thread (see [`Table::enter_at`](super::Table::enter_at)).
//!
//! The kernel may store to the place as well ([`Upload::receive`]). It does so on behalf of the
//! thread, with the same instructions as any store of bytes, after the fence and before the call
//! returns.

use super::draft::Reserved;
use crate::heap::{append_bytes, bytes_in_place, store_bytes};
use crate::memory::Words;
use glimmer_base::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use glimmer_base::sync::{Arc, AtomicBool, AtomicU64, Mutex, fence, lock, weakened};
use glimmer_base::{Keyhash, Moment, Region};
use std::collections::BTreeMap;
use std::ops::Range;

/// What is known of a value before it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Announced<'a> {
    /// 1 to 250 bytes.
    pub key: &'a [u8],
    /// The hash of the key.
    pub keyhash: Keyhash,
    /// Bytes of the value.
    pub value_bytes: usize,
    /// It begins while all uploads together take at most this part (1 / n) of what they may. 1 for
    /// a value that waits for nothing but its client; more for what is kept until such values have
    /// places.
    pub part: u64,
    /// When it was announced.
    pub now: Moment,
}

/// Whether a value that was announced is received where its item is to lie.
pub enum Begun {
    /// It is.
    Yes(Upload),
    /// Not now: the places of other uploads take as much memory as they may.
    Full,
    /// Not in this turn: more items have to leave for it than those that may. The caller is to ask
    /// again, with the same headway, when others have had their turn.
    Again,
    /// No: the value is too small for that or too large, or the table has no room for it.
    Never,
}

/// A large value on its way into a table. If it is dropped, its place is given up.
pub struct Upload {
    cell: Arc<Cell>,
    table: Box<dyn Receiving>,
    /// Byte of the place at which the value begins.
    value_at: usize,
    bytes: usize,
    keyhash: Keyhash,
    /// Whether the writer has the place back.
    is_over: bool,
}

/// The table of an upload, and with it the table's memory.
pub(crate) trait Receiving: Send + Sync {
    /// The table's figures of its uploads.
    fn underway(&self) -> &Underway;
}

impl Upload {
    /// An upload to a place of this table, where the key and the length stand.
    ///
    /// # Safety
    ///
    /// The place is in the memory of `table`.
    pub(crate) unsafe fn new(
        table: Box<dyn Receiving>,
        (place, words): (Reserved, Words<'_>),
        (value_at, bytes): (usize, usize),
        keyhash: Keyhash,
    ) -> Upload {
        table.underway().begin(bytes);
        Upload {
            cell: Arc::new(Cell {
                at: AtomicU64::new(place.at),
                words: place.words,
                location: Mutex::new(Location {
                    // SAFETY: the upload has the table, and uses the place only while it has it.
                    place: unsafe { lengthen(words) },
                    begun_words: value_at / 8 + 1,
                }),
                is_given_up: AtomicBool::new(false),
            }),
            table,
            value_at,
            bytes,
            keyhash,
            is_over: false,
        }
    }

    /// Bytes of the value.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Stores bytes of the value, from its byte `at` on.
    ///
    /// # Panics
    ///
    /// If the value is shorter.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.bytes, "the value ends before");
        let place = self.use_place(at + bytes.len());
        store_bytes(place.0.place, self.value_at + at, bytes);
    }

    /// Passes the place of the value's bytes from `at` on, of `bytes_max` at most, to `receive`,
    /// for a system call to store to. Returns what it returns.
    ///
    /// A writer may wait meanwhile, so `receive` waits for nothing.
    ///
    /// # Panics
    ///
    /// If the value is shorter than `at`.
    pub fn receive<T>(
        &self,
        at: usize,
        bytes_max: usize,
        receive: impl FnOnce(Region<'_>) -> T,
    ) -> T {
        let len = bytes_max.min(self.bytes.checked_sub(at).expect("the value ends before"));
        // Held until the bytes are there.
        let using = self.use_place(at + len);
        let place = using.0.place;
        // Miri would report that an optimistic reader's use of a word races with the use of a byte.
        match bytes_in_place(place, self.value_at + at, len).filter(|_| !cfg!(miri)) {
            // SAFETY: the place is this upload's, and nobody else stores to it while the lock of
            // its cell is held.
            Some(bytes) => receive(unsafe { Region::new(bytes.as_ptr().cast(), len) }),
            None => {
                let mut copy = Vec::with_capacity(len);
                append_bytes(
                    place,
                    self.value_at + at..self.value_at + at + len,
                    &mut copy,
                );
                // SAFETY: the copy is as long.
                let received = receive(unsafe { Region::new(copy.as_mut_ptr(), len) });
                store_bytes(place, self.value_at + at, &copy);
                received
            }
        }
    }

    /// Appends some of the value's bytes to `out`, for a request that does not store the value as a
    /// whole.
    ///
    /// # Panics
    ///
    /// If the value is shorter.
    pub fn copy_to(&self, range: Range<usize>, out: &mut Vec<u8>) {
        assert!(range.end <= self.bytes, "the value ends before");
        let location = lock(&self.cell.location);
        let range = self.value_at + range.start..self.value_at + range.end;
        append_bytes(location.place, range, out);
    }

    /// The place, to store the value's bytes up to this one.
    fn use_place(&self, end: usize) -> Using<'_> {
        let mut location = lock(&self.cell.location);
        let end_words = (self.value_at + end).div_ceil(8);
        location.begun_words = location.begun_words.max(end_words);
        if !weakened("upload_fence") {
            fence(Release);
        }
        Using(location)
    }

    pub(super) fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    pub(super) fn keyhash(&self) -> Keyhash {
        self.keyhash
    }

    pub(super) fn value_at(&self) -> usize {
        self.value_at
    }

    /// The writer has the place back.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}

/// A place with its cell's lock held.
struct Using<'a>(glimmer_base::sync::MutexGuard<'a, Location>);

impl Drop for Upload {
    fn drop(&mut self) {
        let underway = self.table.underway();
        underway.end(self.bytes);
        if !self.is_over {
            self.cell.is_given_up.store(true, Release);
            underway.given_up.fetch_add(1, Release);
        }
    }
}

/// # Safety
///
/// The memory has to be there for as long as the result is used.
unsafe fn lengthen(words: Words<'_>) -> Words<'static> {
    // SAFETY: the two differ in their lifetime only, and the caller answers for that.
    unsafe { std::mem::transmute::<Words<'_>, Words<'static>>(words) }
}

/// What the receiver and the table know of an upload.
pub(crate) struct Cell {
    /// What the place is called. Only for writers.
    at: AtomicU64,
    words: u64,
    location: Mutex<Location>,
    is_given_up: AtomicBool,
}

struct Location {
    /// Where the bytes lie.
    place: Words<'static>,
    /// Words at its beginning that may have been stored to.
    begun_words: usize,
}

impl Cell {
    /// The place. Only for writers.
    pub fn place(&self) -> Reserved {
        Reserved {
            at: self.at.load(Relaxed),
            words: self.words,
        }
    }

    /// Whether the upload was dropped. Then nothing is stored to the place by it any more.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up.load(Acquire)
    }

    /// Moves what has arrived: `move_words` copies as many words as it is told from the place, and
    /// returns the new one. Only for writers.
    ///
    /// # Safety
    ///
    /// The new place is in the memory of the same table.
    pub unsafe fn relocate<'a>(&self, move_words: impl FnOnce(usize) -> Words<'a>) {
        let mut location = lock(&self.location);
        let place = move_words(location.begun_words);
        if !weakened("upload_move") {
            // SAFETY: as in `Upload::new`.
            location.place = unsafe { lengthen(place) };
        }
    }
}

/// The places of a table's uploads, which only the writer knows.
#[derive(Default)]
pub(crate) struct Uploads {
    by_place: BTreeMap<u64, Arc<Cell>>,
    words: u64,
}

impl Uploads {
    /// An upload begins.
    pub fn begin(&mut self, cell: Arc<Cell>) {
        self.words += cell.words;
        let before = self.by_place.insert(cell.place().at, cell);
        debug_assert!(before.is_none(), "two uploads have the same place");
    }

    /// The upload whose place has this name.
    pub fn at(&self, at: u64) -> Option<&Arc<Cell>> {
        self.by_place.get(&at)
    }

    /// The uploads whose places have these names, in their order.
    pub fn within(&self, names: Range<u64>) -> Vec<Arc<Cell>> {
        self.by_place
            .range(names)
            .map(|(_, cell)| cell.clone())
            .collect()
    }

    /// The place of this name is no upload's any more.
    pub fn end(&mut self, at: u64) -> Option<Arc<Cell>> {
        let cell = self.by_place.remove(&at)?;
        self.words -= cell.words;
        Some(cell)
    }

    /// The place of this name has another one from now on.
    pub fn rename(&mut self, from: u64, to: u64) {
        if let Some(cell) = self.by_place.remove(&from) {
            cell.at.store(to, Relaxed);
            self.by_place.insert(to, cell);
        }
    }

    /// Words of all places.
    pub fn words(&self) -> u64 {
        self.words
    }

    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    pub fn cells(&self) -> impl Iterator<Item = &Arc<Cell>> {
        self.by_place.values()
    }
}

/// A table's uploads as every thread may count them.
#[derive(Default)]
pub(crate) struct Underway {
    count: AtomicU64,
    bytes: AtomicU64,
    /// Uploads that were dropped since the writer last took places back.
    given_up: AtomicU64,
}

/// Values that are being received into a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadFigures {
    /// How many there are.
    pub count: u64,
    /// Bytes of them, whether they have arrived or not.
    pub bytes: u64,
}

impl core::ops::AddAssign for UploadFigures {
    fn add_assign(&mut self, other: UploadFigures) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

impl Underway {
    fn begin(&self, bytes: usize) {
        self.count.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn end(&self, bytes: usize) {
        self.count.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes as u64, Relaxed);
    }

    /// Whether uploads were dropped since this was last asked. Their cells say which.
    pub fn were_given_up(&self) -> bool {
        self.given_up.load(Relaxed) != 0 && self.given_up.swap(0, AcqRel) != 0
    }

    /// The figures now.
    pub fn figures(&self) -> UploadFigures {
        UploadFigures {
            count: self.count.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }
}
