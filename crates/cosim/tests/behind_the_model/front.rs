//! The circuit's software model before a server: a UDP port that answers binary GETs from the
//! model, and passes everything else on; and the link by which the server changes the model.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use glimmer_accel_device::device::{Device, DeviceCounters};
use glimmer_accel_device::link::Host;
use glimmer_accel_device::models::{Circuit, CircuitItem};
use tempfile::TempDir;

/// The name of the link's socket.
const SOCKET: &str = "circuit";
/// Slots of the model.
pub const SLOTS: usize = 256;
/// Bytes of the model's memory for values: so few that not all of the hammer's fit.
const VALUE_BYTES: usize = 2 << 10;
/// Bytes of the header of memcached's datagrams, and of the binary protocol's.
const HEADER_BYTES: [usize; 2] = [8, 24];

/// The model, and who changes it. Whoever has the lock is the circuit for that time.
struct Simulated {
    circuit: Circuit,
    /// The link of the server, if there is one.
    host: Option<Host>,
    counters: DeviceCounters,
}

/// See the module's text.
pub struct Front {
    folder: TempDir,
    /// Where clients send their requests.
    pub address: SocketAddr,
    simulated: Arc<Mutex<Simulated>>,
}

impl Front {
    /// A front whose server is there on UDP.
    pub fn before(server: SocketAddr) -> Front {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let simulated = Arc::new(Mutex::new(Simulated {
            circuit: Circuit::new(SLOTS, VALUE_BYTES),
            host: None,
            counters: DeviceCounters::default(),
        }));
        let front = Front {
            folder,
            address: socket.local_addr().unwrap(),
            simulated: simulated.clone(),
        };
        let changed = simulated.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(&changed, stream.unwrap());
            }
        });
        std::thread::spawn(move || pass_on(&simulated, &socket, server));
        front
    }

    /// The socket of the link.
    pub fn socket(&self) -> String {
        let path = self.folder.path().join(SOCKET);
        path.to_str().expect("a path in UTF-8").to_owned()
    }

    /// Ends the link, as a simulation does that stops.
    pub fn end_link(&self) {
        let mut simulated = self.simulated.lock().unwrap();
        assert!(simulated.host.take().is_some(), "there is a link");
    }
}

/// Carries out what one server wants.
fn serve(simulated: &Mutex<Simulated>, stream: UnixStream) {
    let circuit = Circuit::new(SLOTS, VALUE_BYTES);
    let host = Host::new(stream, circuit.capabilities()).unwrap();
    {
        let mut begin = simulated.lock().unwrap();
        (begin.circuit, begin.host) = (circuit, Some(host));
    }
    loop {
        std::thread::sleep(Duration::from_micros(100));
        let Simulated {
            circuit,
            host,
            counters,
        } = &mut *simulated.lock().unwrap();
        let Some(link) = host else { return };
        counters.cycles += 1;
        if !matches!(link.serve_device(circuit, || *counters), Ok(true)) {
            *host = None;
        }
    }
}

/// Answers what the model has, and has the server answer everything else.
fn pass_on(simulated: &Mutex<Simulated>, socket: &UdpSocket, server: SocketAddr) {
    let mut upstream: HashMap<SocketAddr, UdpSocket> = HashMap::new();
    let mut datagram = [0; 4096];
    loop {
        let (bytes, client) = socket.recv_from(&mut datagram).unwrap();
        let request = &datagram[..bytes];
        if let Some(key) = key_of(request) {
            let simulated = &mut *simulated.lock().unwrap();
            if let Some(item) = simulated.look_up(key) {
                // While nobody can change the model, as the circuit drains before it is changed.
                socket.send_to(&reply(request, &item), client).unwrap();
                continue;
            }
        }
        let passed = upstream.entry(client).or_insert_with(|| {
            let passed = UdpSocket::bind("127.0.0.1:0").unwrap();
            passed.connect(server).unwrap();
            let (replies, back) = (passed.try_clone().unwrap(), socket.try_clone().unwrap());
            std::thread::spawn(move || {
                let mut reply = [0; 4096];
                while let Ok(bytes) = replies.recv(&mut reply) {
                    let _ = back.send_to(&reply[..bytes], client);
                }
            });
            passed
        });
        let _ = passed.send(request);
    }
}

impl Simulated {
    fn look_up(&mut self, key: &[u8]) -> Option<CircuitItem> {
        let host = self.host.as_ref()?;
        if self.circuit.is_in_write_mode() {
            self.counters.bypassed += 1;
            return None;
        }
        let found = self.circuit.look_up_item(key);
        // Last of all: without a server that tells of changes, nothing may be answered.
        let found = found.filter(|_| host.is_there());
        match found {
            Some(_) => self.counters.hits += 1,
            None => self.counters.misses += 1,
        }
        found
    }
}

/// The key of a datagram with one binary GET.
fn key_of(datagram: &[u8]) -> Option<&[u8]> {
    let request = &datagram[HEADER_BYTES[0]..];
    let key = request.get(HEADER_BYTES[1]..)?;
    let is_get = request[..2] == [0x80, 0] && usize::from(request[3]) == key.len();
    is_get.then_some(key)
}

fn reply(request: &[u8], item: &CircuitItem) -> Vec<u8> {
    let opaque = &request[HEADER_BYTES[0] + 12..][..4];
    let body_bytes = 4 + item.value.len() as u32;
    [
        &request[..HEADER_BYTES[0]],
        &[0x81, 0, 0, 0, 4, 0, 0, 0],
        &body_bytes.to_be_bytes(),
        opaque,
        &item.cas.to_be_bytes(),
        &item.flags.to_be_bytes(),
        &item.value,
    ]
    .concat()
}
