//! A few hot keys that are changed while they are read. One client reads over memcached's UDP
//! protocol and changes over TCP, so that it alone decides how reads and changes lie.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use glimmer_loadgen::driver::Address;
use glimmer_measure::machine::{self, CLIENT_CORE};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::subject::Running;

/// Keys that are read and changed.
const KEYS: usize = 4;
/// Length of a value.
const VALUE_BYTES: usize = 64;
/// Reads that are on their way at a time, at most.
const IN_FLIGHT: u64 = 16;
/// Reads before anything is changed, so that the keys are in the accelerator.
const READS_BEFORE: u64 = 2000;
/// After this time without a reply, the reads on their way are lost.
const PATIENCE: Duration = Duration::from_secs(2);
/// Length of the header of memcached's datagrams.
const HEADER_BYTES: usize = 8;

/// How reads and changes lie.
#[derive(Clone, Copy, Debug)]
pub struct Changing {
    /// Reads to a change.
    pub reads_per_change: u64,
    /// Changes in a row, which their reads follow.
    pub burst: u64,
    /// All reads, at least.
    pub reads: u64,
}

/// What came of them.
#[derive(Clone, Copy, Debug)]
pub struct Changed {
    /// The share of the reads that the accelerator answered; `None` without one.
    pub hit_share: Option<f64>,
    /// CPU time of the server per read and change, in microseconds.
    pub server_us: f64,
    /// Reads without a reply.
    pub lost: u64,
}

impl Running {
    /// Reads and changes a few keys.
    ///
    /// # Errors
    ///
    /// If the server refuses a change, or does not answer.
    pub fn change(&self, load: Changing, seed: u64) -> Result<Changed> {
        let change = || self.change_here(load, seed);
        let changed = machine::on_core(Some(CLIENT_CORE), change)?;
        changed.with_context(|| format!("changing the keys of {self}"))
    }

    fn change_here(&self, load: Changing, seed: u64) -> Result<Changed> {
        let Address::Tcp(address) = self.server.target().address else {
            bail!("there is no address for changes");
        };
        let mut client = Client::connect(address, seed)?;
        client.change_all()?;
        client.read(READS_BEFORE)?;
        let (begin, reads_before) = (self.server.cpu()?, self.reads()?);
        let (mut reads, mut changes) = (0, 0);
        client.lost = 0;
        while reads < load.reads {
            client.change(load.burst)?;
            client.read(load.burst * load.reads_per_change)?;
            changes += load.burst;
            reads += load.burst * load.reads_per_change;
        }
        let used = self.server.cpu()?.saturating_sub(begin);
        let hits = match (reads_before, self.reads()?) {
            (Some(before), Some(after)) => Some(after.accelerated - before.accelerated),
            _ => None,
        };
        Ok(Changed {
            hit_share: hits.map(|hits| hits as f64 / reads as f64),
            server_us: used.as_secs_f64() * 1e6 / (reads + changes) as f64,
            lost: client.lost,
        })
    }
}

struct Client {
    rng: SmallRng,
    udp: UdpSocket,
    tcp: TcpStream,
    lost: u64,
}

impl Client {
    fn connect(address: SocketAddr, seed: u64) -> Result<Client> {
        let udp = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        udp.connect(address)?;
        udp.set_read_timeout(Some(PATIENCE))?;
        let tcp = TcpStream::connect(address)?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(PATIENCE * 10))?;
        Ok(Client {
            rng: SmallRng::seed_from_u64(seed),
            udp,
            tcp,
            lost: 0,
        })
    }

    /// Reads keys at random.
    fn read(&mut self, mut reads: u64) -> Result<()> {
        let mut reply = [0; 2048];
        while reads > 0 {
            let now = reads.min(IN_FLIGHT);
            reads -= now;
            for _ in 0..now {
                let mut request = [0, 7, 0, 0, 0, 1, 0, 0].to_vec();
                write!(request, "get {}\r\n", name(self.rng.random_range(0..KEYS)))?;
                self.udp.send(&request)?;
            }
            for answered in 0..now {
                match self.udp.recv(&mut reply) {
                    Ok(bytes) if reply[..bytes].get(HEADER_BYTES) == Some(&b'V') => {}
                    Ok(_) => bail!("a read was answered without a value"),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        self.lost += now - answered;
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Changes keys at random, all at once.
    fn change(&mut self, changes: u64) -> Result<()> {
        let keys: Vec<usize> = (0..changes)
            .map(|_| self.rng.random_range(0..KEYS))
            .collect();
        self.store(&keys)
    }

    /// Changes every key.
    fn change_all(&mut self) -> Result<()> {
        self.store(&(0..KEYS).collect::<Vec<usize>>())
    }

    fn store(&mut self, keys: &[usize]) -> Result<()> {
        let mut requests = Vec::new();
        for &key in keys {
            write!(requests, "set {} 0 0 {VALUE_BYTES}\r\n", name(key))?;
            requests.extend([b'v'; VALUE_BYTES]);
            requests.extend(b"\r\n");
        }
        self.tcp.write_all(&requests)?;
        let expected = b"STORED\r\n".repeat(keys.len());
        let mut replies = vec![0; expected.len()];
        self.tcp.read_exact(&mut replies)?;
        anyhow::ensure!(replies == expected, "the server refused a change");
        Ok(())
    }
}

fn name(key: usize) -> String {
    format!("changing:{key}")
}
