//! What a command without a key reaches: whether it is administrative, whether it changes the
//! server, and whether a datagram may ask for it.

use super::step::{Admin, Detail, Dump};
use crate::{AdminCommand, Control};

impl Admin<'_> {
    /// The administrative command that this is. `None`: it changes nothing beyond its connection,
    /// and costs no more than a read.
    pub fn command(&self) -> Option<AdminCommand> {
        Some(match *self {
            Admin::Version | Admin::MetaNoop | Admin::Quit | Admin::ClusterGet => return None,
            Admin::ClusterSet { .. } | Admin::ClusterDelete { .. } => AdminCommand::Config,
            Admin::Verbosity { .. } => AdminCommand::Verbosity,
            Admin::FlushAll { .. } => AdminCommand::FlushAll,
            Admin::FlushPrefix { .. } | Admin::FlushGroup(_) => AdminCommand::FlushPrefix,
            Admin::Stats(argument) => AdminCommand::of_stats(argument),
            Admin::Dump(Dump::Meta) => AdminCommand::Metadump,
            Admin::Dump(Dump::Mg) => AdminCommand::Mgdump,
            Admin::CacheDump { .. } => AdminCommand::Cachedump,
            Admin::Crawler(_) | Admin::Crawl => AdminCommand::LruCrawler,
            Admin::Watch(_) => AdminCommand::Watch,
            Admin::Detail(_) | Admin::Prefixes => AdminCommand::Detail,
            Admin::AdvanceClock { .. } => AdminCommand::Debugtime,
            Admin::MemoryLimit { .. } => AdminCommand::CacheMemlimit,
            Admin::Answer { command, .. } => command,
            Admin::Dispatch(_) => AdminCommand::Dispatch,
            Admin::RefreshCerts { .. } => AdminCommand::RefreshCerts,
            Admin::Snapshot => AdminCommand::Snapshot,
            Admin::Shutdown { .. } => AdminCommand::Shutdown,
            Admin::Control(control, _) => match control {
                Control::Flush { .. } => AdminCommand::FlushAll,
                Control::Stats(argument) => AdminCommand::of_stats(argument),
                Control::Scan(_) | Control::RandomKey => AdminCommand::Metadump,
                Control::Info(_) | Control::Size | Control::Clients => AdminCommand::Stats,
                Control::Answered(_)
                | Control::Time
                | Control::Move(_)
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
            // The request is short, and the reply may be long.
            Admin::ClusterGet => false,
            // It goes from worker to worker, and comes home to a connection.
            Admin::Control(Control::Move(_), _) => false,
            _ => self.command().is_none(),
        }
    }

    /// Its words that say what is to change, for auditors.
    pub fn words(&self) -> [&[u8]; 2] {
        match *self {
            Admin::Dispatch(words) => words,
            Admin::FlushPrefix { prefix, .. } => [prefix, b""],
            Admin::FlushGroup(request) => [request.key, b""],
            Admin::ClusterSet { .. } => [b"set", b"cluster"],
            Admin::ClusterDelete { .. } => [b"delete", b"cluster"],
            _ => Default::default(),
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
            | Admin::FlushPrefix { quiet, .. }
            | Admin::MemoryLimit { quiet, .. }
            | Admin::AdvanceClock { quiet, .. }
            | Admin::RefreshCerts { quiet }
            | Admin::Shutdown { quiet, .. }
            | Admin::ClusterSet { quiet, .. }
            | Admin::ClusterDelete { quiet }
            | Admin::Answer { quiet, .. } => quiet,
            _ => false,
        }
    }
}
