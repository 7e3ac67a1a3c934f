//! Two network namespaces, the simulated circuit between them, and servers.

use crate::server_program::server_beside;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;

pub const HOST: &str = "10.9.0.2";
pub const PORT: u16 = 11211;
const HOST_MAC: &str = "02:00:00:00:00:02";
const COSIM: &str = env!("CARGO_BIN_EXE_glimmer-cosim");

/// A process that ends with the test.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Kills it, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct Setup {
    _circuit: Process,
    folder: TempDir,
    names: [String; 2],
}

impl Setup {
    /// `None` with a note if something is missing. Where CI is true, that fails the test.
    pub fn new(width: &str) -> Option<Setup> {
        if let Err(missing) = needs() {
            let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!in_ci, "{missing}");
            eprintln!("SKIPPED: {missing}");
            return None;
        }
        static SETUPS: AtomicUsize = AtomicUsize::new(0);
        let number = SETUPS.fetch_add(1, Relaxed);
        let name = |side: &str| format!("gl{side}{}-{number}", std::process::id());
        let names = [name("c"), name("s")];
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("circuit.sock");
        // The namespaces go with `names`, also if the rest fails.
        let mut child = Command::new(COSIM)
            .args(["--socket", socket.to_str().unwrap(), "--width", width])
            .args(["--network", &names[0], "--server", &names[1]])
            .args([
                "--host-mac",
                HOST_MAC,
                "--host",
                HOST,
                "--from",
                "10.9.0.0/24",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let output = child.stdout.take().unwrap();
        let circuit = Process(child);
        BufReader::new(output).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        let setup = Setup {
            _circuit: circuit,
            folder,
            names,
        };
        for (name, address) in setup.names.iter().zip(["10.9.0.1/24", "10.9.0.2/24"]) {
            ip(&format!("netns add {name}"));
            ip(&format!("link set {name} netns {name}"));
            ip(&format!("-n {name} address add {address} dev {name}"));
        }
        let [client, server] = &setup.names;
        ip(&format!("-n {server} link set {server} address {HOST_MAC}"));
        ip(&format!("-n {client} link set {client} up"));
        ip(&format!("-n {server} link set {server} up"));
        ip(&format!("-n {server} link set lo up"));
        Some(setup)
    }

    /// Starts a server behind the circuit.
    pub fn server(&self) -> Process {
        let socket = self.folder.path().join("circuit.sock");
        let accelerate = format!("rtl:{}", socket.to_str().unwrap());
        let mut child = Command::new("ip")
            .args(["netns", "exec", &self.names[1], server_beside(COSIM)])
            .args([
                "serve", "-u", "root", "-l", HOST, "-p", "11211", "-U", "11211",
            ])
            .args(["-t", "1", "-m", "64", "--accelerate", &accelerate])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while self.in_client(|| TcpStream::connect((HOST, PORT))).is_err() {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the server ends at its start: {status}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Process(child)
    }

    /// Does something on a thread in the clients' namespace. Sockets stay where they were made.
    pub fn in_client<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let namespace = File::open(format!("/run/netns/{}", self.names[0])).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), kind).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

/// What the test needs, or what is missing.
fn needs() -> Result<(), String> {
    glimmer_accel_rtl::tools::Tools::find()?;
    if !rustix::process::geteuid().is_root() {
        return Err("network namespaces and TAP devices take root".into());
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return Err("ip is missing; install it with: apt-get install iproute2".into());
    }
    if File::open("/dev/net/tun").is_err() {
        return Err("/dev/net/tun cannot be opened; the kernel needs TUN/TAP".into());
    }
    Ok(())
}

fn ip(words: &str) {
    let status = Command::new("ip").args(words.split_whitespace()).status();
    assert!(status.unwrap().success(), "ip {words}");
}
