//! What the parser hands out.

use crate::{Control, Request, Words};

/// One step through a connection's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Nothing is complete.
    Need {
        /// Bytes of input, counted from the same front, before which it is not worth calling again; more than there were.
        need: usize,
    },
    /// One request for one key. A multi-get yields one per key.
    Request {
        /// Bytes of the front that are finished.
        used: usize,
        /// What to execute; borrows from the bytes that are finished.
        request: Request<'a>,
    },
    /// A command that names no key.
    Admin {
        /// Bytes of the front that are finished.
        used: usize,
        /// What is asked.
        admin: Admin<'a>,
    },
    /// Nothing to execute: answer with `line`, then do as told.
    Refuse {
        /// Bytes of the front that are finished.
        used: usize,
        /// The full reply, line end included; empty where the client wants no answer.
        line: &'static str,
        /// Whether the connection goes on.
        then: After,
    },
    /// Nothing to execute: answer with these words, then do as told.
    Answer {
        /// Bytes of the front that are finished.
        used: usize,
        /// The words of the protocol that the command came by.
        words: Words,
        /// What the answer repeats of the command.
        text: &'a [u8],
        /// Whether the connection goes on.
        then: After,
    },
    /// A part of a refused value was swallowed; there is nothing to answer.
    Swallowed {
        /// Bytes of the front that are finished.
        used: usize,
    },
}

/// What follows a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The next command.
    Continue,
    /// The connection is closed once the line is sent.
    Close,
}

/// A command that names no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admin<'a> {
    /// Answer with [`super::lines::VERSION`].
    Version,
    /// Set how much is logged and answer `OK`.
    Verbosity {
        /// The level asked for.
        level: u32,
        /// The client wants no answer.
        quiet: bool,
    },
    /// Make every item older than a moment invisible and answer `OK`.
    FlushAll {
        /// The moment as memcached's expiry time (relative up to 30 days, else seconds since 1970); zero or less is now.
        delay_exptime: i64,
        /// The client wants no answer.
        quiet: bool,
    },
    /// Answer with figures. The words after `stats`, without surrounding spaces; empty for the general figures.
    Stats(&'a [u8]),
    /// Answer with [`super::lines::META_NOOP`] (`mn`).
    MetaNoop,
    /// List all items (`lru_crawler metadump`, `lru_crawler mgdump`).
    Dump(Dump),
    /// List items of one slab class in the form of `stats cachedump`. Every item is of class [`super::dump::CLASS`].
    CacheDump {
        /// The slab class.
        class: u32,
        /// The largest number of items to list; 0 means no limit.
        items_max: u32,
    },
    /// Allow or forbid the listing of items (`lru_crawler enable`, `disable`) and answer `OK`.
    Crawler(bool),
    /// Show what happens from now on, and answer nothing more: bits of [`super::watch`].
    Watch(u32),
    /// Count requests by key prefix or not, or show the counts (`stats detail`).
    Detail(Detail),
    /// Put the server's clock forward by so many seconds, if it was started so that clients may; else answer [`super::lines::ERROR`].
    /// memcached's debug build has this for its tests.
    AdvanceClock {
        /// Seconds.
        seconds: u32,
    },
    /// Change the memory limit (`cache_memlimit`) and answer `OK`, or [`super::lines::MEMLIMIT_FIXED`] if it cannot be changed so.
    MemoryLimit {
        /// The limit in MiB.
        mebibytes: u32,
        /// The client wants no answer.
        quiet: bool,
    },
    /// Remove every item that has expired, in the course of time, and answer `OK` (`lru_crawler crawl`).
    Crawl,
    /// Send what is waiting, then close.
    Quit,
    /// A command that several protocols have, to be answered in these words.
    Control(Control<'a>, Words),
    /// Stop the server, if it was started so that clients may; else answer [`super::lines::SHUTDOWN_NOT_ENABLED`].
    Shutdown(Shutdown),
}

/// What is to become of the counts by key prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Begin to count, and answer `OK`.
    On,
    /// Count no more, and answer `OK`.
    Off,
    /// Show the counts.
    Dump,
    /// Something else; answer [`super::lines::STATS_DETAIL_USAGE`].
    Unknown,
}

/// In which form all items are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dump {
    /// `key=... exp=... la=...` and so on, closed by `END`.
    Meta,
    /// `mg KEY`, which can be sent as it is to fetch the item, closed by `EN`.
    Mg,
}

/// How `shutdown` asks the server to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// As on SIGINT.
    Now,
    /// `shutdown graceful`.
    Graceful,
    /// Another word; answer [`super::lines::INVALID_SHUTDOWN_MODE`].
    Unknown,
}
