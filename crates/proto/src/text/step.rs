//! The parser's output.

use super::cluster::Cluster;
use crate::{AdminCommand, Announced, Control, Request, Words};

/// One step through a connection's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// More input is needed.
    Need {
        /// Bytes of input, counted from the same front, that are needed before another call makes
        /// sense; more than the input had.
        need: usize,
        /// They contain a large value. The caller may take it out of the input; see
        /// [`crate::Parser::take_value`].
        announced: Option<Announced<'a>>,
    },
    /// One request for one key. A multi-get yields one per key.
    Request {
        /// Bytes at the front of the input that are consumed.
        used: usize,
        /// The request, which borrows from the consumed bytes.
        request: Request<'a>,
    },
    /// A command without a key.
    Admin {
        /// Bytes at the front of the input that are consumed.
        used: usize,
        /// The command.
        admin: Admin<'a>,
    },
    /// Nothing to execute: answer with `line`.
    Refuse {
        /// Bytes at the front of the input that are consumed.
        used: usize,
        /// The complete reply with its line end; empty if the client wants no reply.
        line: &'static str,
        /// Whether the connection continues.
        then: After,
    },
    /// Nothing to execute: answer with these words.
    Answer {
        /// Bytes at the front of the input that are consumed.
        used: usize,
        /// The words of the command's protocol.
        words: Words,
        /// The part of the command that the reply repeats.
        text: &'a [u8],
        /// Whether the connection continues.
        then: After,
    },
    /// A part of a command that is to be executed later, with others. The caller keeps the consumed
    /// bytes behind those of earlier steps like this one, as long as
    /// [`crate::Parser::queues_apart`], and until [`After::Replay`]. If it cannot, it says so to
    /// [`crate::Parser::refuse_queue`] and drops what it has.
    Queue {
        /// Bytes at the front of the input that are consumed: no more than an ordinary buffer or a
        /// longest line has.
        used: usize,
        /// The complete reply with its line end; empty if none is due yet.
        line: &'static str,
    },
    /// A part of a refused value was swallowed. There is no reply.
    Swallowed {
        /// Bytes at the front of the input that are consumed.
        used: usize,
    },
}

impl Step<'_> {
    /// More input is needed, none of it a large value.
    #[inline]
    pub const fn need(need: usize) -> Step<'static> {
        Step::Need {
            need,
            announced: None,
        }
    }
}

/// What happens after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The next command follows.
    Continue,
    /// The commands follow that were kept for [`Step::Queue`], and after them what is in the input
    /// now.
    Replay,
    /// The connection is closed once the reply is sent.
    Close,
}

