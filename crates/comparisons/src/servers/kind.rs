//! The servers that comparisons know how to start.

use std::path::PathBuf;

use anyhow::Result;
use glimmer_cli::Program;
use glimmer_loadgen::driver::Dialect;

/// A server that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ours: the server beside this executable.
    Glimmer,
    /// memcached.
    Memcached,
    /// Redis as a cache, without persistence.
    Redis,
    /// Valkey, which takes Redis's arguments.
    Valkey,
    /// Pogocache, driven in memcached's text protocol.
    Pogocache,
    /// Masstree's own server, which keeps all and evicts nothing.
    Masstree,
    /// No cache: `glimmer bench echo`, the ceiling that the kernel sets.
    Echo,
}

impl Kind {
    /// Those of others, which a program of any name may turn out to be. Masstree's server does not
    /// tell its version.
    const OF_OTHERS: [Kind; 4] = [Kind::Memcached, Kind::Redis, Kind::Valkey, Kind::Pogocache];

    /// The name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Glimmer => "glimmer",
            Kind::Memcached => "memcached",
            Kind::Redis => "redis",
            Kind::Valkey => "valkey",
            Kind::Pogocache => "pogocache",
            Kind::Masstree => "masstree",
            Kind::Echo => "echo",
        }
    }

    /// The protocol that its clients speak here.
    pub fn dialect(self) -> Dialect {
        match self {
            Kind::Glimmer | Kind::Memcached | Kind::Pogocache | Kind::Echo => Dialect::Text,
            Kind::Redis | Kind::Valkey => Dialect::Resp,
            Kind::Masstree => Dialect::Masstree,
        }
    }

    /// Whether it has all of memcached's protocols, over TCP and UDP.
    pub fn is_memcached(self) -> bool {
        matches!(self, Kind::Glimmer | Kind::Memcached)
    }

    /// Whether it encrypts with OpenSSL, if it was built with it.
    pub(super) fn needs_openssl(self) -> bool {
        matches!(self, Kind::Memcached | Kind::Redis | Kind::Valkey)
    }

    /// Whether it has one thread, whatever it is asked for.
    pub fn has_one_thread(self) -> bool {
        matches!(self, Kind::Redis | Kind::Valkey | Kind::Echo)
    }

    /// Its installed executable; an error if ours is not beside this one.
    pub(super) fn program(self) -> Result<PathBuf> {
        Ok(match self {
            Kind::Glimmer => Program::Server.find()?,
            Kind::Echo => Program::Bench.find()?,
            Kind::Memcached => "memcached".into(),
            Kind::Redis => "redis-server".into(),
            Kind::Valkey => "valkey-server".into(),
            Kind::Pogocache => "pogocache".into(),
            Kind::Masstree => "mtd".into(),
        })
    }

    /// The message if it cannot be started.
    pub(super) fn missing(self) -> &'static str {
        match self {
            Kind::Glimmer => "our own server cannot be run",
            Kind::Echo => "the program glimmer-bench cannot be run",
            Kind::Memcached => "memcached is missing: apt-get install memcached",
            Kind::Redis => "redis-server is missing: apt-get install redis-server",
            Kind::Valkey => {
                "valkey-server is missing: apt-get install valkey-server (Debian 13 and newer)"
            }
            Kind::Pogocache => "pogocache is missing: build it, and give --peer pogocache=PATH",
            Kind::Masstree => "mtd is missing: build masstree-beta, and put it on the search path",
        }
    }

    /// What the first line of its version begins with.
    fn introduction(self) -> &'static str {
        match self {
            Kind::Glimmer => "glimmer ",
            Kind::Echo => "glimmer-bench ",
            Kind::Memcached => "memcached ",
            Kind::Redis => "Redis server ",
            Kind::Valkey => "Valkey server ",
            Kind::Pogocache => "pogocache ",
            Kind::Masstree => "mtd",
        }
    }

    /// The server whose version this is, ours among them.
    pub(super) fn introduced_by(version: &str) -> Option<Kind> {
        let mut kinds = Kind::OF_OTHERS.into_iter().chain([Kind::Glimmer]);
        kinds.find(|kind| version.starts_with(kind.introduction()))
    }
}
