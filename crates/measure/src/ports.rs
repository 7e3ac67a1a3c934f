//! Ports for servers. Programs that start servers at the same time do not take the same ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::linux::net::SocketAddrExt as _,
    os::unix::net::{SocketAddr, UnixListener},
    sync::atomic::{AtomicU16, Ordering},
    sync::{Mutex, PoisonError},
};

/// The ports of the servers. The kernel gives none of them to the client's end of a connection,
/// since they lie below its range for that.
const PORTS: std::ops::Range<u16> = 21300..21900;

/// The ports that this process has taken, each with the name that says so to other processes. It
/// keeps them until it ends, because one server follows another.
static TAKEN: Mutex<BTreeMap<u16, UnixListener>> = Mutex::new(BTreeMap::new());

/// The first of this many ports in a row that are free for TCP and UDP. No port is returned twice
/// before all have been used, so that servers started at the same time do not collide.
///
/// # Errors
///
/// [`io::ErrorKind::AddrInUse`] if no such row of ports is free, and errors of reading which are.
pub fn free_ports(count: u16) -> io::Result<u16> {
    static HANDED_OUT: AtomicU16 = AtomicU16::new(0);
    let firsts = PORTS.len() as u16 + 1 - count;
    let served = ports_served()?;
    let is_free = |port| !served.contains(&port) && take(port);
    let next = |_| {
        let turn = HANDED_OUT.fetch_add(count, Ordering::Relaxed);
        PORTS.start + (std::process::id() as u16).wrapping_add(turn) % firsts
    };
    PORTS
        .map(next)
        .find(|first| (*first..first + count).all(is_free))
        .ok_or_else(|| {
            let what = format!("no {count} ports in a row are free in {PORTS:?}");
            io::Error::new(io::ErrorKind::AddrInUse, what)
        })
}

/// The ports at which a socket listens for TCP or receives over UDP, at whatever address.
///
/// No socket is bound to find out. A child that another thread forks meanwhile would have a copy of
/// it until it executes its program, and a caller that waits until its server accepts would take
/// the copy for the server.
fn ports_served() -> io::Result<BTreeSet<u16>> {
    let mut served = BTreeSet::new();
    for (table, listening) in [
        ("tcp", Some("0A")),
        ("tcp6", Some("0A")),
        ("udp", None),
        ("udp6", None),
    ] {
        let rows = match fs::read_to_string(format!("/proc/thread-self/net/{table}")) {
            Ok(rows) => rows,
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        served.extend(rows.lines().filter_map(|row| port_served(row, listening)));
    }
    Ok(served)
}

/// The local port in a row of a kernel's table of sockets, if the socket is in this state.
fn port_served(row: &str, state: Option<&str>) -> Option<u16> {
    let mut cells = row.split_ascii_whitespace().skip(1);
    let (_, port) = cells.next()?.rsplit_once(':')?;
    let is = cells.nth(1)?;
    let port = u16::from_str_radix(port, 16).ok()?;
    state.is_none_or(|state| state == is).then_some(port)
}

/// Takes a port, unless another process has taken it. Until a server listens, its port looks free
/// to everybody.
fn take(port: u16) -> bool {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if taken.contains_key(&port) {
        return true;
    }
    match claim(port) {
        Ok(claim) => taken.insert(port, claim).is_none(),
        Err(_) => false,
    }
}

/// A name that one process at a time can have, and that goes with it.
fn claim(port: u16) -> std::io::Result<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("glimmer-bench-port-{port}"))?;
    UnixListener::bind_addr(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn sockets_of_servers_are_seen_and_those_of_clients_are_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let served = ports_served().unwrap();
        assert!(served.contains(&listener.local_addr().unwrap().port()));
        assert!(served.contains(&receiver.local_addr().unwrap().port()));
        let row = "0: 0100007F:1F90 0200007F:D431 01 00000000:00000000 00:00000000";
        assert_eq!(port_served(row, Some("0A")), None);
        assert_eq!(port_served(row, None), Some(8080));
        assert_eq!(port_served("sl local_address rem_address st", None), None);
        drop(client);
    }

    #[test]
    fn a_port_that_another_process_has_taken_is_not_taken() {
        let (port, claim) = PORTS
            .rev()
            .find_map(|port| Some((port, claim(port).ok()?)))
            .expect("nobody has taken all");
        assert!(!take(port), "the claim stands for another process's");
        drop(claim);
        assert!(take(port));
        assert!(take(port), "it stays ours");
    }
}
