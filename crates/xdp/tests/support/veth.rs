//! Two network namespaces with a pair of interfaces between them, for as long as a test runs.

use glimmer_measure::namespaces::wait_for_carrier;
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub const SERVER_INTERFACE: &str = "gserver";
pub const CLIENT_INTERFACE: &str = "gclient";

/// See the module's text.
pub struct Veth {
    pub server: String,
    pub client: String,
}

impl Veth {
    /// `None` where namespaces cannot be made; continuous integration can.
    pub fn new() -> Option<Veth> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Relaxed);
        let name = |side| format!("glimmer-{}-{number}-{side}", std::process::id());
        let veth = Veth {
            server: name("s"),
            client: name("c"),
        };
        let made = ip(&["netns", "add", &veth.server]).and_then(|()| veth.connect());
        if let Err(error) = made {
            println!("SKIPPED: network namespaces: {error}");
            assert!(std::env::var_os("CI").is_none(), "{error}");
            return None;
        }
        veth.in_client(|| switch_off(CLIENT_INTERFACE, ETHTOOL_SGRO));
        Some(veth)
    }

    fn connect(&self) -> Result<(), String> {
        let (server, client) = (&self.server, &self.client);
        ip(&["netns", "add", client])?;
        let pair = ["link", "add", SERVER_INTERFACE, "netns", server, "address"];
        let peer = [
            "type",
            "veth",
            "peer",
            "name",
            CLIENT_INTERFACE,
            "netns",
            client,
        ];
        let hardware = ["02:00:00:00:00:02"];
        ip(&[&pair[..], &hardware, &peer].concat())?;
        for (namespace, interface, host) in [
            (server, SERVER_INTERFACE, "2"),
            (client, CLIENT_INTERFACE, "1"),
        ] {
            let v4 = format!("10.7.0.{host}/24");
            let v6 = format!("fd00::{host}/64");
            ip(&["-n", namespace, "address", "add", &v4, "dev", interface])?;
            ip(&[
                "-n", namespace, "address", "add", &v6, "dev", interface, "nodad",
            ])?;
            ip(&["-n", namespace, "link", "set", interface, "up"])?;
        }
        let carries = |interface| wait_for_carrier(interface).map_err(|error| error.to_string());
        self.in_server(|| carries(SERVER_INTERFACE))?;
        self.in_client(|| carries(CLIENT_INTERFACE))
    }

    /// Runs something in a thread of the server's namespace.
    pub fn in_server<R: Send>(&self, run: impl FnOnce() -> R + Send) -> R {
        in_namespace(&self.server, run)
    }

    /// Runs something in a thread of the client's namespace.
    pub fn in_client<R: Send>(&self, run: impl FnOnce() -> R + Send) -> R {
        in_namespace(&self.client, run)
    }

    /// Removes the pair of interfaces.
    pub fn remove(&self) {
        ip(&["-n", &self.server, "link", "delete", SERVER_INTERFACE]).unwrap();
    }

    /// Leaves it to hardware, which does not exist, to compute the client's checksums, or not.
    pub fn compute_checksums(&self) {
        self.in_client(|| switch_off(CLIENT_INTERFACE, ETHTOOL_STXCSUM));
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        for namespace in [&self.server, &self.client] {
            let _ = ip(&["netns", "delete", namespace]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {}: {said}", arguments.join(" ")))
}

fn in_namespace<R: Send>(name: &str, run: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let run = move || {
            enter(name);
            run()
        };
        scope.spawn(run).join().unwrap()
    })
}

/// Moves this thread to a namespace.
pub fn enter(name: &str) {
    let namespace = File::open(format!("/run/netns/{name}")).unwrap();
    // SAFETY: it takes no pointer.
    let moved = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(moved, 0, "{}", std::io::Error::last_os_error());
}

/// The index of an interface in this thread's namespace.
pub fn index(interface: &str) -> u32 {
    let name = std::ffi::CString::new(interface).unwrap();
    // SAFETY: the name ends with a zero byte.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

pub fn address(is_v4: bool, host: u8) -> IpAddr {
    let text = if is_v4 {
        format!("10.7.0.{host}")
    } else {
        format!("fd00::{host}")
    };
    text.parse().unwrap()
}

const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_SGRO: u32 = 0x2C;

/// Switches a feature of an interface in this thread's namespace off.
fn switch_off(interface: &str, feature: u32) {
    const SIOCETHTOOL: u64 = 0x8946;
    let mut value: [u32; 2] = [feature, 0];
    // SAFETY: all bytes zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    // SAFETY: the request has the interface's name and a pointer to a structure of two words.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}
