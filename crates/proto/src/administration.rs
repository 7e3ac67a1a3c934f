//! The commands by which clients administer a server. A server permits each of them or not, and
//! carries out none of them for a datagram, whose sender may be forged.

use std::fmt;
use std::str::FromStr;

use crate::text::lines;

macro_rules! commands {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $refusal:expr;)*) => {
        /// A command by which clients administer a server. A protocol's own name for it, as RESP's
        /// `FLUSHALL` and `INFO`, is the same command.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AdminCommand {
            $($(#[$doc])* $variant,)*
        }

        impl AdminCommand {
            /// All of them, by name.
            pub const ALL: &[AdminCommand] = &[$(AdminCommand::$variant,)*];

            /// The name for operators.
            pub const fn name(self) -> &'static str {
                match self {
                    $(AdminCommand::$variant => $name,)*
                }
            }

            /// The line of the text protocol that answers it where it is not permitted.
            pub const fn refusal(self) -> &'static str {
                match self {
                    $(AdminCommand::$variant => $refusal,)*
                }
            }
        }
    };
}

macro_rules! not_allowed {
    ($name:literal) => {
        concat!("CLIENT_ERROR ", $name, " not allowed\r\n")
    };
}

commands! {
    /// `cache_memlimit`.
    CacheMemlimit, "cache_memlimit", not_allowed!("cache_memlimit");
    /// `stats cachedump`.
    Cachedump, "cachedump", lines::CACHEDUMP_NOT_ALLOWED;
    /// `config set` and `config delete`.
    Config, "config", not_allowed!("config");
    /// `debugtime`, with which memcached's own tests put its clock forward.
    Debugtime, "debugtime", lines::ERROR;
    /// `stats detail`.
    Detail, "detail", lines::STATS_DETAIL_NOT_ALLOWED;
    /// `dispatch`.
    Dispatch, "dispatch", not_allowed!("dispatch");
    /// `flush_all`.
    FlushAll, "flush_all", lines::FLUSH_NOT_ALLOWED;
    /// `flush_prefix`, and `md` with the flag `G`.
    FlushPrefix, "flush_prefix", not_allowed!("flush_prefix");
    /// `lru`.
    Lru, "lru", not_allowed!("lru");
    /// `lru_crawler`, but for the listings.
    LruCrawler, "lru_crawler", not_allowed!("lru_crawler");
    /// `lru_crawler metadump`.
    Metadump, "metadump", lines::METADUMP_NOT_ALLOWED;
    /// `lru_crawler mgdump`.
    Mgdump, "mgdump", lines::MGDUMP_NOT_ALLOWED;
    /// `refresh_certs`.
    RefreshCerts, "refresh_certs", not_allowed!("refresh_certs");
    /// `shutdown`.
    Shutdown, "shutdown", lines::SHUTDOWN_NOT_ENABLED;
    /// `slabs`.
    Slabs, "slabs", not_allowed!("slabs");
    /// `snapshot`.
    Snapshot, "snapshot", not_allowed!("snapshot");
    /// `stats`, but for those that change something or list keys.
    Stats, "stats", not_allowed!("stats");
    /// `stats reset`.
    StatsReset, "stats_reset", not_allowed!("stats reset");
    /// `verbosity`.
    Verbosity, "verbosity", not_allowed!("verbosity");
    /// `watch`.
    Watch, "watch", lines::WATCH_NOT_ALLOWED;
}

impl AdminCommand {
    /// The command that `stats` is with these words after it.
    pub fn of_stats(argument: &[u8]) -> AdminCommand {
        match argument.split(|&byte| byte == b' ').next() {
            Some(b"reset") => AdminCommand::StatsReset,
            Some(word) if word.starts_with(b"detail") => AdminCommand::Detail,
            _ => AdminCommand::Stats,
        }
    }
}

impl fmt::Display for AdminCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AdminCommand {
    type Err = String;

    /// Fails with the names that there are.
    fn from_str(name: &str) -> Result<AdminCommand, String> {
        let mut all = AdminCommand::ALL.iter().copied();
        all.find(|command| command.name() == name).ok_or_else(|| {
            let names: Vec<&str> = AdminCommand::ALL.iter().map(|it| it.name()).collect();
            format!("a command is one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_none_is_told_the_names() {
        for &command in AdminCommand::ALL {
            assert_eq!(command.name().parse(), Ok(command));
            assert!(command.refusal().ends_with("\r\n"));
        }
        let error = "dispatsh".parse::<AdminCommand>().unwrap_err();
        assert!(error.contains("cachedump, config, debugtime, detail, dispatch, flush_all"));
    }
}
