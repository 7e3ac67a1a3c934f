//! The log lines of events in memcached's format: one line per event (protocol.txt, "Watchers").

use std::fmt::Write;

use glimmer_engine::Removed;
use glimmer_proto::text::dump::escape;

use super::interest;
use super::sight::{Asked, Sight};
use crate::stream::registry::SocketEntry;

/// The time of an event and its number.
pub(super) struct Stamp {
    unix_us: u128,
    gid: u64,
}

/// Why a connection was closed, in memcached's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The client broke the protocol.
    Error,
    /// The client closed it or is gone.
    #[default]
    Normal,
    /// It was idle for too long.
    IdleTimeout,
    /// The server stops.
    Shutdown,
}

impl Stamp {
    /// The stamp of an event with this number that happens now.
    pub fn new(unix_us: u128, gid: u64) -> Stamp {
        Stamp { unix_us, gid }
    }

    fn begin(&self, kind: &str) -> String {
        let (s, us) = (self.unix_us / 1_000_000, self.unix_us % 1_000_000);
        format!("ts={s}.{us} gid={} type={kind}", self.gid)
    }
}

/// Adds the lines for a request that match the interests, each with its interest. As in memcached,
/// a store, a delete or a calculation starts with a fetch.
pub(super) fn of_sight(
    sight: &Sight,
    interests: u32,
    lines: &mut Vec<(u32, String)>,
    stamp: &mut impl FnMut() -> Stamp,
) {
    let is_wanted = |interest: u32| interests & interest != 0;
    let (before, after) = (sight.before, sight.after);
    let end = |line: &mut String, size: usize| {
        let _ = writeln!(line, " clsid={} cfd={} size={size}", class(size), sight.fd);
    };
    if sight.asked != Asked::Other && is_wanted(interest::FETCHERS) {
        let mut line = begin(&stamp(), "item_get", sight);
        line.push_str(match before {
            Some(_) => " status=found",
            None => " status=not_found",
        });
        end(&mut line, before.map_or(0, |item| item.value_bytes));
        lines.push((interest::FETCHERS, line));
    }
    let mut store = |command: &str, status: &str, size: usize| {
        if is_wanted(interest::MUTATIONS) {
            let mut line = begin(&stamp(), "item_store", sight);
            let ttl = sight.ttl_s;
            let _ = write!(line, " status={status} cmd={command} ttl={ttl}");
            end(&mut line, size);
            lines.push((interest::MUTATIONS, line));
        }
    };
    match sight.asked {
        Asked::Fetch | Asked::Other => {}
        Asked::Store(command) => match (after, status(sight, command)) {
            (Some(after), "stored") => store(command, "stored", after.value_bytes),
            (_, status) => store(command, status, sight.value_bytes),
        },
        // The command is not known any more.
        Asked::Refused(status) => store("set", status, 0),
        Asked::Count => {
            if let (None, Some(made)) = (before, after) {
                store("add", "stored", made.value_bytes);
            }
        }
        Asked::Delete(command) => {
            if let (Some(item), None) = (before, after)
                && is_wanted(interest::DELETIONS)
            {
                let mut line = begin(&stamp(), "deleted", sight);
                let size = item.value_bytes;
                let _ = writeln!(line, " cmd={command} clsid={} size={size}", class(size));
                lines.push((interest::DELETIONS, line));
            }
        }
    }
}

/// The result of a store, in memcached's words.
fn status(sight: &Sight, command: &str) -> &'static str {
    let (before, after) = (sight.before, sight.after);
    let is_stored = after.is_some_and(|after| before.is_none_or(|it| it.cas != after.cas))
        || is_stored_without_uniques(sight, command);
    match (command, before) {
        _ if is_stored => "stored",
        ("cas", None) => "not_found",
        ("cas", Some(_)) if after.is_some() => "exists",
        ("add" | "replace" | "append" | "prepend", _) => "not_stored",
        _ => "too_large",
    }
}

/// Whether a store succeeded, where all CAS uniques are zero and say nothing.
fn is_stored_without_uniques(sight: &Sight, command: &str) -> bool {
    match (sight.before, sight.after) {
        (Some(before), Some(after)) => {
            (before.cas, after.cas) == (0, 0) && !matches!(command, "add" | "cas")
        }
        _ => false,
    }
}

/// The line of an evicted item. The time since its last access is -1 if that was not stored.
pub(super) fn of_removed(item: &Removed, stamp: &Stamp) -> String {
    let mut line = begin_with(stamp, "eviction", &item.key);
    let fetched = if item.was_read { "yes" } else { "no" };
    let ttl = match item.expiry.ms() {
        0 => -1,
        ms => (ms.saturating_sub(item.now.ms) / 1000) as i64,
    };
    let accessed = match item.accessed_s {
        0 => -1,
        accessed_s => (item.now.ms / 1000).saturating_sub(accessed_s.into()) as i64,
    };
    let size = item.value_bytes;
    let _ = writeln!(
        line,
        " fetch={fetched} ttl={ttl} la={accessed} clsid={} size={size}",
        class(size)
    );
    line
}

/// All items are in class 1; a missing item has no class.
fn class(value_bytes: usize) -> u32 {
    u32::from(value_bytes > 0)
}

fn begin(stamp: &Stamp, kind: &str, sight: &Sight) -> String {
    begin_with(stamp, kind, &sight.key)
}

fn begin_with(stamp: &Stamp, kind: &str, key: &[u8]) -> String {
    let mut line = stamp.begin(kind);
    let mut escaped = Vec::new();
    escape(&mut escaped, key);
    line.push_str(" key=");
    line.push_str(&String::from_utf8_lossy(&escaped));
    line
}

/// The line of a connection that was opened or, with the reason, closed.
pub(super) fn of_connection(
    entry: &SocketEntry,
    closed: Option<CloseReason>,
    stamp: &Stamp,
) -> String {
    let kind = if closed.is_some() {
        "conn_close"
    } else {
        "conn_new"
    };
    let mut line = stamp.begin(kind);
    let (host, port) = match &entry.peer {
        Some(peer) => (peer.host(), peer.port()),
        None => ("unknown".into(), 0),
    };
    let transport = entry.transport();
    let _ = write!(line, " rip={host} rport={port} transport={transport}");
    let reason = closed.map(|reason| match reason {
        CloseReason::Error => "error",
        CloseReason::Normal => "normal",
        CloseReason::IdleTimeout => "idle_timeout",
        CloseReason::Shutdown => "shutdown",
    });
    if let Some(reason) = reason {
        let _ = write!(line, " reason={reason}");
    }
    let _ = writeln!(line, " cfd={}", entry.fd);
    line
}
