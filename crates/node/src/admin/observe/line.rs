//! The log lines of events in memcached's format: one line per event (protocol.txt, "Watchers").

use std::fmt::Write;

use glimmer_base::shown;
use glimmer_engine::Removal;
use glimmer_proto::text::dump::CLASS;

use crate::stream::registry::SocketEntry;

/// The time of an event and its number.
pub(super) struct Stamp {
    pub unix_us: u128,
    pub gid: u64,
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

    fn begin_with(&self, kind: &str, key: &[u8]) -> String {
        let mut line = self.begin(kind);
        let mut escaped = Vec::new();
        shown::put_uri(&mut escaped, key);
        line.push_str(" key=");
        line.push_str(&String::from_utf8_lossy(&escaped));
        line
    }
}

/// The line of a look at an item, which had a value of this many bytes if it was there.
pub(super) fn of_fetch(
    stamp: Stamp,
    key: &[u8],
    value_bytes: Option<usize>,
    client: i32,
) -> String {
    let mut line = stamp.begin_with("item_get", key);
    line.push_str(match value_bytes {
        Some(_) => " status=found",
        None => " status=not_found",
    });
    end(&mut line, value_bytes, client);
    line
}

/// A store, or an attempt.
pub(super) struct Store {
    pub status: &'static str,
    pub command: &'static str,
    pub ttl_s: u64,
    pub size: usize,
}

/// The line of a store.
pub(super) fn of_store(stamp: Stamp, key: &[u8], store: &Store, client: i32) -> String {
    let Store {
        status,
        command,
        ttl_s,
        size,
    } = *store;
    let mut line = stamp.begin_with("item_store", key);
    let _ = write!(line, " status={status} cmd={command} ttl={ttl_s}");
    end(&mut line, Some(size), client);
    line
}

/// The line of an item that was deleted.
pub(super) fn of_delete(stamp: Stamp, key: &[u8], command: &str, size: usize) -> String {
    let mut line = stamp.begin_with("deleted", key);
    let _ = writeln!(line, " cmd={command} clsid={CLASS} size={size}");
    line
}

/// The line of an evicted item. The time since its last access is -1 if that was not stored.
pub(super) fn of_removal(stamp: Stamp, key: &[u8], removal: &Removal<'_>) -> String {
    let mut line = stamp.begin_with("eviction", key);
    let (item, now) = (removal.item, removal.now);
    let fetched = if removal.was_read { "yes" } else { "no" };
    let ttl = match item.expiry().ms() {
        0 => -1,
        ms => (ms.saturating_sub(now.ms) / 1000) as i64,
    };
    let accessed = match item.accessed_s() {
        0 => -1,
        accessed_s => (now.ms / 1000).saturating_sub(accessed_s.into()) as i64,
    };
    let size = item.layout().value_len;
    let _ = writeln!(
        line,
        " fetch={fetched} ttl={ttl} la={accessed} clsid={CLASS} size={size}"
    );
    line
}

/// The end of a line about an item with a value of this many bytes, or about none, which has no
/// class.
fn end(line: &mut String, value_bytes: Option<usize>, client: i32) {
    let class = value_bytes.map_or(0, |_| CLASS);
    let size = value_bytes.unwrap_or(0);
    let _ = writeln!(line, " clsid={class} cfd={client} size={size}");
}

/// The line of a connection whose handshake failed, for this reason.
pub(super) fn of_handshake(stamp: Stamp, entry: &SocketEntry, reason: &str) -> String {
    let mut line = stamp.begin("conntlserr");
    let _ = writeln!(line, " fd={} msg={reason}", entry.fd);
    line
}

/// The line of a connection that was opened or, with the reason, closed.
pub(super) fn of_connection(
    stamp: Stamp,
    entry: &SocketEntry,
    closed: Option<CloseReason>,
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
