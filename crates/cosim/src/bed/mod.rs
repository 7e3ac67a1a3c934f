//! A network of two hosts with the simulated circuit between them: clients in one network
//! namespace, a server in another one.

mod server;

use crate::machine::{Settings, Waveform};
use crate::network::Network;
use crate::tap::Tap;
use anyhow::{Context, Result, bail};
use glimmer_accel_device::device::DeviceCounters;
use glimmer_accel_rtl::tools::Tools;
use glimmer_measure::namespaces::{Namespace, Visit, ip};
pub use server::Server;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

/// The server's address. Both namespaces are private, so it collides with nothing.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// Its port.
pub const PORT: u16 = 11211;
/// The clients' address.
const CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const NETWORK_BITS: u8 = 24;
const HOST_MAC: u64 = 0x02_00_00_00_00_02;
const HOST_MAC_TEXT: &str = "02:00:00:00:00:02";

/// The circuit of a bed.
#[derive(Clone, Debug)]
pub struct Circuit {
    /// Bytes in a beat: 1 or 8.
    pub width: usize,
    /// Number of slots.
    pub slots: usize,
    /// The seed of memory's latencies, and of what registers hold before their reset.
    pub seed: u64,
    /// What to draw of it.
    pub waveform: Option<Waveform>,
}

impl Circuit {
    /// One of this width with 1,024 slots.
    pub fn of_width(width: usize) -> Circuit {
        Circuit {
            width,
            slots: 1024,
            seed: 1,
            waveform: None,
        }
    }
}

/// See the module's text. The thread that has made it is among the clients until it is dropped, as
/// are the threads and processes that it starts.
#[derive(Debug)]
pub struct Bed {
    circuit: Circuit,
    servers: Namespace,
    _visit: Visit,
    _clients: Namespace,
    folder: tempfile::TempDir,
    counters: Arc<Mutex<DeviceCounters>>,
    is_over: Arc<AtomicBool>,
    simulation: Option<JoinHandle<Result<()>>>,
}

impl Bed {
    /// What is missing on this machine, if anything.
    ///
    /// # Errors
    ///
    /// What is missing, and how to get it.
    pub fn check() -> Result<Tools> {
        let tools = Tools::find().map_err(anyhow::Error::msg)?;
        if !rustix::process::geteuid().is_root() {
            bail!("network namespaces and TAP devices need root");
        }
        let namespace = Namespace::new()?;
        namespace.inside(|| ip("link set lo up"))?;
        std::fs::File::open("/dev/net/tun").context("/dev/net/tun; the kernel needs TUN/TAP")?;
        Ok(tools)
    }

    /// Sets it up and begins to simulate. There is no server yet.
    ///
    /// # Errors
    ///
    /// If the machine does not allow it.
    pub fn new(tools: &Tools, circuit: Circuit) -> Result<Bed> {
        let (clients, servers) = (Namespace::new()?, Namespace::new()?);
        let mac = clients.inside(|| -> Result<_> {
            let tap = Tap::new("circuit")?;
            ip(&format!("address add {CLIENTS}/{NETWORK_BITS} dev circuit"))?;
            ip("link set circuit up")?;
            Ok(tap)
        })?;
        let cpu = servers.inside(|| -> Result<_> {
            let tap = Tap::new("behind")?;
            ip(&format!("link set behind address {HOST_MAC_TEXT}"))?;
            ip(&format!("address add {ADDRESS}/{NETWORK_BITS} dev behind"))?;
            ip("link set behind up")?;
            ip("link set lo up")?;
            Ok(tap)
        })?;
        let settings = Settings {
            width: circuit.width,
            slots: circuit.slots,
            value_bytes: 512 << 10,
            host_mac: HOST_MAC,
            host: ADDRESS,
            port: PORT,
            sources: CLIENTS,
            source_bits: NETWORK_BITS,
        };
        let folder = tempfile::tempdir()?;
        let listener = UnixListener::bind(socket_in(folder.path()))?;
        let (tools, seed) = (tools.clone(), circuit.seed);
        let waveform = circuit.waveform.clone();
        let counters = Arc::new(Mutex::new(DeviceCounters::default()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (told, stop) = (counters.clone(), is_over.clone());
        let (ready, is_ready) = mpsc::channel();
        let simulation = std::thread::spawn(move || {
            let taps = [mac, cpu];
            let mut network = Network::new(&tools, settings, seed, taps, listener, waveform)?;
            // A server does not wait as long as the circuit takes to be built.
            let _ = ready.send(());
            while !stop.load(Relaxed) {
                network.turn()?;
                *told.lock().expect("not poisoned") = network.counters();
            }
            Ok(())
        });
        if is_ready.recv().is_err() {
            return Err(ended(simulation).expect_err("it ended before it began"));
        }
        let visit = clients.visit()?;
        Ok(Bed {
            circuit,
            servers,
            _visit: visit,
            _clients: clients,
            folder,
            counters,
            is_over,
            simulation: Some(simulation),
        })
    }

    /// The circuit.
    pub fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// The folder with the circuit's socket.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Starts Glimmer behind the circuit.
    ///
    /// # Errors
    ///
    /// See [`Server::glimmer`].
    pub fn glimmer(&self, program: &Path) -> Result<Server> {
        let socket = socket_in(self.folder.path());
        Server::glimmer(program, self.circuit.slots, &socket, &self.servers)
    }

    /// Starts memcached behind the circuit.
    ///
    /// # Errors
    ///
    /// See [`Server::memcached`].
    pub fn memcached(&self) -> Result<Server> {
        Server::memcached(&self.servers)
    }

    /// What the circuit has counted, up to its last reset.
    pub fn counters(&self) -> DeviceCounters {
        *self.counters.lock().expect("not poisoned")
    }

    /// Ends the simulation.
    ///
    /// # Errors
    ///
    /// Why it ended before.
    pub fn close(mut self) -> Result<()> {
        self.stop()
    }

    fn stop(&mut self) -> Result<()> {
        self.is_over.store(true, Relaxed);
        self.simulation.take().map_or(Ok(()), ended)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("cosim: {error:#}");
        }
    }
}

/// How a simulation has ended.
fn ended(simulation: JoinHandle<Result<()>>) -> Result<()> {
    let ended = simulation.join();
    ended.unwrap_or_else(|_| bail!("the simulation panicked"))
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("circuit.sock")
}
