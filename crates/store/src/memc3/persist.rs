//! A table whose memory lies in a [file](crate::memory::MemoryFile) goes on where the last process
//! ended.
//!
//! Beside the table's pages, the file has *notes*:
//!
//! ```text
//! +----------------------+-------------------------+-------------------------+
//! | a word for each page | a word for each segment | what slabs are made of  |
//! +----------------------+-------------------------+-------------------------+
//! ```
//!
//! The first say which [slab](crate::heap::slab) a page belongs to, and the second which prefixes a
//! segment of the index had when it was made. Both are kept up to date, as are, in the table's
//! [`Record`], the number of segments, the bound of CAS uniques and the number of flushes. The rest
//! is written when the table is closed. A process that attaches a closed file reads the notes and
//! looks at no item; otherwise, [`recover`](super::recover) works them out.
//!
//! Segments are made one after the other, each by a split, and on pages from the pool's end
//! downwards. So the directory follows from the prefixes that they had at first: those of a later
//! segment were an earlier one's.

use super::{Memc3Config, Owner, Shared, State, Writer};
use crate::access::Access;
use crate::heap::slab::Outline;
use crate::memory::{FileState, InFile, Record, ZeroedSlice, sum_of_many};
use crate::table::{ConfigError, Table};
use glimmer_base::Expiry;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{Arc, AtomicU64, in_program_order};
use std::ops::Range;

/// What is kept of a table in its file.
pub(super) struct Kept {
    record: Record,
    notes: ZeroedSlice<AtomicU64>,
    pages: usize,
    segments_max: usize,
}

impl Kept {
    /// The prefixes that a segment had at first. The segment that the index begins with needs none.
    fn prefixes(&self, segment: usize) -> &AtomicU64 {
        &self.notes[self.pages + segment]
    }

    /// The sum of what is kept up to date.
    fn sum(&self) -> u64 {
        let notes = &self.notes[..self.pages + self.segments_max];
        sum_of_many(notes.iter().map(|note| note.load(Relaxed)))
    }

    /// What slabs are made of.
    fn of_slabs(&self) -> &[AtomicU64] {
        &self.notes[self.pages + self.segments_max..]
    }
}

/// What a writer knows of its table, but for the slabs and the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Image {
    pub usual_words_64: u64,
    pub items: u64,
    pub bytes: u64,
    /// The sum of the notes that are kept up to date.
    pub notes_sum: u64,
}

const IMAGE_WORDS: usize = 7;

fn words_of(image: &Image, outline: &Outline) -> [u64; IMAGE_WORDS] {
    [
        image.usual_words_64,
        image.items,
        image.bytes,
        image.notes_sum,
        outline.end,
        outline.stored,
        outline.sum,
    ]
}

fn of_words(words: &[u64]) -> Option<(Image, Outline)> {
    let words: &[u64; IMAGE_WORDS] = words.as_array()?;
    let image = Image {
        usual_words_64: words[0],
        items: words[1],
        bytes: words[2],
        notes_sum: words[3],
    };
    let outline = Outline {
        end: words[4],
        stored: words[5],
        sum: words[6],
    };
    Some((image, outline))
}

impl<A: Access> Owner<A> {
    /// Goes on with what the table's file has of it, if it lies in one.
    pub(super) fn attach(&mut self, file: InFile) -> Result<(), ConfigError> {
        let Some((file, number)) = file else {
            return Ok(());
        };
        let record = file.record(number);
        let shared = Arc::get_mut(&mut self.shared).expect("the table is not shared yet");
        shared.common.flushes.keep_in(&record);
        let flushes = shared.common.flushes.get();
        let mut writer = self.enter(flushes);
        writer.state.ledger.cas.keep_in(&record);
        let state = file.state();
        if state == FileState::New {
            writer.note_segments();
            return Ok(());
        }
        let image = match state {
            FileState::Closed => record.image().and_then(|words| of_words(&words)),
            _ => None,
        };
        if let Some((image, _)) = &image {
            writer.compare_notes(image)?;
        }
        writer.read_directory()?;
        let image = image.filter(|(_, outline)| writer.take_slabs(outline));
        let image = image.map(|(image, _)| image);
        let image = image.unwrap_or_else(|| writer.recover(&record));
        writer.go_on_with(&image);
        Ok(())
    }
}

impl State {
    /// Keeps in the table's file from now on what is to be known at all times.
    pub(super) fn keep_in(
        &mut self,
        config: &Memc3Config,
        shared: &Shared,
    ) -> Result<(), ConfigError> {
        let Some((file, number)) = &config.file else {
            return Ok(());
        };
        let (pages, segments_max) = (shared.pool().pages(), self.segments_max);
        let words = pages + segments_max + self.slabs.note_words();
        let notes = file.memory(words, config.pages).and_then(|notes| {
            notes.settle(config.pages, config.numa_node)?;
            Ok(notes)
        });
        let notes = notes.map_err(ConfigError::Memory)?;
        self.slabs.keep_owners_in(notes.clone());
        self.kept = Some(Kept {
            record: file.record(*number),
            notes,
            pages,
            segments_max,
        });
        Ok(())
    }
}

