//! What every table promises, held against every table in every access mode: random operations
//! beside a plain map ([`oracle`]), and real threads that race ([`stress`]). A table is one file
//! that makes it and says which loads it is put under.
//!
//! What single tables promise beyond that is in the same program, as all tables are compiled for it
//! already.

#![cfg(not(loom))]

mod attacked;
mod busy;
mod cache_mode_memory;
mod carried;
mod commons;
mod crawl;
mod dead;
mod eviction_rules;
mod flush;
mod groups;
mod growing;
mod history;
mod kept;
mod lent;
mod memc3_memory;
mod oracle;
mod removals;
mod small_log;
mod stress;
mod transient_heap;
mod uploads;

/// Tests of the given functions, which take the access mode as their type.
macro_rules! in_modes {
    ($($test:ident: $($mode:ident)+;)+) => { $(
        mod $test {
            use glimmer_store::access;
            $(
                #[test]
                #[allow(non_snake_case, reason = "the mode's own name")]
                fn $mode() {
                    super::$test::<access::$mode>();
                }
            )+
        }
    )+ };
}

mod cache_mode;
mod memc3;
mod store_mode;
mod tiny;
