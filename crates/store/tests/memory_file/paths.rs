//! What the requests did after whose stores the process ended: rare things have to be among them.

use super::load::{Load, Request, Verb};
use super::place::Kept;
use super::watch::Step;
use glimmer_store::access::Access;
use glimmer_store::table::Counts;
use glimmer_store::{memc3, mica_cache, mica_store};
use std::collections::BTreeMap;

/// Words of the first record, in the file.
const RECORD: usize = 512;
const JOURNAL_LEN: usize = RECORD + 8;
const SEGMENTS: usize = RECORD + 6;
/// Whether the first entry of the journal is moved.
const IS_MOVED: usize = RECORD + 10;
const SLIDE: usize = RECORD + 9 + 480;
const SLIDE_STEPS: usize = SLIDE + 4;

/// Something that a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// A value is written over the old one.
    Overwrite,
    /// An item is removed that has expired.
    Expiry,
    Eviction,
    /// An item of a log goes to its tail or to another log, an item of a heap to the left, or a
    /// slab to other pages.
    Move,
    /// An item moves to a place that reaches into its own, in several steps.
    Slide,
    /// An item is written over itself and what is free beside it.
    OverItself,
    /// A bucket or a segment is split.
    Growth,
    /// A bucket is merged.
    Shrinking,
    /// A chain of buckets is rewritten, with the journal.
    Rewrite,
    /// A chain gets a bucket.
    SpareBucket,
    /// There is no room.
    Refusal,
    Flush,
    /// A flush while values are received.
    FlushBesideUpload,
    /// Anything while values are received.
    BesideUpload,
    /// A value that was received becomes an item.
    Finish,
}

/// A table whose process is ended.
pub trait Ends: Kept {
    /// What its requests do.
    const PATHS: &[Path];
    /// What they do in every run of a few hundred.
    const USUAL_PATHS: &[Path];
}

impl<A: Access> Ends for mica_cache::Owner<A> {
    const PATHS: &[Path] = &[
        Path::Overwrite,
        Path::Expiry,
        Path::Eviction,
        Path::Move,
        Path::Growth,
        Path::Shrinking,
        Path::SpareBucket,
        Path::Flush,
        Path::FlushBesideUpload,
        Path::Finish,
    ];
    const USUAL_PATHS: &[Path] = &[
        Path::Overwrite,
        Path::Expiry,
        Path::Eviction,
        Path::Move,
        Path::Rewrite,
        Path::Flush,
        Path::FlushBesideUpload,
        Path::Finish,
    ];
}

impl<A: Access> Ends for mica_store::Owner<A> {
    const PATHS: &[Path] = &[
        Path::Overwrite,
        Path::Expiry,
        Path::Move,
        Path::Slide,
        Path::OverItself,
        Path::Growth,
        Path::Shrinking,
        Path::SpareBucket,
        Path::Refusal,
        Path::Flush,
        Path::FlushBesideUpload,
        Path::Finish,
    ];
    const USUAL_PATHS: &[Path] = &[
        Path::Overwrite,
        Path::Expiry,
        Path::Move,
        Path::Slide,
        Path::Growth,
        Path::Shrinking,
        Path::Rewrite,
        Path::Refusal,
        Path::Flush,
        Path::FlushBesideUpload,
        Path::Finish,
    ];
}

impl<A: Access> Ends for memc3::Owner<A> {
    const PATHS: &[Path] = &[
        Path::Overwrite,
        Path::Expiry,
        Path::Eviction,
        Path::Move,
        Path::Growth,
        Path::Flush,
        Path::FlushBesideUpload,
        Path::Finish,
    ];
    const USUAL_PATHS: &[Path] = &[
        Path::Overwrite,
        Path::Eviction,
        Path::Flush,
        Path::FlushBesideUpload,
        Path::Finish,
    ];
}

/// How many requests did what.
#[derive(Debug, Default)]
pub struct Met(BTreeMap<Path, u64>);

impl Met {
    /// How often it was met.
    pub fn times(&self, path: Path) -> u64 {
        self.0.get(&path).copied().unwrap_or(0)
    }

    pub fn note(&mut self, paths: &[Path]) {
        for path in paths {
            *self.0.entry(*path).or_default() += 1;
        }
    }

    pub fn add(&mut self, other: &Met) {
        for (path, times) in &other.0 {
            *self.0.entry(*path).or_default() += times;
        }
    }

    /// Those that were not met.
    pub fn missing(&self, paths: &[Path]) -> Vec<Path> {
        let missing = paths.iter().filter(|it| self.times(**it) == 0);
        missing.copied().collect()
    }

    pub fn has_all(&self, paths: &[Path]) -> bool {
        self.missing(paths).is_empty()
    }

    /// All of these were met.
    pub fn assert_all(&self, paths: &[Path]) {
        let missing = self.missing(paths);
        assert!(missing.is_empty(), "{missing:?} were not met: {self:?}");
    }
}

/// What a request did, as the table counts it, and as its stores show.
pub fn of(
    request: &Request,
    load: &Load,
    (before, after): (&Counts, &Counts),
    steps: &[Step],
) -> Vec<Path> {
    let became = |word: usize, is: fn(u64) -> bool| {
        let mut values = steps.iter().filter_map(|step| step.value_of(word));
        values.any(is)
    };
    let counted = |count: fn(&Counts) -> u64| count(after) > count(before);
    let is_flush = matches!(request.verb, Verb::Flush);
    let has_journal = became(JOURNAL_LEN, |len| len > 0);
    let all = [
        (Path::Overwrite, counted(|it| it.in_place_updates)),
        (Path::Expiry, counted(|it| it.expired_reclaimed)),
        (Path::Eviction, counted(|it| it.evictions)),
        (Path::Move, counted(|it| it.moved + it.reinsertions)),
        (Path::Slide, became(SLIDE_STEPS, |steps| steps > 1)),
        (
            Path::OverItself,
            has_journal && became(IS_MOVED, |it| it == 1) && !counted(|it| it.reinsertions),
        ),
        (
            Path::Growth,
            counted(|it| it.buckets_added) || became(SEGMENTS, |it| it > 1),
        ),
        (Path::Shrinking, counted(|it| it.buckets_merged)),
        (Path::Rewrite, has_journal),
        (Path::SpareBucket, counted(|it| it.spares_used)),
        (Path::Refusal, counted(|it| it.refused)),
        (Path::Flush, is_flush && !steps.is_empty()),
        (Path::FlushBesideUpload, is_flush && load.has_uploads()),
        (Path::BesideUpload, load.has_uploads() && !steps.is_empty()),
        (
            Path::Finish,
            matches!(request.verb, Verb::Finish(_)) && !steps.is_empty(),
        ),
    ];
    let met = all.into_iter().filter(|(_, is_met)| *is_met);
    met.map(|(path, _)| path).collect()
}