/// A command without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admin<'a> {
    /// Answer with [`super::lines::VERSION`].
    Version,
    /// Set the log level and answer `OK`.
    Verbosity {
        /// The requested level.
        level: u32,
        /// The client wants no reply.
        quiet: bool,
    },
    /// Flush every item older than a given time and answer `OK`.
    FlushAll {
        /// The time as a memcached expiry time (relative up to 30 days, else seconds since 1970);
        /// zero or less means now.
        delay_exptime: i64,
        /// The client wants no reply.
        quiet: bool,
    },
    /// Invalidate every item whose key begins with this prefix and the server's delimiter, and
    /// answer `OK`, or say why not (`flush_prefix`).
    FlushPrefix {
        /// The prefix.
        prefix: &'a [u8],
        /// The client wants no reply.
        quiet: bool,
    },
    /// The same for the key of this request, an `md` with the flag `G`, whose outcome is
    /// [`crate::Outcome::Deleted`].
    FlushGroup(Request<'a>),
    /// Answer with statistics. Contains the words after `stats`, without surrounding spaces; empty
    /// for general statistics.
    Stats(&'a [u8]),
    /// Answer with [`super::lines::META_NOOP`] (`mn`).
    MetaNoop,
    /// Show items, bytes and requests by key prefix (`stats prefix`).
    Prefixes,
    /// List all items (`lru_crawler metadump`, `lru_crawler mgdump`).
    Dump(Dump),
    /// List items of one slab class in the form of `stats cachedump`. Every item is in class
    /// [`super::dump::CLASS`].
    CacheDump {
        /// The slab class.
        class: u32,
        /// The largest number of items to list; 0 means no limit.
        items_max: u32,
    },
    /// Allow or forbid the listing of items (`lru_crawler enable`, `disable`) and answer `OK`.
    Crawler(bool),
    /// Report events from now on, and answer nothing else: bits of [`super::watch`].
    Watch(u32),
    /// Start or stop counting requests by key prefix, or show the counts (`stats detail`).
    Detail(Detail),
    /// Advance the server's clock, if the server was started with that permission; otherwise answer
    /// [`super::lines::ERROR`]. memcached's debug build has this command for its tests.
    AdvanceClock {
        /// The number of seconds.
        seconds: u32,
        /// The client wants no reply.
        quiet: bool,
    },
    /// Change the memory limit (`cache_memlimit`) and answer `OK`, or
    /// [`super::lines::MEMLIMIT_FIXED`] if it cannot be changed to this value.
    MemoryLimit {
        /// The limit in MiB.
        mebibytes: u32,
        /// The client wants no reply.
        quiet: bool,
    },
    /// Answer with this line and change nothing: a setting of memcached's that has no meaning here
    /// (`slabs automove`, `lru tune`, `lru_crawler sleep`), or a command with wrong words that may
    /// not be permitted at all.
    Answer {
        /// The command that it is.
        command: AdminCommand,
        /// The answer where the command is permitted.
        line: &'static str,
        /// The client wants no reply.
        quiet: bool,
    },
    /// Put another dispatch policy or access mode in force (`dispatch POLICY`, `dispatch ACCESS` or
    /// `dispatch POLICY ACCESS`) and answer `OK` when every worker goes by it, or say why not.
    /// Contains the words after `dispatch`; those that are missing are empty.
    Dispatch([&'a [u8]; 2]),
    /// Show the stored configuration of a cluster (`config get cluster`), or nothing if there is
    /// none.
    ClusterGet,
    /// Store a configuration in place of the one before, and answer [`super::lines::STORED`].
    ClusterSet {
        /// The configuration.
        cluster: Cluster<'a>,
        /// The client wants no reply.
        quiet: bool,
    },
    /// Delete the configuration. The answer is [`super::lines::DELETED`], or, if there is none,
    /// [`super::lines::NOT_FOUND`].
    ClusterDelete {
        /// The client wants no reply.
        quiet: bool,
    },
    /// Remove expired items in the background and answer `OK` (`lru_crawler crawl`).
    Crawl,
    /// Read the certificates of TLS again (`refresh_certs`) and answer `OK`, or say why not.
    RefreshCerts {
        /// The client wants no reply.
        quiet: bool,
    },
    /// Begin to write all items to the server's file and answer `OK`, or say why not (`snapshot`).
    Snapshot,
    /// Send unsent replies, then close.
    Quit,
    /// A command that several protocols have, to be answered in these words.
    Control(Control<'a>, Words),
    /// Stop the server, if it was started with that permission; otherwise answer
    /// [`super::lines::SHUTDOWN_NOT_ENABLED`].
    Shutdown {
        /// How it is stopped.
        how: Shutdown,
        /// The client wants no reply.
        quiet: bool,
    },
}

/// A command about the counts by key prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Start counting and answer `OK`.
    On,
    /// Stop counting and answer `OK`.
    Off,
    /// Show the counts.
    Dump,
    /// Any other word: answer [`super::lines::STATS_DETAIL_USAGE`].
    Unknown,
}

/// The format for listing all items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dump {
    /// `key=... exp=... la=...` and so on, ending with `END`.
    Meta,
    /// `mg KEY`, which fetches the item when sent as a command, ending with `EN`.
    Mg,
}

/// How `shutdown` stops the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// As with SIGINT.
    Now,
    /// `shutdown graceful`.
    Graceful,
    /// Any other word: answer [`super::lines::INVALID_SHUTDOWN_MODE`].
    Unknown,
}
