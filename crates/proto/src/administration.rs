//! The commands by which clients administer a server. A server permits each of them or not, and
//! carries out none of them for a datagram, whose sender may be forged.

use std::fmt;
use std::str::FromStr;

use crate::text::{Detail, Dump, lines};
use crate::{Admin, Control};

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
    /// `debugtime`, with which memcached's own tests put its clock forward.
    Debugtime, "debugtime", lines::ERROR;
    /// `stats detail`.
    Detail, "detail", lines::STATS_DETAIL_NOT_ALLOWED;
    /// `dispatch`.
    Dispatch, "dispatch", not_allowed!("dispatch");
    /// `flush_all`.
    FlushAll, "flush_all", lines::FLUSH_NOT_ALLOWED;
    /// `lru`.
    Lru, "lru", not_allowed!("lru");
    /// `lru_crawler`, but for the listings.
    LruCrawler, "lru_crawler", not_allowed!("lru_crawler");
    /// `lru_crawler metadump`.
    Metadump, "metadump", lines::METADUMP_NOT_ALLOWED;
    /// `lru_crawler mgdump`.
    Mgdump, "mgdump", lines::MGDUMP_NOT_ALLOWED;
    /// `shutdown`.
    Shutdown, "shutdown", lines::SHUTDOWN_NOT_ENABLED;
    /// `slabs`.
    Slabs, "slabs", not_allowed!("slabs");
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

impl Admin<'_> {
    /// The administrative command that this is. `None`: it changes nothing beyond its connection,
    /// and costs no more than a read.
    pub fn command(&self) -> Option<AdminCommand> {
        Some(match *self {
            Admin::Version | Admin::MetaNoop | Admin::Quit => return None,
            Admin::Verbosity { .. } => AdminCommand::Verbosity,
            Admin::FlushAll { .. } => AdminCommand::FlushAll,
            Admin::Stats(argument) => AdminCommand::of_stats(argument),
            Admin::Dump(Dump::Meta) => AdminCommand::Metadump,
            Admin::Dump(Dump::Mg) => AdminCommand::Mgdump,
            Admin::CacheDump { .. } => AdminCommand::Cachedump,
            Admin::Crawler(_) | Admin::Crawl => AdminCommand::LruCrawler,
            Admin::Watch(_) => AdminCommand::Watch,
            Admin::Detail(_) => AdminCommand::Detail,
            Admin::AdvanceClock { .. } => AdminCommand::Debugtime,
            Admin::MemoryLimit { .. } => AdminCommand::CacheMemlimit,
            Admin::Unused { command, .. } => command,
            Admin::Dispatch(_) => AdminCommand::Dispatch,
            Admin::Shutdown(_) => AdminCommand::Shutdown,
            Admin::Control(control, _) => match control {
                Control::Flush { .. } => AdminCommand::FlushAll,
                Control::Stats(argument) => AdminCommand::of_stats(argument),
                Control::Answered(_)
                | Control::Quit
                | Control::Sum
                | Control::ConnectionId
                | Control::Mechanisms
                | Control::Login(_) => return None,
            },
        })
    }

    /// Whether it is carried out for a datagram: it changes nothing, and costs little.
    pub fn may_come_by_datagram(&self) -> bool {
        match self {
            Admin::Stats(argument) | Admin::Control(Control::Stats(argument), _) => {
                argument.is_empty()
            }
            _ => self.command().is_none(),
        }
    }

    /// Whether it changes nothing of the server.
    pub fn only_looks(&self) -> bool {
        match *self {
            Admin::Detail(detail) => !matches!(detail, Detail::On | Detail::Off),
            Admin::Control(Control::Stats(b"detail on" | b"detail off"), _) => false,
            _ => self.command().is_none_or(|command| {
                matches!(
                    command,
                    AdminCommand::Cachedump
                        | AdminCommand::Detail
                        | AdminCommand::Metadump
                        | AdminCommand::Mgdump
                        | AdminCommand::Stats
                        | AdminCommand::Watch
                )
            }),
        }
    }

    /// Whether the client wants no reply.
    pub fn is_quiet(&self) -> bool {
        match *self {
            Admin::Verbosity { quiet, .. }
            | Admin::FlushAll { quiet, .. }
            | Admin::MemoryLimit { quiet, .. }
            | Admin::Unused { quiet, .. } => quiet,
            _ => false,
        }
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
        assert!(error.contains("cachedump, debugtime, detail, dispatch, flush_all"));
    }
}
