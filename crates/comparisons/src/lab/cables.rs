//! Two network namespaces with virtual cables between them.

use std::{
    io::ErrorKind,
    net::Ipv4Addr,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    process::Command,
    sync::Arc,
};

use anyhow::{Context, Result, bail, ensure};
use glimmer_measure::namespaces::{Namespace, Visit, ip};

use super::{Cable, Place, Receiver, offload, pass};

/// Cables have the addresses 10.211.N.1 and 10.211.N.2. Both namespaces are private, so these
/// collide with nothing.
const NETWORK: [u8; 2] = [10, 211];

/// A namespace for servers and one for clients. The thread that made them is in the latter until
/// this value is dropped; threads that it starts meanwhile are as well.
pub struct Namespaces {
    /// The thread's stay in the clients' namespace.
    _visit: Visit,
    servers: Arc<Namespace>,
    clients: Namespace,
    /// The programs at the clients' ends of cables.
    programs: Vec<OwnedFd>,
    /// Who receives for the servers' ends of cables that have a program.
    receiver: Receiver,
    cables: u8,
}

impl Namespaces {
    /// Whether this process may make them, and has what it needs; otherwise what is missing.
    ///
    /// # Errors
    ///
    /// If something is missing. The message says what, and how to have it.
    pub fn check() -> Result<()> {
        made().map(drop)?;
        let found = Command::new("ip").arg("-V").output();
        let is_here = found.is_ok_and(|output| output.status.success());
        ensure!(
            is_here,
            "the command `ip` is missing: apt-get install iproute2"
        );
        Ok(())
    }

    /// Makes both and moves the calling thread to the clients' namespace.
    pub fn new(receiver: Receiver) -> Result<Namespaces> {
        Namespaces::check()?;
        let (servers, clients) = (made()?, made()?);
        for namespace in [&servers, &clients] {
            namespace.inside(|| ip("link set lo up"))?;
        }
        Ok(Namespaces {
            _visit: clients.visit()?,
            servers: Arc::new(servers),
            clients,
            programs: Vec::new(),
            receiver,
            cables: 0,
        })
    }

    /// Lays a cable and returns the server's end.
    pub(super) fn place(&mut self, cable: Cable) -> Result<Place> {
        let number = self.cables;
        self.cables = number.checked_add(1).context("no more than 255 cables")?;
        let (server, client) = (format!("server{number}"), format!("client{number}"));
        let [high, low] = NETWORK;
        let address = |last| Ipv4Addr::new(high, low, number, last);
        let there = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            self.clients.as_fd().as_raw_fd()
        );
        let receiver = match cable {
            Cable::Plain => Receiver::Sender,
            Cable::ForPackets | Cable::ForGeneric | Cable::Empty => self.receiver,
        };
        let program = self.servers.inside(|| {
            ip(&format!(
                "link add {server} type veth peer name {client} netns {there}"
            ))?;
            ip(&format!("address add {}/24 dev {server}", address(1)))?;
            ip(&format!("link set {server} up"))?;
            match cable {
                Cable::Plain => Ok(None),
                Cable::ForPackets | Cable::ForGeneric => offload::tags_stay(&server).map(|()| None),
                Cable::Empty => pass::attach(&server).map(Some),
            }
        })?;
        self.programs.extend(program);
        ip(&format!("address add {}/24 dev {client}", address(2)))?;
        ip(&format!("link set {client} up"))?;
        if cable != Cable::Plain {
            offload::receive_coalescing_off(&client)?;
            offload::checksums_off(&client)?;
            if cable != Cable::ForGeneric {
                self.programs.push(pass::attach(&client)?);
            }
        }
        Ok(Place {
            ip: address(1).into(),
            interface: Some(server),
            receiver,
            namespace: Some(self.servers.clone()),
        })
    }
}

/// A new namespace.
fn made() -> Result<Namespace> {
    let made = Namespace::new();
    made.or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied => bail!(
            "network namespaces need root, or the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN; \
             --loopback needs neither"
        ),
        ErrorKind::InvalidInput | ErrorKind::Unsupported => {
            bail!("this kernel has no network namespaces (CONFIG_NET_NS); --loopback needs none")
        }
        _ => Err(error).context("making a network namespace"),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use rustix::thread::sched_getaffinity;

    use super::*;
    use crate::{lab::threads, skipped::can_run};

    fn here() -> std::path::PathBuf {
        std::fs::read_link("/proc/thread-self/ns/net").unwrap()
    }

    /// Client and server reach one another, whatever the cable, and the thread comes back.
    #[test]
    fn a_cable_joins_two_namespaces_that_vanish() {
        if !can_run(Namespaces::check()) {
            return;
        }
        let former = here();
        let mut namespaces = Namespaces::new(Receiver::Sender).unwrap();
        assert_ne!(here(), former);
        for cable in [Cable::Plain, Cable::ForPackets, Cable::Empty] {
            let place = namespaces.place(cable).unwrap();
            let servers = place.namespace.clone().unwrap();
            let (tcp, udp) = servers
                .inside(|| -> Result<_> {
                    let udp = UdpSocket::bind((place.ip, 7))?;
                    Ok((TcpListener::bind((place.ip, 7))?, udp))
                })
                .unwrap();
            let _stream = TcpStream::connect((place.ip, 7)).unwrap();
            tcp.accept().unwrap();
            let client = UdpSocket::bind("0.0.0.0:0").unwrap();
            client.send_to(b"request", (place.ip, 7)).unwrap();
            let mut bytes = [0; 16];
            let (length, from) = udp.recv_from(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"request");
            udp.send_to(b"reply", from).unwrap();
            assert_eq!(client.recv(&mut bytes).unwrap(), 5);
        }
        drop(namespaces);
        assert_eq!(here(), former);
        let interfaces = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        assert!(!interfaces.contains("client0"), "{interfaces}");
    }

    /// With a thread, the server's end of a cable with a program receives on the core that it is
    /// told. Without a program the kernel has no such threads.
    #[test]
    fn a_thread_receives_on_a_chosen_core() {
        if !can_run(Namespaces::check()) {
            return;
        }
        let mut namespaces = Namespaces::new(Receiver::Thread).unwrap();
        let plain = namespaces.place(Cable::Plain).unwrap();
        plain.receive_on(0).unwrap();
        let none = namespaces.place(Cable::ForPackets).unwrap();
        let refused = format!("{:#}", none.receive_on(0).unwrap_err());
        assert!(refused.contains("threaded"), "{refused}");

        let place = namespaces.place(Cable::Empty).unwrap();
        place.receive_on(0).unwrap();
        let threads = threads::of(place.interface.as_deref().unwrap()).unwrap();
        assert!(!threads.is_empty());
        for thread in threads {
            let cores = sched_getaffinity(Some(thread)).unwrap();
            assert!(cores.is_set(0) && cores.count() == 1);
        }
        let server = place.namespace.clone().unwrap();
        let server = server.inside(|| UdpSocket::bind((place.ip, 7))).unwrap();
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        client.send_to(b"request", (place.ip, 7)).unwrap();
        let mut bytes = [0; 16];
        assert_eq!(server.recv(&mut bytes).unwrap(), 7);
    }
}
