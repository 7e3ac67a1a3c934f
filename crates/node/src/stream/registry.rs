//! Who is connected, for `stats conns`: every socket with its two ends and what it is about.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, OnceLock};

use glimmer_base::sync::{AtomicU32, AtomicU64, Mutex, Ordering, lock};
use glimmer_transport::stream::{ByteStream, StreamListener};
use glimmer_transport::{Endpoint, Wakeup};

use crate::tenants::addresses::Seat;
use crate::tenants::meter::Meter;

/// What a socket is about, in memcached's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Connections come in.
    Listening,
    /// Nothing complete has arrived.
    Read,
    /// Its requests are being executed.
    Parse,
    /// A value has begun to arrive.
    Value,
    /// What happens is shown to it.
    Watch,
}

const ACTIVITIES: [(Activity, &str); 5] = [
    (Activity::Listening, "conn_listening"),
    (Activity::Read, "conn_read"),
    (Activity::Parse, "conn_parse_cmd"),
    (Activity::Value, "conn_nread"),
    (Activity::Watch, "conn_watch"),
];

/// One socket, as its worker keeps it and others see it.
pub(crate) struct SocketEntry {
    pub fd: RawFd,
    is_udp: bool,
    local: Option<Endpoint>,
    pub peer: Option<Endpoint>,
    /// The name in the client's certificate, if it has shown one.
    client: OnceLock<Box<str>>,
    /// Its place among the connections of its address, while addresses are limited.
    seat: OnceLock<Seat>,
    /// An index into [`ACTIVITIES`].
    activity: AtomicU32,
    /// When something last arrived, in milliseconds since the epoch.
    active_ms: AtomicU64,
}

/// One socket, as `stats conns` shows it.
#[derive(Clone, Debug)]
pub struct SocketView {
    /// The socket's descriptor, or a number from 2^30 on if it has none.
    pub fd: RawFd,
    /// Whether datagrams come by it.
    pub is_udp: bool,
    /// The client's end, or the end that is listened on.
    pub address: String,
    /// For a connection, this server's end.
    pub listen_address: Option<String>,
    /// The name in the client's certificate, if it has shown one that was verified.
    pub client: Option<String>,
    /// What it is about, in memcached's words.
    pub activity: &'static str,
    /// When something last arrived, in milliseconds since the server's epoch.
    pub active_ms: u64,
}