impl<A: Access> Writer<'_, A> {
    /// The index has another number of segments.
    pub(super) fn note_segments(&self) {
        if let Some(kept) = &self.state.kept {
            in_program_order();
            let segments = self.state.segments as u64;
            kept.record.segments().store(segments, Relaxed);
            in_program_order();
        }
    }

    /// One more segment is filled, and is about to have these prefixes.
    pub(super) fn note_segment(&self, prefixes: &Range<usize>) {
        if let Some(kept) = &self.state.kept {
            let segment = self.state.segments;
            kept.prefixes(segment).store(word_of(prefixes), Relaxed);
            in_program_order();
            let segments = segment as u64 + 1;
            kept.record.segments().store(segments, Relaxed);
            in_program_order();
        }
    }

    /// Builds the directory that the last process had.
    fn read_directory(&mut self) -> Result<(), ConfigError> {
        let Some(kept) = &self.state.kept else {
            return Ok(());
        };
        let segments = kept.record.segments().load(Relaxed) as usize;
        if !(1..=kept.segments_max).contains(&segments) {
            return Err(ConfigError::Damaged(
                "its number of segments is out of range",
            ));
        }
        let shared = self.shared;
        let directory = &shared.index.directory;
        for segment in 1..segments {
            let prefixes = range_of(kept.prefixes(segment).load(Relaxed), directory.prefixes());
            let prefixes = prefixes.ok_or(ConfigError::Damaged("there are no such prefixes"))?;
            directory.assign(prefixes, shared.page_of(segment));
        }
        shared.index.pages.set(segments as u64);
        self.state.segments = segments;
        Ok(())
    }

    /// Writes down what only the writer knows, if the table lies in a file. The table is not
    /// changed any more.
    pub(super) fn save(&mut self) {
        self.take_back_uploads();
        let Some(kept) = &self.state.kept else {
            return;
        };
        if !self.state.ledger.uploads.is_empty() {
            // A value is still being received. The next process would not know of its place.
            return kept.record.discard_image();
        }
        let counters = self.shared.common.counters.counts();
        let image = Image {
            usual_words_64: self.state.ledger.usual_words_64,
            items: counters.items,
            bytes: counters.bytes,
            notes_sum: kept.sum(),
        };
        let outline = self.state.slabs.write_down(kept.of_slabs());
        kept.record.save(&words_of(&image, &outline));
    }

    /// The notes that are kept up to date are as they were when the table was closed. Otherwise, a
    /// segment or a slab is not where it was.
    fn compare_notes(&self, image: &Image) -> Result<(), ConfigError> {
        match &self.state.kept {
            Some(kept) if kept.sum() != image.notes_sum => Err(ConfigError::Damaged(
                "its notes are not as they were written",
            )),
            _ => Ok(()),
        }
    }

    /// Takes what was written down of the slabs. Says whether that can be this table's.
    fn take_slabs(&mut self, outline: &Outline) -> bool {
        let state = &mut *self.state;
        let index_begins = self.shared.pool().pages() - state.segments;
        let Some(kept) = &state.kept else {
            return false;
        };
        if outline.end > index_begins as u64 || !state.slabs.read_back(kept.of_slabs(), outline) {
            return false;
        }
        // No reader is left in what the index had before a flush.
        if state.slabs.item_pages() < index_begins {
            state.slabs.take_back(index_begins);
        }
        true
    }

    /// Goes on with what an image says.
    fn go_on_with(&mut self, image: &Image) {
        let shared = self.shared;
        // Items may have expired in the meantime.
        self.state.expired.soonest.note(Expiry::AT_ONCE);
        self.state.ledger.usual_words_64 = image.usual_words_64;
        shared.common.expect_size(image.usual_words_64 / 64);
        let counters = &shared.common.counters;
        counters.items.set(image.items);
        counters.bytes.set(image.bytes);
        counters.restored.set(image.items);
    }
}

impl Shared {
    /// The page of a segment of the index, by its number.
    pub(super) fn page_of(&self, segment: usize) -> usize {
        self.root() - segment
    }
}

/// Prefixes as a word: the first, and how many.
fn word_of(prefixes: &Range<usize>) -> u64 {
    (prefixes.len() as u64) << 32 | prefixes.start as u64
}

/// The prefixes of a word, if a segment can have them.
fn range_of(word: u64, prefixes: usize) -> Option<Range<usize>> {
    let (first, count) = (word as u32 as usize, (word >> 32) as usize);
    let is_possible = count.is_power_of_two() && first.is_multiple_of(count);
    (is_possible && first + count <= prefixes).then(|| first..first + count)
}
