//! A partition whose memory lies in a [file](crate::memory::MemoryFile) goes on where the last
//! process ended.
//!
//! The shape of the index, the generation, the bound of CAS uniques and the number of flushes are
//! in the partition's [`Record`] at all times. What only the writer knows is written down when the
//! partition is closed: a few words as an [`Image`], and which words of the heap are free as
//! [notes](SegregatedFits::write_down), which take a 64th of the heap. A process that attaches a
//! closed file reads both and looks at no item. Otherwise, [`recover`](super::recover) works them
//! out.

use super::name::Generation;
use super::{Owner, Shared, Writer};
use crate::access::Access;
use crate::heap::segregated_fits::{Outline, SegregatedFits};
use crate::index::chained::{Border, FreeList};
use crate::memory::{FileState, InFile, Record};
use crate::table::{ConfigError, Table};
use glimmer_base::Expiry;
use glimmer_base::sync::Ordering::Relaxed;

/// What a writer knows of its partition, but for what is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Image {
    pub spares: [u64; 2],
    pub usual_words_64: u64,
    pub items: u64,
    pub bytes: u64,
    pub spares_used: u64,
    /// Where the scan for stale entries stands, and chains that it has yet to come to.
    pub scan: [u64; 2],
    /// Whether items lie under second keyhashes.
    pub has_overflowed: bool,
}

const IMAGE_WORDS: usize = 13;

fn words_of(image: &Image, outline: &Outline) -> [u64; IMAGE_WORDS] {
    [
        image.spares[0],
        image.spares[1],
        image.usual_words_64,
        image.items,
        image.bytes,
        image.spares_used,
        image.scan[0],
        image.scan[1],
        image.has_overflowed.into(),
        outline.top,
        outline.free_words,
        outline.cursor,
        outline.sum,
    ]
}

fn of_words(words: &[u64]) -> Option<(Image, Outline)> {
    let words: &[u64; IMAGE_WORDS] = words.as_array()?;
    let image = Image {
        spares: [words[0], words[1]],
        usual_words_64: words[2],
        items: words[3],
        bytes: words[4],
        spares_used: words[5],
        scan: [words[6], words[7]],
        has_overflowed: words[8] != 0,
    };
    let outline = Outline {
        top: words[9],
        free_words: words[10],
        cursor: words[11],
        sum: words[12],
    };
    Some((image, outline))
}

impl Shared {
    /// Keeps in a record what is to be known at all times, and begins with what is there.
    pub(super) fn keep_in(&mut self, record: &Record, state: FileState) -> Result<(), ConfigError> {
        if state == FileState::New {
            record.generation().store(0, Relaxed);
        }
        let generation = record.generation().load(Relaxed);
        if generation >= Generation::COUNT {
            return Err(ConfigError::Damaged("there is no such generation"));
        }
        self.heap.generation.store(generation, Relaxed);
        if !self.index.keep_in(record) {
            return Err(ConfigError::Damaged("no index has such a shape"));
        }
        self.common.flushes.keep_in(record);
        Ok(())
    }
}

impl<A: Access> Owner<A> {
    /// Goes on with what the partition's file has of it, if it lies in one.
    pub(super) fn attach(&mut self, file: InFile) -> Result<(), ConfigError> {
        let Some((file, number)) = file else {
            return Ok(());
        };
        let record = file.record(number);
        let flushes = self.shared.common.flushes.get();
        let mut writer = self.enter(flushes);
        writer.state.ledger.cas.keep_in(&record);
        let image = match file.state() {
            FileState::New => return Ok(()),
            FileState::Closed => writer.image_in(&record),
            FileState::Open => None,
        };
        let image = image.unwrap_or_else(|| writer.recover(&record));
        writer.go_on_with(&image);
        Ok(())
    }
}

impl<A: Access> Writer<'_, A> {
    /// Writes down what only the writer knows, if the partition lies in a file. The partition is
    /// not changed any more.
    pub(super) fn save(&mut self) {
        let shared = self.shared;
        self.take_back_uploads();
        let (Some(record), Some(notes)) = (shared.index.record(), &self.state.notes) else {
            return;
        };
        if self.state.ledger.uploads.cells().next().is_some() {
            // A value is still being received. The next process would not know of its place.
            return record.discard_image();
        }
        let counters = shared.common.counters.counts();
        let image = Image {
            spares: self.state.spares.words(),
            usual_words_64: self.state.ledger.usual_words_64,
            items: counters.items,
            bytes: counters.bytes,
            spares_used: counters.spares_used,
            scan: self.state.scan.words(),
            has_overflowed: shared.common.has_overflowed(),
        };
        let outline = self.state.fits.write_down(notes);
        record.save(&words_of(&image, &outline));
    }

    /// Takes what was written down of the heap, and returns the image, if both can be those of this
    /// partition.
    fn image_in(&mut self, record: &Record) -> Option<Image> {
        let index = &self.shared.index;
        let (image, outline) = of_words(&record.image()?)?;
        FreeList::of_words(image.spares, index)?;
        let notes = self.state.notes.as_ref()?;
        self.state.fits = SegregatedFits::of_notes(notes, &outline, index.border())?;
        Some(image)
    }

    /// Goes on with what an image says.
    fn go_on_with(&mut self, image: &Image) {
        let shared = self.shared;
        self.state.border = Border::of(&shared.index);
        self.state.spares = FreeList::of_words(image.spares, &shared.index).unwrap_or_default();
        self.state.scan.resume(image.scan);
        // Items may have expired in the meantime.
        self.state.scan.soonest.note(Expiry::AT_ONCE);
        self.state.ledger.usual_words_64 = image.usual_words_64;
        shared.common.expect_size(image.usual_words_64 / 64);
        if image.has_overflowed {
            shared.common.note_overflow();
        }
        let counters = &shared.common.counters;
        counters.items.set(image.items);
        counters.bytes.set(image.bytes);
        counters.spares_used.set(image.spares_used);
        counters.restored.set(image.items);
    }
}