/// Connections by the listener that they came in at (`tcp:PORT` or `unix`) and by what they are
/// about, in memcached's words.
pub type ConnectionCounts = BTreeMap<(String, &'static str), u64>;

/// The number of the first source without a descriptor: no process has as many descriptors.
const UNNUMBERED: RawFd = 1 << 30;

/// All sockets, by descriptor.
#[derive(Default)]
pub(crate) struct ConnectionRegistry {
    sockets: Mutex<BTreeMap<RawFd, Arc<SocketEntry>>>,
    /// Sources without a descriptor so far.
    unnumbered: AtomicU32,
}

impl SocketEntry {
    /// A client's connection, under its [number](ConnectionRegistry::number).
    pub fn connected(stream: &dyn ByteStream, number: RawFd, now_ms: u64) -> SocketEntry {
        SocketEntry {
            peer: stream.peer(),
            ..SocketEntry::bound(number, stream.local(), Activity::Read, now_ms)
        }
    }

    /// Where connections come in, under its number.
    pub fn listening(listener: &dyn StreamListener, number: RawFd, now_ms: u64) -> SocketEntry {
        SocketEntry::bound(number, listener.local(), Activity::Listening, now_ms)
    }

    /// A packet device, under its number.
    pub fn packets(number: RawFd, address: Option<SocketAddr>, now_ms: u64) -> SocketEntry {
        SocketEntry {
            is_udp: true,
            ..SocketEntry::bound(number, address.map(Endpoint::Ip), Activity::Read, now_ms)
        }
    }

    fn bound(
        number: RawFd,
        local: Option<Endpoint>,
        activity: Activity,
        now_ms: u64,
    ) -> SocketEntry {
        SocketEntry {
            fd: number,
            is_udp: false,
            local,
            peer: None,
            client: OnceLock::new(),
            seat: OnceLock::new(),
            activity: AtomicU32::new(activity as u32),
            active_ms: AtomicU64::new(now_ms),
        }
    }

    /// Notes that something arrived, and is being executed.
    #[inline]
    pub fn note_input(&self, now_ms: u64) {
        self.active_ms.store(now_ms, Ordering::Relaxed);
        self.note(Activity::Parse);
    }

    /// Notes the name in the client's certificate.
    pub fn note_client(&self, name: Option<&str>) {
        if let Some(name) = name {
            // A client shows its certificate once.
            let _ = self.client.set(name.into());
        }
    }

    /// The address of the client, if it has one.
    pub fn peer_ip(&self) -> Option<IpAddr> {
        match self.peer {
            Some(Endpoint::Ip(address)) => Some(address.ip()),
            _ => None,
        }
    }

    /// Gives it a place among the connections of its address.
    pub fn seat(&self, seat: Seat) {
        // It gets one only if it has none.
        let _ = self.seat.set(seat);
    }

    /// The account of its address, if addresses are limited.
    pub fn meter(&self) -> Option<&Arc<Meter>> {
        self.seat.get().map(|seat| &seat.0)
    }

    /// Notes what it is about now.
    #[inline]
    pub fn note(&self, activity: Activity) {
        self.activity.store(activity as u32, Ordering::Relaxed);
    }

    /// Which way its bytes take: `local` (a Unix socket), `tcp` or `udp`.
    pub fn transport(&self) -> &'static str {
        match &self.local {
            Some(Endpoint::Unix(_)) => "local",
            _ if self.is_udp => "udp",
            _ => "tcp",
        }
    }

    fn view(&self) -> SocketView {
        let activity = ACTIVITIES[self.activity.load(Ordering::Relaxed) as usize];
        let is_open = self.is_udp || activity.0 == Activity::Listening;
        let address = if is_open { &self.local } else { &self.peer };
        SocketView {
            fd: self.fd,
            is_udp: self.is_udp,
            address: self.name(address),
            listen_address: (!is_open).then(|| self.name(&self.local)),
            client: self.client.get().map(ToString::to_string),
            activity: activity.1,
            active_ms: self.active_ms.load(Ordering::Relaxed),
        }
    }

    fn name(&self, endpoint: &Option<Endpoint>) -> String {
        let transport = if self.is_udp { "udp" } else { "tcp" };
        match endpoint {
            Some(Endpoint::Ip(address)) if address.is_ipv6() => format!("{transport}6:{address}"),
            Some(Endpoint::Ip(address)) => format!("{transport}:{address}"),
            // A client's end has no path; 1 is the number of the family.
            Some(Endpoint::Unix(None)) => "unix:<AF 1>".into(),
            Some(named @ Endpoint::Unix(Some(_))) => named.to_string(),
            None => "<closed>".into(),
        }
    }
}

impl ConnectionRegistry {
    /// What a source is listed under: its descriptor, or a number that no descriptor has.
    pub fn number(&self, source: Wakeup<'_>) -> RawFd {
        let descriptor = source.descriptor().map(|fd| fd.as_raw_fd());
        descriptor.unwrap_or_else(|| {
            UNNUMBERED + self.unnumbered.fetch_add(1, Ordering::Relaxed) as RawFd
        })
    }

    pub fn add(&self, entry: Arc<SocketEntry>) {
        lock(&self.sockets).insert(entry.fd, entry);
    }

    /// Takes a socket off, before its descriptor is closed.
    pub fn remove(&self, fd: RawFd) {
        lock(&self.sockets).remove(&fd);
    }

    /// At most `most` sockets in the order of their descriptors, from descriptor `from` on.
    pub fn view(&self, from: RawFd, most: usize) -> Vec<SocketView> {
        let sockets = lock(&self.sockets);
        let sockets = sockets.range(from..).take(most);
        sockets.map(|(_, entry)| entry.view()).collect()
    }

    /// Adds to `counts` those of at most `most` sockets that are connections, from descriptor
    /// `from` on. Returns where to go on.
    pub fn count(&self, from: RawFd, most: usize, counts: &mut ConnectionCounts) -> Option<RawFd> {
        let sockets = lock(&self.sockets);
        let mut next = None;
        for (&fd, entry) in sockets.range(from..).take(most) {
            next = Some(fd + 1);
            let activity = ACTIVITIES[entry.activity.load(Ordering::Relaxed) as usize];
            if entry.is_udp || activity.0 == Activity::Listening {
                continue;
            }
            let listener = match &entry.local {
                Some(Endpoint::Ip(address)) => format!("tcp:{}", address.port()),
                _ => "unix".to_owned(),
            };
            *counts.entry((listener, activity.1)).or_default() += 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_stand_at_their_own_numbers() {
        for (number, (activity, _)) in ACTIVITIES.iter().enumerate() {
            assert_eq!(*activity as usize, number);
        }
    }
}
