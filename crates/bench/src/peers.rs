//! The servers that a comparison is asked to start.

use std::path::Path;

use clap::ValueEnum;
use glimmer_comparisons::servers::{Contender, Kind};

/// A server that people use today.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Peer {
    /// Debian: apt-get install memcached
    Memcached,
    /// Debian: apt-get install redis-server
    Redis,
    /// Debian 13 and newer: apt-get install valkey-server
    Valkey,
    /// Built from its sources, on the search path
    Pogocache,
    /// No peer
    None,
}

impl Peer {
    /// The server, if it is one.
    fn kind(self) -> Option<Kind> {
        match self {
            Peer::Memcached => Some(Kind::Memcached),
            Peer::Redis => Some(Kind::Redis),
            Peer::Valkey => Some(Kind::Valkey),
            Peer::Pogocache => Some(Kind::Pogocache),
            Peer::None => None,
        }
    }
}

/// The servers to compare with: the installed ones, and the programs of `--peer`.
pub fn contenders(installed: &[Peer], built: &[Contender]) -> impl Iterator<Item = Contender> {
    let installed = installed.iter().filter_map(|peer| peer.kind());
    installed.map(Contender::from).chain(built.iter().cloned())
}

/// `NAME=PATH`: a program with its name in tables.
pub fn named(text: &str) -> Result<Contender, String> {
    let (name, path) = text
        .split_once('=')
        .filter(|(name, path)| !name.is_empty() && !path.is_empty())
        .ok_or("it must be NAME=PATH, such as newest=/opt/memcached/bin/memcached")?;
    Contender::named(name, Path::new(path)).map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_needs_a_name_and_a_path() {
        for text in ["memcached", "=/bin/true", "newest=", "newest=/no/such/file"] {
            assert!(named(text).is_err(), "{text}");
        }
        // It runs, and is no server.
        let error = named("newest=/bin/true").unwrap_err();
        assert!(error.contains("no server"), "{error}");
    }
}
