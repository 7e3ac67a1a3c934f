//! What a [memory file](super::MemoryFile) keeps of a partition, beside the partition's memory.
//!
//! The first words are kept up to date while the partition changes, so that they are there when the
//! process is ended by force:
//!
//! | word | is stored |
//! | --- | --- |
//! | the logs' heads | before any memory is overwritten that lies before them |
//! | the index's shape | when it has become the index's |
//! | the bound of CAS uniques | before one up to it is drawn |
//! | the number of flushes | when the flushed items are gone |
//! | the journal | before a chain is written anew or an item moved, and emptied after that |
//!
//! These are relaxed stores of one thread at a time, in [program
//! order](glimmer_base::sync::in_program_order). A process ends between two instructions: all
//! stores of the instructions before are in the file's pages, and none of those after.
//!
//! The *image* is written once, when the partition is closed, with a sum by which it is known.

use super::ZeroedSlice;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, in_program_order};

/// Words of a record.
pub(super) const RECORD_WORDS: usize = 1024;

const HEADS_AT: usize = 0;
const SHAPE_AT: usize = 2;
const CAS_BOUND_AT: usize = 3;
const FLUSHES_AT: usize = 4;
const JOURNAL_LEN_AT: usize = 8;
const JOURNAL_AT: usize = 9;
/// To each entry belongs a word that says whether it is moved.
const JOURNAL_MAX: usize = 2 * Record::ENTRIES_MAX;
const IMAGE_AT: usize = 512;
/// Length and sum come before the words.
const IMAGE_WORDS_MAX: usize = RECORD_WORDS - IMAGE_AT - 2;

const _: () = assert!(JOURNAL_AT + JOURNAL_MAX <= IMAGE_AT);

/// See the module's text. A clone is the same memory.
#[derive(Clone)]
pub struct Record {
    header: ZeroedSlice<AtomicU64>,
    first: usize,
}

impl Record {
    /// Entries that the journal holds.
    pub const ENTRIES_MAX: usize = 240;

    pub(super) fn new(header: ZeroedSlice<AtomicU64>, first: usize) -> Record {
        Record { header, first }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.header[self.first + at]
    }

    /// The head of a log.
    #[inline(always)]
    pub fn head(&self, log: usize) -> &AtomicU64 {
        self.word(HEADS_AT + log)
    }

    /// The shape of the index.
    pub fn shape(&self) -> &AtomicU64 {
        self.word(SHAPE_AT)
    }

    /// No CAS unique above this was drawn.
    pub fn cas_bound(&self) -> &AtomicU64 {
        self.word(CAS_BOUND_AT)
    }

    /// Flushes that were carried out.
    pub fn flushes(&self) -> &AtomicU64 {
        self.word(FLUSHES_AT)
    }

    /// Puts entries into the journal that are about to be written elsewhere. Of one that is moved,
    /// the item is.
    pub fn note(&self, entries: impl Iterator<Item = u64>, is_moved: bool) {
        let mut len = 0;
        for entry in entries {
            assert!(len + 2 <= JOURNAL_MAX);
            self.word(JOURNAL_AT + len).store(entry, Relaxed);
            self.word(JOURNAL_AT + len + 1)
                .store(is_moved.into(), Relaxed);
            len += 2;
        }
        in_program_order();
        self.word(JOURNAL_LEN_AT).store(len as u64, Relaxed);
        in_program_order();
    }

    /// The entries are where they belong.
    pub fn forget(&self) {
        in_program_order();
        self.word(JOURNAL_LEN_AT).store(0, Relaxed);
        in_program_order();
    }

    /// What is in the journal: entries, and whether each is moved.
    pub fn journal(&self) -> Vec<u64> {
        let len = self.word(JOURNAL_LEN_AT).load(Relaxed) as usize;
        let entry = |nth| self.word(JOURNAL_AT + nth).load(Relaxed);
        (0..len.min(JOURNAL_MAX)).map(entry).collect()
    }

    /// Writes the image.
    pub fn save(&self, image: &[u64]) {
        assert!(image.len() <= IMAGE_WORDS_MAX);
        let set = |at: usize, value: u64| self.word(IMAGE_AT + at).store(value, Relaxed);
        for (nth, &word) in image.iter().enumerate() {
            set(2 + nth, word);
        }
        set(0, image.len() as u64);
        set(1, sum(image.iter().copied()));
    }

    /// The image, unless it is damaged.
    pub fn image(&self) -> Option<Vec<u64>> {
        let get = |at: usize| self.word(IMAGE_AT + at).load(Relaxed);
        let len = (get(0) as usize).min(IMAGE_WORDS_MAX);
        let image: Vec<u64> = (0..len).map(|nth| get(2 + nth)).collect();
        (sum(image.iter().copied()) == get(1)).then_some(image)
    }
}

/// A sum of words by FNV-1a, for what a file may have become by mistake.
pub(super) fn sum(words: impl Iterator<Item = u64>) -> u64 {
    let bytes = words.flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
