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
//! | the generation of index entries (store mode) | before the memory of flushed items is reused |
//! | the number of segments (MemC3) | when the last one is filled |
//! | the journal | before a chain is rewritten or an item moved, and emptied after that |
//! | the number of items that are lost | before the index forgets such an item |
//! | the slide (store mode) | before an item is copied over itself, and at each step of that |
//!
//! These are relaxed stores of one thread at a time, in [program
//! order](glimmer_base::sync::in_program_order). A process ends between two instructions: all
//! stores of the instructions before are in the file's pages, and none of those after.
//!
//! The *image* is written once, when the partition is closed, with a sum of the whole record. A
//! file that was closed is refused if the record of a partition is not as it was then: a wrong
//! head, for one, could bring back what was evicted. After a process that was ended by force there
//! is no sum. Each word is then held against what it can be.

use super::ZeroedSlice;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, in_program_order};

/// Words of a record.
pub(super) const RECORD_WORDS: usize = 1024;

const HEADS_AT: usize = 0;
const SHAPE_AT: usize = 2;
const CAS_BOUND_AT: usize = 3;
const FLUSHES_AT: usize = 4;
const GENERATION_AT: usize = 5;
const SEGMENTS_AT: usize = 6;
const LOST_AT: usize = 7;
const JOURNAL_LEN_AT: usize = 8;
const JOURNAL_AT: usize = 9;
/// To each entry belongs a word that says whether it is moved.
const JOURNAL_MAX: usize = 2 * Record::ENTRIES_MAX;
/// Whether there is a slide comes before its words.
const SLIDE_AT: usize = JOURNAL_AT + JOURNAL_MAX;
const SLIDE_WORDS: usize = 5;
/// The sum of all other words of the record; zero if there is no image.
const SUM_AT: usize = 512;
const IMAGE_LEN_AT: usize = SUM_AT + 1;
const IMAGE_AT: usize = IMAGE_LEN_AT + 1;
const IMAGE_WORDS_MAX: usize = RECORD_WORDS - IMAGE_AT;

const _: () = assert!(SLIDE_AT + SLIDE_WORDS <= SUM_AT);

/// An item that is copied to a place which reaches into its own. It is copied in steps, each as
/// long as the way that it moves, so that no step writes to what it reads or what is yet to be
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slide {
    /// The entry that names its old place.
    pub entry: u64,
    /// Its new place.
    pub to: u64,
    /// Its words.
    pub words: u64,
    /// Steps that are done.
    pub steps: u64,
}

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

    /// The generation of index entries.
    pub fn generation(&self) -> &AtomicU64 {
        self.word(GENERATION_AT)
    }

    /// Segments of the index.
    pub fn segments(&self) -> &AtomicU64 {
        self.word(SEGMENTS_AT)
    }

    /// One more item is lost, which the index still names, or the journal. A process that ends
    /// before it has gone from there counts it again in the next one.
    pub fn count_lost(&self) {
        let lost = self.lost().saturating_add(1);
        self.word(LOST_AT).store(lost, Relaxed);
        in_program_order();
    }

    /// Items that were counted as lost since a process has last gone on with the partition.
    pub fn lost(&self) -> u64 {
        self.word(LOST_AT).load(Relaxed)
    }

    /// A process goes on with the partition, and knows how many items were lost.
    pub(super) fn forget_lost(&self) {
        self.word(LOST_AT).store(0, Relaxed);
    }

    /// A slide begins.
    pub fn begin_slide(&self, slide: Slide) {
        let Slide {
            entry,
            to,
            words,
            steps,
        } = slide;
        for (nth, word) in [entry, to, words, steps].into_iter().enumerate() {
            self.word(SLIDE_AT + 1 + nth).store(word, Relaxed);
        }
        in_program_order();
        self.word(SLIDE_AT).store(1, Relaxed);
        in_program_order();
    }

    /// As many steps of the slide are done.
    pub fn note_steps(&self, steps: u64) {
        in_program_order();
        self.word(SLIDE_AT + SLIDE_WORDS - 1).store(steps, Relaxed);
        in_program_order();
    }

    /// The slide is over.
    pub fn end_slide(&self) {
        in_program_order();
        self.word(SLIDE_AT).store(0, Relaxed);
        in_program_order();
    }

    /// The slide that is underway.
    pub fn slide(&self) -> Option<Slide> {
        let get = |nth: usize| self.word(SLIDE_AT + nth).load(Relaxed);
        (get(0) == 1).then(|| Slide {
            entry: get(1),
            to: get(2),
            words: get(3),
            steps: get(4),
        })
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

    /// Writes the image. Nothing of the record changes after that.
    pub fn save(&self, image: &[u64]) {
        assert!(image.len() <= IMAGE_WORDS_MAX);
        for (nth, &word) in image.iter().enumerate() {
            self.word(IMAGE_AT + nth).store(word, Relaxed);
        }
        self.word(IMAGE_LEN_AT).store(image.len() as u64, Relaxed);
        self.word(SUM_AT).store(self.sum(), Relaxed);
    }

    /// There is no image, so that the next process recovers the partition.
    pub fn discard_image(&self) {
        self.word(SUM_AT).store(0, Relaxed);
        self.word(IMAGE_LEN_AT).store(0, Relaxed);
        in_program_order();
    }

    /// The image, if there is one. The file has looked whether the record is whole.
    pub fn image(&self) -> Option<Vec<u64>> {
        let len = self.word(IMAGE_LEN_AT).load(Relaxed) as usize;
        let word = |nth| self.word(IMAGE_AT + nth).load(Relaxed);
        (1..=IMAGE_WORDS_MAX)
            .contains(&len)
            .then(|| (0..len).map(word).collect())
    }

    /// Whether the record of a closed partition is not as it was closed. Without an image, the
    /// partition is recovered, and nothing is known of the record.
    pub(super) fn is_damaged(&self) -> bool {
        let [sum, len] = [SUM_AT, IMAGE_LEN_AT].map(|at| self.word(at).load(Relaxed));
        (sum, len) != (0, 0) && sum != self.sum()
    }

    /// The sum of all words but the sum's own. It is never zero.
    fn sum(&self) -> u64 {
        let others = (0..RECORD_WORDS).filter(|&at| at != SUM_AT);
        sum(others.map(|at| self.word(at).load(Relaxed))).max(1)
    }
}

/// A sum of many words, word by word, for the same.
pub(crate) fn sum_of_many(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325, |sum: u64, word| {
        (sum ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    })
}

/// A sum of words by FNV-1a, for what a file may have become by mistake.
pub(super) fn sum(words: impl Iterator<Item = u64>) -> u64 {
    let bytes = words.flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
