//! What the requests of one worker did, in memcached's terms.

glimmer_base::counters! {
    /// What requests asked for and came to, at one moment.
    Tally from
    /// The figures as the worker keeps them.
    LiveTally {
        /// Keys read by `get` and `gets` that had an item; `gat` and `gats` are touches.
        get_hits,
        /// Keys read that had none, or one that had expired.
        get_misses,
        /// Keys read whose item had expired and was still there.
        get_expired,
        /// Keys read whose item had been flushed and was still there.
        get_flushed,
        /// Items shown by `me`.
        cmd_meta,
        /// Stores asked for, of every mode.
        cmd_set,
        /// Touches asked for, by `touch` and `gat`.
        cmd_touch,
        /// Touches that found an item.
        touch_hits,
        /// Touches that found none.
        touch_misses,
        /// Deletes that removed or emptied an item.
        delete_hits,
        /// Deletes that found none.
        delete_misses,
        /// Increments that found an item.
        incr_hits,
        /// Increments that found none.
        incr_misses,
        /// Decrements that found an item.
        decr_hits,
        /// Decrements that found none.
        decr_misses,
        /// `cas` without an item.
        cas_misses,
        /// `cas` that stored.
        cas_hits,
        /// `cas` that came too late.
        cas_badval,
        /// Values that were refused because they are larger than an item may be.
        store_too_large,
        /// Values that were refused because there was no memory for them.
        store_no_memory,
        /// Optimistic reads that met too many writers and went to the writing side.
        optimistic_retries,
    }
}
