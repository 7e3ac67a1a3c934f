//! A partition whose memory lies in a [file](crate::memory::MemoryFile) goes on where the last
//! process ended.
//!
//! Items name one another by offsets, never by pointers, so the memory needs no translation. What
//! has to be known beside it is little. The heads, the shape of the index, the bound of CAS uniques
//! and the number of flushes are in the partition's [`Record`] at all times. What only the writer
//! knows is written there when the partition is closed, as an [`Image`]. A process
//! that attaches a closed file reads the image and looks at no item. Where there is no image, as
//! the last process was ended by force, [`recover`](super::recover) makes one.
//!
//! What serves speed alone begins anew: places that large items have left, times at which items
//! were stored, goals of laps, and what the eviction rule has learned. How often items were read is
//! in the index, and stays.

use super::lookahead::Lookahead;
use super::share::Extent;
use super::{Logs, Owner, Shared, Writer};
use crate::access::Access;
use crate::heap::Offset;
use crate::index::LogId;
use crate::index::chained::{Border, FreeList};
use crate::memory::{FileState, InFile, Record};
use crate::table::{ConfigError, Table};
use glimmer_base::Expiry;

/// What a writer knows of its partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Image {
    pub tails: [u64; 2],
    /// Where the heads' laps ended; zero for laps that have not.
    pub lap_ends: [u64; 2],
    pub share: Extent,
    pub spares: [u64; 2],
    pub laps_unpaid: u64,
    pub usual_words_64: u64,
    pub items: u64,
    pub bytes: u64,
    pub spares_used: u64,
}

const IMAGE_WORDS: usize = 15;

impl Image {
    fn words(&self) -> [u64; IMAGE_WORDS] {
        let Image { share, .. } = *self;
        [
            self.tails[0],
            self.tails[1],
            self.lap_ends[0],
            self.lap_ends[1],
            share.log_end,
            share.floor,
            share.small_end,
            share.grows.into(),
            self.spares[0],
            self.spares[1],
            self.laps_unpaid,
            self.usual_words_64,
            self.items,
            self.bytes,
            self.spares_used,
        ]
    }

    fn of(words: &[u64]) -> Option<Image> {
        let words: &[u64; IMAGE_WORDS] = words.as_array()?;
        Some(Image {
            tails: [words[0], words[1]],
            lap_ends: [words[2], words[3]],
            share: Extent {
                log_end: words[4],
                floor: words[5],
                small_end: words[6],
                grows: words[7] != 0,
            },
            spares: [words[8], words[9]],
            laps_unpaid: words[10],
            usual_words_64: words[11],
            items: words[12],
            bytes: words[13],
            spares_used: words[14],
        })
    }
}

impl Shared {
    /// Keeps in a record what is to be known at all times, and begins with what is there.
    pub(super) fn keep_in(&mut self, record: &Record, state: FileState) -> Result<(), ConfigError> {
        let Logs { logs, .. } = &mut self.heap;
        for (number, log) in logs.iter_mut().enumerate() {
            if state != FileState::New && !log.take_head_from(record, number) {
                return Err(ConfigError::Damaged("the head of a log is nowhere in it"));
            }
            log.keep_head_in(record, number);
        }
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
        writer.ledger().cas.keep_in(&record);
        let image = match file.state() {
            FileState::New => return Ok(()),
            FileState::Closed => record.image().and_then(|words| Image::of(&words)),
            FileState::Open => None,
        };
        let image = image.filter(|image| writer.is_possible(image));
        let image = image.unwrap_or_else(|| writer.recover(&record));
        match writer.restore(&image) {
            true => Ok(()),
            false => Err(ConfigError::Damaged(
                "partitions have more memory than there is",
            )),
        }
    }
}

impl<A: Access> Writer<'_, A> {
    /// Writes down what only the writer knows, if the partition lies in a file. The partition is
    /// not changed any more.
    pub(super) fn save(&mut self) {
        let shared = self.shared;
        let Some(record) = shared.index.record().cloned() else {
            return;
        };
        self.take_back_uploads();
        let counters = shared.common.counters.counts();
        let lap_end = |id| self.geometry(id).lap_end().unwrap_or(0);
        let image = Image {
            tails: [LogId::Main, LogId::Small].map(|id| self.tail(id).raw()),
            lap_ends: [LogId::Main, LogId::Small].map(lap_end),
            share: self.share_extent(),
            spares: self.state.spares.words(),
            laps_unpaid: self.state.laps_unpaid,
            usual_words_64: self.state.ledger.usual_words_64,
            items: counters.items,
            bytes: counters.bytes,
            spares_used: counters.spares_used,
        };
        record.save(&image.words());
    }

    /// Whether the image can be one of this partition, so that nothing is reached beyond its
    /// memory.
    fn is_possible(&self, image: &Image) -> bool {
        let index = &self.shared.index;
        let border = index.border() as u64;
        let is_within = |id: LogId, end: u64| {
            let (log, nth) = (self.log(id), id as usize);
            let geometry = log.geometry();
            let tail = Offset::from_raw(image.tails[nth]);
            let position = geometry.position(tail) as u64;
            let head = geometry.position(log.head()) as u64;
            let is_open = geometry.is_same_lap(tail, log.head());
            // In one lap the head follows the tail; otherwise the tail has begun another one.
            let is_in_order = match is_open {
                true => head <= position,
                false => position <= head,
            };
            position <= end
                && image.lap_ends[nth] <= end
                && is_open == (image.lap_ends[nth] == 0)
                && is_in_order
        };
        let Extent {
            log_end,
            floor,
            small_end,
            ..
        } = image.share;
        let small_max = self.small_end_max();
        log_end <= floor
            && floor <= border
            && small_end <= small_max
            && is_within(LogId::Main, border)
            && is_within(LogId::Small, small_max)
            && FreeList::of_words(image.spares, index).is_some()
    }

    /// Goes on with what an image says. Says whether there is as much memory.
    fn restore(&mut self, image: &Image) -> bool {
        let shared = self.shared;
        for id in [LogId::Main, LogId::Small] {
            let (nth, geometry) = (id as usize, shared.log(id).geometry());
            self.state.tails[nth] = Offset::from_raw(image.tails[nth]);
            self.state.geometry[nth] = match image.lap_ends[nth] {
                0 => geometry.open(),
                end => geometry.ended_at(end),
            };
            self.state.lookahead[nth] = Lookahead::at(shared.log(id).head());
        }
        self.state.border = Border::of(&shared.index);
        if let Some(spares) = FreeList::of_words(image.spares, &shared.index) {
            self.state.spares = spares;
        }
        self.state.laps_unpaid = image.laps_unpaid;
        self.state.ledger.usual_words_64 = image.usual_words_64;
        shared.common.expect_size(image.usual_words_64 / 64);
        let counters = &shared.common.counters;
        counters.items.set(image.items);
        counters.bytes.set(image.bytes);
        counters.spares_used.set(image.spares_used);
        counters.restored.set(image.items);
        // Items may have expired in the meantime.
        self.state.search.soonest.note(Expiry::AT_ONCE);
        self.resume_share(image.share)
    }
}
