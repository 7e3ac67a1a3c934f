//! An unlimited number of native clients. Each is a new writer whose mutations the server must
//! remember, so that none is executed twice.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use glimmer_client::{Change, Client, Settings};
use glimmer_dispatch::PartitionMap;
use glimmer_proto::native::{
    Directory, Kind as Datagram, Reach, Record, Reply, ReplyHeader, RequestHeader, Status,
    directory, request::Action,
};

use super::{Case, PATIENCE, Scenario, Subject, Visitor};
use crate::servers::Kind;

/// Addresses of hostile clients in the scenario with many addresses.
const ADDRESSES: usize = 200;
/// Clients of one address that write before their answers are read.
const WRITES: usize = 16;
/// Addresses between two pauses. More would flood the server with datagrams, which is a different
/// attack.
const ADDRESSES_AT_ONCE: usize = 4;
/// Length of a pause.
const PAUSE: Duration = Duration::from_millis(2);
/// Visits after which a transient well-behaved client is replaced by a new one.
const VISITS: u64 = 50;
/// How long to wait for an answer.
const WAIT: Duration = Duration::from_millis(200);

/// Writers from one address or from many.
pub(super) struct NativeWriters {
    pub name: &'static str,
    pub about: &'static str,
    pub addresses: usize,
}

/// From one address.
pub(super) const ONE_ADDRESS: NativeWriters = NativeWriters {
    name: "native-writers",
    about: "native clients without end write from one address",
    addresses: 1,
};

/// From many addresses.
pub(super) const MANY_ADDRESSES: NativeWriters = NativeWriters {
    name: "native-writers-many",
    about: "native clients without end write from 200 addresses",
    addresses: ADDRESSES,
};

impl Scenario for NativeWriters {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn cases(&self, _: bool) -> Vec<Case> {
        vec![Case {
            connections: self.addresses,
            ..Case::default()
        }]
    }

    fn suits(&self, kind: Kind) -> bool {
        kind == Kind::Glimmer
    }

    fn glimmer_arguments(&self, _: &Case) -> Vec<String> {
        native_arguments()
    }

    /// Well-behaved clients with an even number stay. Those with an odd number become a new client
    /// after some visits, and the server must find room for it.
    fn visitor(&self, subject: &Subject, number: usize) -> Result<Box<dyn Visitor>> {
        Ok(Box::new(NativeVisitor {
            server: native_of(subject)?,
            key: format!("glimmer-abuse-native-{number}"),
            visits: 0,
            visits_max: match number.is_multiple_of(2) {
                true => u64::MAX,
                false => VISITS,
            },
            client: None,
        }))
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let server = native_of(subject)?;
        ensure!(
            server.ip().is_loopback(),
            "hostile native clients take other loopback addresses than the well-behaved ones"
        );
        let mut writers = (0..case.connections)
            .map(|number| Writers::open(server, number))
            .collect::<Result<Vec<_>>>()?;
        while !stop.load(Relaxed) {
            for some in writers.chunks_mut(ADDRESSES_AT_ONCE) {
                some.iter_mut().try_for_each(Writers::write)?;
                std::thread::sleep(PAUSE);
                if stop.load(Relaxed) {
                    break;
                }
            }
        }
        let sum = |of: fn(&Writers) -> u64| writers.iter().map(of).sum::<u64>();
        Ok(format!(
            "{} writers served, {} refused",
            sum(|writers| writers.served),
            sum(|writers| writers.refused)
        ))
    }
}

/// Arguments that make our server serve native clients on free ports.
pub(super) fn native_arguments() -> Vec<String> {
    vec!["--native-port".to_owned(), "-1".to_owned()]
}

/// The native address of the server.
pub(super) fn native_of(subject: &Subject) -> Result<SocketAddr> {
    subject
        .native()
        .context("the server was not started with --native-port")
}

/// A well-behaved native client: it stores a small item and reads it back.
struct NativeVisitor {
    server: SocketAddr,
    key: String,
    visits: u64,
    /// Visits after which it becomes a new client.
    visits_max: u64,
    client: Option<Client>,
}

impl Visitor for NativeVisitor {
    fn visit(&mut self) -> Result<()> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => Client::connect_with(
                self.server,
                Settings {
                    deadline_us: PATIENCE.as_micros() as u64,
                    ..Settings::default()
                },
            )?,
        };
        self.visits += 1;
        let (key, value) = (self.key.as_bytes(), format!("{:>100}", self.visits));
        client.put(key, value.as_bytes(), 0, 60)?;
        // A cache may evict an item that was just stored, but must not change it.
        let item = client.get(key)?;
        ensure!(
            item.is_none_or(|item| item.value == value.as_bytes()),
            "another value than was stored"
        );
        if !self.visits.is_multiple_of(self.visits_max) {
            self.client = Some(client);
        }
        Ok(())
    }
}

