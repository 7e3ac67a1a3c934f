//! Ports for servers. Programs that start servers at the same time do not take the same ones.

use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::linux::net::SocketAddrExt as _,
    os::unix::net::{SocketAddr, UnixListener},
    sync::atomic::{AtomicU16, Ordering},
    sync::{Mutex, PoisonError},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

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
/// If there are none.
pub fn free_ports(count: u16) -> io::Result<u16> {
    static HANDED_OUT: AtomicU16 = AtomicU16::new(0);
    let firsts = PORTS.len() as u16 + 1 - count;
    let is_free = |port| {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        take(port) && has_no_listener(address).is_ok() && UdpSocket::bind(address).is_ok()
    };
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

/// Fails if a socket listens for TCP at the address. The check's own socket does not listen: if
/// another thread starts a program meanwhile, the child has a copy of the socket until it executes
/// the program. A caller that waits until its server accepts would take that copy for the server.
fn has_no_listener(address: SocketAddrV4) -> io::Result<()> {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    // Earlier connections of another server may linger at the port.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(bind(&socket, &address)?)
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
    use std::net;

    #[test]
    fn a_port_with_a_listener_is_not_free() {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let net::SocketAddr::V4(address) = listener.local_addr().unwrap() else {
            unreachable!("it was bound to such an address");
        };
        assert!(has_no_listener(address).is_err());
        drop(listener);
        assert!(has_no_listener(address).is_ok());
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
