//! What the requests of one worker did, in memcached's terms.

glimmer_base::counters! {
    /// One worker's figures at one moment. Each is explained at the field of the same name of [`TableStats`](crate::TableStats).
    Tally from
    /// The figures as the worker keeps them.
    LiveTally {
        /// Reads that found an item.
        get_hits,
        /// Reads that found none.
        get_misses,
        /// Stores asked for.
        cmd_set,
        /// Touches asked for.
        cmd_touch,
        /// Touches that found an item.
        touch_hits,
        /// Touches that found none.
        touch_misses,
        /// Deletes that found an item.
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
        /// Optimistic reads that went to the writing side.
        optimistic_retries,
    }
}