/// A hostile address. Every datagram from it claims to be from a different client.
pub(super) struct Hostile {
    socket: UdpSocket,
    server: SocketAddr,
    pub directory: Directory,
    pub version: u32,
}

impl Hostile {
    /// Takes an address that well-behaved clients do not use, and requests its token.
    pub fn open(server: SocketAddr, number: usize) -> Result<Hostile> {
        let [high, low] = ((number + 2) as u16).to_be_bytes();
        let here = Ipv4Addr::new(127, 77, high, low);
        let socket = UdpSocket::bind((here, 0)).with_context(|| format!("binding {here}"))?;
        socket.set_read_timeout(Some(WAIT))?;
        let header = RequestHeader {
            kind: Datagram::Directory,
            count: 0,
            directory: 0,
            sequence: 0,
            timestamp: 0,
            client: 0,
            token: 0,
        };
        let mut question = [0; directory::REPLY_BYTES_MAX];
        question[..RequestHeader::BYTES].copy_from_slice(&header.bytes());
        for _ in 0..PATIENCE.as_millis() / WAIT.as_millis() {
            socket.send_to(&question, server)?;
            let mut bytes = [0; 2048];
            let Ok(received) = socket.recv(&mut bytes) else {
                continue;
            };
            let answer = ReplyHeader::read(&bytes[..received])
                .zip(Directory::read(&bytes[ReplyHeader::BYTES..received]));
            if let Some((header, directory)) = answer {
                socket.set_nonblocking(true)?;
                return Ok(Hostile {
                    socket,
                    server,
                    directory,
                    version: header.directory,
                });
            }
        }
        bail!("{server} does not tell its directory");
    }

    /// Sends one request from a client with this number to the core that owns the key. Returns
    /// false if the socket did not accept it.
    pub fn send(&self, client: u64, token: u64, key: &[u8], action: Action<'_>) -> Result<bool> {
        let keyhash = self.directory.seed.keyhash(key);
        let header = RequestHeader {
            kind: Datagram::Requests,
            count: 1,
            directory: self.version,
            sequence: client as u32,
            timestamp: 0,
            client,
            token,
        };
        let record = Record {
            action,
            keyhash,
            key,
            shows_cas: false,
        };
        let mut bytes = header.bytes().to_vec();
        record.write(&mut bytes);
        let Directory {
            partitions, ports, ..
        } = &self.directory;
        let owner = PartitionMap::new(usize::from(*partitions), ports.len()).owner(keyhash);
        let port = ports[owner];
        match self.socket.send_to(&bytes, (self.server.ip(), port)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error).context("sending"),
        }
    }

    /// Receives the answers that have arrived so far.
    pub fn receive(&self, mut take: impl FnMut(Datagram, Option<Status>)) {
        let mut bytes = [0; 2048];
        while let Ok(received) = self.socket.recv(&mut bytes) {
            if let Some(header) = ReplyHeader::read(&bytes[..received]) {
                let reply = Reply::read(&bytes[ReplyHeader::BYTES..received]);
                take(header.kind, reply.map(|(reply, _)| reply.status));
            }
        }
    }
}

/// Clients of one hostile address, each of which writes once.
struct Writers {
    hostile: Hostile,
    next: u64,
    served: u64,
    refused: u64,
}

impl Writers {
    fn open(server: SocketAddr, number: usize) -> Result<Writers> {
        Ok(Writers {
            hostile: Hostile::open(server, number)?,
            next: (number as u64) << 40,
            served: 0,
            refused: 0,
        })
    }

    fn write(&mut self) -> Result<()> {
        for _ in 0..WRITES {
            self.next += 1;
            let key = format!("glimmer-abuse-writer-{}", self.next % 4096);
            // The client does not say how many mutations it has in flight, so the server must
            // remember as many as it can.
            let action = Action::Mutate {
                mutation: 1,
                reach: Reach::UNKNOWN,
                change: Change::Delete,
            };
            let token = self.hostile.directory.token;
            if !(self.hostile).send(self.next, token, key.as_bytes(), action)? {
                break;
            }
        }
        let (served, refused) = (&mut self.served, &mut self.refused);
        self.hostile.receive(|_, status| match status {
            Some(status) if status.is_executed() => *served += 1,
            Some(_) => *refused += 1,
            None => {}
        });
        Ok(())
    }
}
