//! How much work one request does, beyond finding its own key. This crate's unit tests count it and
//! hold every table and every eviction rule to a bound (see `tests`). In any other build these
//! functions are empty.

#[cfg(all(test, not(loom)))]
mod tests;

/// What has been done since the counters were last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code, reason = "only tests count"))]
pub(crate) struct Work {
    /// Items, free blocks, fillers and index entries that were looked at.
    pub examined: usize,
    /// Items that were put in another place, or named by another index slot.
    pub moved: usize,
    /// Words of stored items that were copied to another place.
    pub words_copied: usize,
    /// Index buckets or segments that were split or merged.
    pub splits: usize,
    /// Steps in the bookkeeping of pages.
    pub page_steps: usize,
}

#[cfg(test)]
impl Work {
    /// No work.
    const NONE: Work = Work {
        examined: 0,
        moved: 0,
        words_copied: 0,
        splits: 0,
        page_steps: 0,
    };
}

#[cfg(test)]
thread_local! {
    static DONE: std::cell::Cell<Work> = const { std::cell::Cell::new(Work::NONE) };
}

/// Takes what this thread has counted, and begins again at zero.
#[cfg(test)]
pub(crate) fn take() -> Work {
    DONE.take()
}

#[inline(always)]
fn add(_count: impl FnOnce(&mut Work)) {
    #[cfg(test)]
    {
        let mut work = DONE.get();
        _count(&mut work);
        DONE.set(work);
    }
}

/// Items, free blocks, fillers or index entries were looked at.
#[inline(always)]
pub(crate) fn examined(count: usize) {
    add(|work| work.examined += count);
}

/// An item was moved, and `words` words of it were copied.
#[inline(always)]
pub(crate) fn moved(words: usize) {
    add(|work| {
        work.moved += 1;
        work.words_copied += words;
    });
}

/// Words were copied that are not counted as one item's.
#[inline(always)]
pub(crate) fn copied(words: usize) {
    add(|work| work.words_copied += words);
}

/// A bucket or a segment of the index was split or merged.
#[inline(always)]
pub(crate) fn split() {
    add(|work| work.splits += 1);
}

/// The bookkeeping of pages took a step.
#[inline(always)]
pub(crate) fn page_step() {
    add(|work| work.page_steps += 1);
}
