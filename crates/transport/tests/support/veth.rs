//! A pair of interfaces in two network namespaces, which have no names and vanish with this
//! process, however it ends.
#![allow(unsafe_code, reason = "namespaces are entered by system calls")]
#![allow(dead_code, reason = "each test needs a part of it")]

use glimmer_measure::namespaces::wait_for_carrier;
use glimmer_transport::packet::{PacketDevice, PacketTransport};
use glimmer_transport::xdp::Xdp;
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Arc;

/// One end of a pair of interfaces.
pub struct End {
    namespace: File,
    transport: Arc<Xdp>,
    addresses: [&'static str; 2],
}

/// Both ends.
pub struct Veth([End; 2]);

/// Its name in either namespace.
pub const INTERFACE: &str = "veth0";

impl Veth {
    /// `None` where namespaces cannot be made; continuous integration can.
    pub fn new(is_generic: bool) -> Option<Veth> {
        Veth::made(is_generic, 1).map_or_else(left_out, Some)
    }

    /// The same with this many queues in either direction.
    pub fn with_queues(queues: u32) -> Option<Veth> {
        Veth::made(false, queues).map_or_else(left_out, Some)
    }

    fn made(is_generic: bool, queues: u32) -> Result<Veth, String> {
        let ends = [["10.7.0.1", "fd00::1"], ["10.7.0.2", "fd00::2"]];
        let [one, other] = ends.map(|addresses| {
            Ok::<_, String>(End {
                namespace: namespace()?,
                transport: Arc::new(Xdp::new(INTERFACE, None, is_generic)),
                addresses,
            })
        });
        let (one, other) = (one?, other?);
        let far = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            other.namespace.as_raw_fd()
        );
        one.run(|| {
            let queues = format!("mtu 3000 numrxqueues {queues} numtxqueues {queues}");
            ip(&format!(
                "link add veth0 {queues} type veth peer name veth1 {queues}"
            ))?;
            ip(&format!("link set veth1 netns {far}"))
        })?;
        other.run(|| ip("link set veth1 name veth0"))?;
        for end in [&one, &other] {
            end.run(|| {
                ip("link set lo up")?;
                ip(&format!("address add {}/24 dev veth0", end.addresses[0]))?;
                ip(&format!(
                    "address add {}/64 dev veth0 nodad",
                    end.addresses[1]
                ))?;
                keep_vlan_tags();
                ip("link set veth0 up")
            })?;
        }
        for end in [&one, &other] {
            end.run(|| wait_for_carrier(INTERFACE).map_err(|error| error.to_string()))?;
        }
        Ok(Veth([one, other]))
    }

    /// A device at each end.
    pub fn pair(&self, is_v4: bool) -> [Box<dyn PacketDevice>; 2] {
        self.0.each_ref().map(|end| end.open(is_v4))
    }

    /// The two ends.
    pub fn ends(&self) -> &[End; 2] {
        &self.0
    }
}

impl End {
    /// An address at this end, at any port.
    pub fn address(&self, is_v4: bool) -> SocketAddr {
        let ip = self.addresses[usize::from(!is_v4)];
        SocketAddr::new(ip.parse().unwrap(), 0)
    }

    fn open(&self, is_v4: bool) -> Box<dyn PacketDevice> {
        let address = self.address(is_v4);
        self.run(|| self.transport.open(address).unwrap())
    }

    /// The interface as a transport.
    pub fn transport(&self) -> &Arc<Xdp> {
        &self.transport
    }

    /// Runs something in a thread of the namespace.
    pub fn run<R: Send>(&self, run: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // SAFETY: it takes no pointer.
                let moved = unsafe { libc::setns(self.namespace.as_raw_fd(), libc::CLONE_NEWNET) };
                assert_eq!(moved, 0, "{}", std::io::Error::last_os_error());
                run()
            });
            thread.join().unwrap()
        })
    }
}

fn left_out(error: String) -> Option<Veth> {
    println!("SKIPPED: a pair of interfaces needs root and ip: {error}");
    assert!(std::env::var_os("CI").is_none(), "{error}");
    None
}

/// Has the interface leave the tags of virtual networks in frames.
fn keep_vlan_tags() {
    const ETHTOOL_SFLAGS: u32 = 0x26;
    ethtool([ETHTOOL_SFLAGS, 0]);
}

/// Has the kernel compute the checksums of what it sends by the interface.
pub fn compute_sums() {
    const ETHTOOL_STXCSUM: u32 = 0x17;
    ethtool([ETHTOOL_STXCSUM, 0]);
}

/// A request to the driver of the interface in this thread's namespace: a number and a value.
fn ethtool(mut value: [u32; 2]) {
    // SAFETY: all bytes zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(INTERFACE.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let socket = socket.as_raw_fd();
    // SAFETY: the request has the interface's name and a pointer to a structure of two words.
    let done = unsafe { libc::ioctl(socket, libc::SIOCETHTOOL as _, &raw mut request) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// A network namespace.
fn namespace() -> Result<File, String> {
    let made = || {
        // SAFETY: it takes no pointer.
        match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
            0 => File::open("/proc/thread-self/ns/net"),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    let made = std::thread::spawn(made).join().unwrap();
    made.map_err(|error| error.to_string())
}

/// Runs the program ip in this thread's namespace.
pub fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "ip {arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}
