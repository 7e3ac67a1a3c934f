//! How a server is driven: in its usual protocol, in another one, or over UDP.

use crate::servers::{Contender, Kind, Server};
use glimmer_loadgen::driver::{Dialect, Target};

/// Our server, driven as Redis is.
pub const RESP_NAME: &str = "glimmer resp";

/// How a server is driven.
#[derive(Clone, Copy)]
pub enum Way {
    /// In its usual protocol.
    Usual,
    /// In this protocol.
    Speaking(Dialect),
    /// Over UDP, with or without segment batches.
    Udp {
        /// With segment batches.
        segmented: bool,
    },
}

impl Way {
    /// The server as clients see it that drive it in this way.
    pub fn target(self, server: &Server) -> Target {
        match self {
            Way::Usual => server.target(),
            Way::Speaking(dialect) => Target {
                dialect,
                ..server.target()
            },
            Way::Udp { segmented } => server.udp_target(segmented),
        }
    }
}

/// The usual ways to drive a server beside these, with their names. Where a server that speaks RESP
/// takes part, ours is driven in RESP as well.
pub fn usual(contender: &Contender, servers: &[Contender]) -> Vec<(String, Way)> {
    let name = contender.name();
    let usual = (name.to_owned(), Way::Usual);
    let in_resp = || (format!("{name} resp"), Way::Speaking(Dialect::Resp));
    let speaks_resp = |peer: &Contender| peer.kind().dialect() == Dialect::Resp;
    let has_resp = servers.iter().any(speaks_resp);
    match contender.kind() {
        Kind::Glimmer if has_resp => vec![usual, in_resp()],
        _ => vec![usual],
    }
}

/// Measurements of each repetition, where servers are driven in the usual ways.
pub fn cases(servers: &[Contender]) -> usize {
    let ways = servers.iter().map(|server| usual(server, servers).len());
    ways.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user of Redis sees the speedup of our server in Redis's protocol, with one command.
    #[test]
    fn ours_is_driven_in_resp_too_where_redis_takes_part() {
        let names = |servers: &[Contender]| -> Vec<String> {
            let ways = servers.iter().flat_map(|server| usual(server, servers));
            ways.map(|(name, _)| name).collect()
        };
        let with_redis = [Kind::Glimmer, Kind::Memcached, Kind::Redis].map(Contender::from);
        let expected = ["glimmer", "glimmer resp", "memcached", "redis"];
        assert_eq!(names(&with_redis), expected);
        assert_eq!(cases(&with_redis), expected.len());
        assert_eq!(names(&with_redis[..2]), ["glimmer", "memcached"]);
        assert_eq!(names(&with_redis[1..]), ["memcached", "redis"]);
    }
}
