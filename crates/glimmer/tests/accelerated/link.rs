//! Two network namespaces, joined by a pair of virtual interfaces: the test is at one end, and the
//! server at the other. The namespaces have no names, so nothing of them is left when the test and
//! the server have ended, however they end.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use glimmer_measure::namespaces::wait_for_carrier;
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::bpf;
use crate::server::{PORT, Server, command};

/// The server's end of a link. The thread that made it is at the other end, and so are threads that
/// it starts.
pub struct Link {
    server: File,
    /// What lets the client's interface take packets that a program in the server's driver sends.
    _takes_packets: Option<[OwnedFd; 2]>,
}

/// What the driver of the server's interface can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// It runs XDP programs.
    Xdp,
    /// The same, and the client's interface drops what they send.
    SendsToNobody,
    /// The same with two queues at either end.
    #[allow(dead_code, reason = "the tests of transports need it")]
    TwoQueues,
    /// It does not: the interface is a second one on top of another.
    Plain,
}

/// ETHTOOL_SRXCSUM and others in linux/ethtool.h: offloads by their requests.
const SET_TX_CHECKSUMS: u32 = 0x17;
const GET_FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
/// ETH_FLAG_RXVLAN.
const RX_VLAN: u32 = 1 << 8;

impl Server {
    /// A server at the far end of a link, with an accelerator there.
    ///
    /// # Errors
    ///
    /// Its last line, if it ends instead.
    pub fn at(link: &Link, body: &str, arguments: &[&str]) -> Result<Server, String> {
        let mut server = Server::begin_at(link, body, arguments);
        server.wait().map(|()| server)
    }

    /// The same, without waiting until it serves.
    pub fn begin_at(link: &Link, body: &str, arguments: &[&str]) -> Server {
        Server::begin_at_port(link, body, PORT, arguments)
    }

    /// The same at another port.
    pub fn begin_at_port(link: &Link, body: &str, port: u16, arguments: &[&str]) -> Server {
        let port_text = port.to_string();
        let body = format!("{body}:{}", Link::SERVER_INTERFACE);
        let own = ["-p", &port_text, "-U", &port_text, "--accelerate", &body];
        let command = command(&[&own[..], arguments].concat());
        let udp = Link::SERVER_ADDRESSES.map(|ip| SocketAddr::new(ip, port));
        link.beyond(|| Server::spawn(command, udp.to_vec()))
    }
}

