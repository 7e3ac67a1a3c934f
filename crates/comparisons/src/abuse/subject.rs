//! The server under attack.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use super::{crowd, manners::PATIENCE};
use crate::servers::Server;
use glimmer_loadgen::driver::Address;
use glimmer_measure::machine;

/// The server under attack: started for the run, or already running.
pub struct Subject {
    name: String,
    address: SocketAddr,
    /// Its process, if it runs on this machine.
    pid: Option<u32>,
    limit_bytes: Option<u64>,
    connections_max: Option<u64>,
    native: Option<SocketAddr>,
}

impl Subject {
    /// A server that was started for the run.
    pub(super) fn started(server: &Server) -> Result<Subject> {
        let subject = Subject::at(&server.target().address, server.name().to_owned())?;
        Ok(Subject {
            pid: Some(server.pid()),
            ..subject
        })
    }

    /// A server that was already running.
    pub(super) fn running(address: &Address) -> Result<Subject> {
        Subject::at(address, address.to_string())
    }

    fn at(address: &Address, name: String) -> Result<Subject> {
        let &Address::Tcp(address) = address else {
            bail!("{address}: hostile clients need a TCP address");
        };
        let stats = |argument| {
            let mut client = TextClient::connect(address, PATIENCE)?;
            client.stats(argument)
        };
        let general = stats("").with_context(|| format!("asking {address} for stats"))?;
        let number = |name: &str| general.get(name)?.parse::<u64>().ok();
        let is_here = |pid: &u64| {
            let process = std::path::Path::new("/proc").join(pid.to_string());
            address.ip().is_loopback() && process.exists()
        };
        let native = stats(" native").unwrap_or_default();
        let is_first = |name: &str| name.starts_with("port:") && name.ends_with(":0");
        let native_port = native.iter().find(|(name, _)| is_first(name));
        let native_port = native_port.and_then(|(_, port)| port.parse().ok());
        Ok(Subject {
            name,
            address,
            pid: number("pid").filter(is_here).map(|pid| pid as u32),
            limit_bytes: number("limit_maxbytes"),
            connections_max: number("max_connections"),
            native: native_port.map(|port| SocketAddr::new(address.ip(), port)),
        })
    }

    /// The server's name in tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address of memcached's protocols over TCP, and over UDP if requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The native address, if there is one.
    pub fn native(&self) -> Option<SocketAddr> {
        self.native
    }

    /// Its `-m` in bytes, if it reports it.
    pub fn limit_bytes(&self) -> Option<u64> {
        self.limit_bytes
    }

    /// Its resident memory, if it runs on this machine.
    pub fn resident_bytes(&self) -> Option<u64> {
        let (now, _) = machine::resident_bytes(self.pid?).ok()?;
        Some(now)
    }

    /// The CPU time that it has used, if it runs on this machine.
    pub fn cpu(&self) -> Option<Duration> {
        machine::process_cpu(self.pid?).ok()
    }

    /// The statistics of `stats`, `stats items` and so on.
    pub fn stats(&self, argument: &str) -> Result<HashMap<String, String>> {
        TextClient::connect(self.address, PATIENCE)?.stats(&format!(" {argument}"))
    }

    /// As many of the wanted connections as the server allows in addition to the `spare` ones, and
    /// as this process has descriptors for.
    pub(super) fn connections_fitting(&self, wanted: usize, spare: usize) -> Result<usize> {
        let here = crowd::raise_descriptor_limit(wanted + spare)?;
        let there = self
            .connections_max
            .map_or(usize::MAX, |most| most as usize);
        let fitting = wanted.min(here.min(there).saturating_sub(spare));
        ensure!(fitting > 0, "no connection is left for a hostile client");
        Ok(fitting)
    }
}

/// A client of the text protocol with a time limit.
pub struct TextClient {
    stream: BufReader<TcpStream>,
}

impl TextClient {
    /// Connects. Connecting, sending and receiving take at most `patience` each.
    pub fn connect(address: SocketAddr, patience: Duration) -> Result<TextClient> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        // Thousands of visits must not leave thousands of ports in TIME_WAIT.
        crowd::reset_on_close(&stream)?;
        Ok(TextClient {
            stream: BufReader::new(stream),
        })
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.get_mut().write_all(bytes)?)
    }

    /// Reads the next line, without its line end.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        ensure!(line.ends_with("\r\n"), "the connection ended");
        line.truncate(line.len() - 2);
        Ok(line)
    }

    /// Reads the next bytes.
    pub fn bytes(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Stores a value.
    pub fn set(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.send(format!("set {key} 0 0 {}\r\n", value.len()).as_bytes())?;
        self.send(value)?;
        self.send(b"\r\n")?;
        let answer = self.line()?;
        ensure!(answer == "STORED", "set was answered {answer:?}");
        Ok(())
    }

    fn stats(&mut self, argument: &str) -> Result<HashMap<String, String>> {
        self.send(format!("stats{argument}\r\n").as_bytes())?;
        let mut figures = HashMap::new();
        loop {
            let line = self.line()?;
            let mut words = line.splitn(3, ' ');
            match (words.next(), words.next(), words.next()) {
                (Some("STAT"), Some(name), Some(value)) => {
                    figures.insert(name.to_owned(), value.to_owned());
                }
                (Some("END"), ..) => return Ok(figures),
                _ => bail!("stats{argument} was answered {line:?}"),
            }
        }
    }
}
