//! Two network namespaces without names.

use std::{
    fs::File,
    marker::PhantomData,
    net::Ipv4Addr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    process::Command,
    sync::Arc,
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::{
    io::Errno,
    thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe},
};

use super::{Cable, Place, Receiver, offload, pass};

/// The network namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";
/// Cables have the addresses 10.211.N.1 and 10.211.N.2. Both namespaces are private, so these
/// collide with nothing.
const NETWORK: [u8; 2] = [10, 211];

/// A namespace for servers and one for clients. The thread that made them is in the latter until
/// this value is dropped; threads that it starts meanwhile are as well.
pub struct Namespaces {
    /// Where the thread was before.
    home: OwnedFd,
    servers: Arc<OwnedFd>,
    clients: Arc<OwnedFd>,
    /// The programs at the clients' ends of cables.
    programs: Vec<OwnedFd>,
    /// Who receives for the servers' ends of cables that have a program.
    receiver: Receiver,
    cables: u8,
    /// Only the thread that made it can leave the namespace.
    of_one_thread: PhantomData<*const ()>,
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
        let home = File::open(OWN).context(OWN)?.into();
        let (servers, clients) = (Arc::new(made()?), Arc::new(made()?));
        for namespace in [&servers, &clients] {
            inside(namespace.as_fd(), || ip("link set lo up"))?;
        }
        enter(clients.as_fd())?;
        Ok(Namespaces {
            home,
            servers,
            clients,
            programs: Vec::new(),
            receiver,
            cables: 0,
            of_one_thread: PhantomData,
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
            self.clients.as_raw_fd()
        );
        let receiver = match cable {
            Cable::Plain => Receiver::Sender,
            Cable::ForPackets | Cable::ForGeneric | Cable::Empty => self.receiver,
        };
        let program = inside(self.servers.as_fd(), || {
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

impl Drop for Namespaces {
    fn drop(&mut self) {
        // It was possible to come, so it is possible to go back.
        if let Err(error) = enter(self.home.as_fd()) {
            eprintln!("cannot leave the clients' namespace: {error:#}");
        }
    }
}

/// A new namespace.
fn made() -> Result<OwnedFd> {
    let make = || {
        // SAFETY: a new network namespace changes no descriptor and no memory of this thread, which
        // ends here. Sockets stay in the namespace in which they were made.
        match unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
            Ok(()) => Ok(File::open(OWN).context(OWN)?.into()),
            Err(Errno::PERM) => bail!(
                "network namespaces need root, or the capabilities CAP_SYS_ADMIN and \
                 CAP_NET_ADMIN; --loopback needs neither"
            ),
            Err(Errno::INVAL | Errno::NOSYS) => bail!(
                "this kernel has no network namespaces (CONFIG_NET_NS); --loopback needs none"
            ),
            Err(error) => Err(error).context("making a network namespace"),
        }
    };
    on_a_thread(make)
}

/// Moves the calling thread to a namespace.
fn enter(namespace: BorrowedFd<'_>) -> Result<()> {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))
        .context("moving to a network namespace")
}

/// Runs `work` in a namespace.
pub(super) fn inside<T: Send>(
    namespace: BorrowedFd<'_>,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    on_a_thread(|| {
        enter(namespace)?;
        work()
    })
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(work);
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs `ip` with these arguments in the namespace of the calling thread.
fn ip(arguments: &str) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .context("running `ip`: apt-get install iproute2")?;
    ensure!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use rustix::thread::sched_getaffinity;

    use super::*;
    use crate::{lab::threads, skipped::can_run};

    fn here() -> std::path::PathBuf {
        std::fs::read_link(OWN).unwrap()
    }

    /// Client and server reach one another, whatever the cable, and the thread comes home.
    #[test]
    fn a_cable_joins_two_namespaces_that_vanish() {
        if !can_run(Namespaces::check()) {
            return;
        }
        let home = here();
        let mut namespaces = Namespaces::new(Receiver::Sender).unwrap();
        assert_ne!(here(), home);
        for cable in [Cable::Plain, Cable::ForPackets, Cable::Empty] {
            let place = namespaces.place(cable).unwrap();
            let servers = place.namespace.clone().unwrap();
            let (tcp, udp) = inside(servers.as_fd(), || {
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
        assert_eq!(here(), home);
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
        let server = inside(server.as_fd(), || Ok(UdpSocket::bind((place.ip, 7))?)).unwrap();
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        client.send_to(b"request", (place.ip, 7)).unwrap();
        let mut bytes = [0; 16];
        assert_eq!(server.recv(&mut bytes).unwrap(), 7);
    }
}