impl Link {
    pub const SERVER_INTERFACE: &str = "server";
    pub const CLIENT_INTERFACE: &str = "client";
    pub const SERVER_ADDRESSES: [IpAddr; 2] = [
        IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1)),
    ];
    /// An address of the server that is not the interface's.
    pub const OTHER_ADDRESS: &str = "10.78.0.1";

    /// Makes a link, and moves this thread to the client's end of it. `None` if this machine cannot
    /// do that; then it has printed why. In continuous integration that is a failure.
    pub fn make(driver: Driver) -> Option<Link> {
        match Link::try_make(driver) {
            Ok(link) => Some(link),
            Err(missing) => {
                skip(&missing);
                None
            }
        }
    }

    fn try_make(driver: Driver) -> Result<Link, String> {
        if !nix::unistd::geteuid().is_root() {
            return Err("root".into());
        }
        let own = |error: nix::Error| format!("network namespaces of its own ({error})");
        let server = std::thread::spawn(move || -> Result<File, String> {
            unshare(CloneFlags::CLONE_NEWNET).map_err(own)?;
            Ok(here())
        });
        let server = server.join().unwrap()?;
        unshare(CloneFlags::CLONE_NEWNET).map_err(own)?;
        let mut link = Link {
            server,
            _takes_packets: None,
        };
        let path = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            link.server.as_raw_fd()
        );
        let version = Command::new("ip").arg("-V").output();
        version.map_err(|_| "the program `ip` (the package iproute2)")?;
        let end = match driver {
            Driver::Plain => "below",
            _ => Link::SERVER_INTERFACE,
        };
        let queues = match driver {
            Driver::TwoQueues => " numrxqueues 2 numtxqueues 2",
            _ => "",
        };
        ip(&format!(
            "link add client{queues} type veth peer name {end}{queues} netns {path}"
        ));
        set_up("client", ["10.77.0.2/24", "fd77::2/64 nodad"]);
        link.beyond(|| {
            if driver == Driver::Plain {
                ip("link set below up");
                ip("link add link below name server type macvlan mode bridge");
            }
            set_up(Link::SERVER_INTERFACE, ["10.77.0.1/24", "fd77::1/64 nodad"]);
        });
        // Requests are to have complete checksums, as on a wire.
        ethtool(Link::CLIENT_INTERFACE, SET_TX_CHECKSUMS, 0);
        strip_vlan_tags(Link::CLIENT_INTERFACE, false);
        if !matches!(driver, Driver::SendsToNobody | Driver::TwoQueues) {
            link._takes_packets = bpf::pass_all("client").ok();
        }
        link.beyond(|| {
            ip(&format!("address add {}/32 dev lo", Link::OTHER_ADDRESS));
            link.set_vlan_stripping(false);
            wait_for_carrier(Link::SERVER_INTERFACE).unwrap();
        });
        wait_for_carrier("client").unwrap();
        Ok(link)
    }

    /// Whether the server's interface removes VLAN tags.
    pub fn set_vlan_stripping(&self, is_on: bool) {
        self.beyond(|| strip_vlan_tags(Link::SERVER_INTERFACE, is_on));
    }

    /// Does something in the server's namespace.
    pub fn beyond<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let enter_and_work = || {
            setns(&self.server, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(enter_and_work).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The numbers of the programs at the server's interface: XDP and tcx.
    pub fn programs(&self) -> Vec<u32> {
        self.beyond(|| {
            let shown = ip("-details link show server");
            let words: Vec<&str> = shown.split_whitespace().collect();
            // Such as `prog/xdp id 42`, with the mode at the end of the first word.
            let xdp = words
                .windows(3)
                .filter(|words| words[0].starts_with("prog/xdp"));
            let xdp = xdp.map(|words| words[2].parse().unwrap());
            let index = if_nametoindex(Link::SERVER_INTERFACE).unwrap();
            xdp.chain(bpf::tcx_programs(index)).collect()
        })
    }
}

fn set_up(name: &str, addresses: [&str; 2]) {
    for address in addresses {
        ip(&format!("address add {address} dev {name}"));
    }
    ip(&format!("link set {name} up"));
    ip("link set lo up");
}

/// What was started, unless this machine cannot run packet programs; then it prints why. Panics if
/// something else was in the way.
#[track_caller]
pub fn has<T>(started: Result<T, String>) -> Option<T> {
    match started {
        Ok(started) => Some(started),
        Err(line) if line.contains("capabilities") || line.contains("the kernel is too old") => {
            skip(&format!("packet programs: {line}"));
            None
        }
        Err(line) => panic!("{line}"),
    }
}

/// Says what a test lacks here.
pub fn skip(missing: &str) {
    println!("SKIPPED: this test needs {missing}");
    let is_required = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!is_required, "this test needs {missing}");
}

/// The network namespace of this thread.
fn here() -> File {
    File::open("/proc/thread-self/ns/net").unwrap()
}

/// Runs `ip` with these arguments.
pub fn ip(arguments: &str) -> String {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Has an interface remove VLAN tags, or not.
fn strip_vlan_tags(name: &str, is_on: bool) {
    let others = ethtool(name, GET_FLAGS, 0) & !RX_VLAN;
    let wanted = if is_on { others | RX_VLAN } else { others };
    ethtool(name, SET_FLAGS, wanted);
}

/// A request of the program ethtool, with a number there and back.
fn ethtool(name: &str, command: u32, data: u32) -> u32 {
    let flags = SockFlag::empty();
    let socket = socket(AddressFamily::Inet, SockType::Datagram, flags, None).unwrap();
    let mut value = [command, data];
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_data: value.as_mut_ptr().cast(),
        },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel reads the name and the two words, and writes to the second one; all of
    // them live until it returns.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    let error = std::io::Error::last_os_error();
    assert_eq!(done, 0, "{name}: request {command:#x}: {error}");
    value[1]
}
