//! Counts the requests of one worker, in memcached's terms.

glimmer_base::counters! {
    /// Counters of requests and their results.
    Tally from
    /// The counters as the worker keeps them.
    LiveTally {
        /// Keys read by `get` and `gets` that had an item; `gat` and `gats` are touches.
        get_hits,
        /// Keys read that had no item, or an expired one.
        get_misses,
        /// Keys read whose item had expired and was still there.
        get_expired,
        /// Keys read whose item had been flushed and was still there.
        get_flushed,
        /// Items shown by `me`.
        cmd_meta,
        /// Stores of every mode.
        cmd_set,
        /// Touches, by `touch` and `gat`.
        cmd_touch,
        /// Touches that found an item.
        touch_hits,
        /// Touches that found no item.
        touch_misses,
        /// Deletes that removed or emptied an item.
        delete_hits,
        /// Deletes that found no item.
        delete_misses,
        /// Increments that found an item.
        incr_hits,
        /// Increments that found no item.
        incr_misses,
        /// Decrements that found an item.
        decr_hits,
        /// Decrements that found no item.
        decr_misses,
        /// `cas` without an item.
        cas_misses,
        /// `cas` that stored.
        cas_hits,
        /// `cas` with an outdated CAS unique.
        cas_badval,
        /// Values that were refused because they exceed the item limit.
        store_too_large,
        /// Values that were refused for lack of memory.
        store_no_memory,
        /// Optimistic reads that met too many writers and went to the writer.
        optimistic_retries,
    }
}
