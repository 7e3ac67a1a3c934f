//! A client that waits for each answer.

use crate::error::{ConnectError, CountError, GetError, RemoveError, StoreError};
use crate::{Ask, Failure, Session, Settings, What};
use glimmer_proto::StoreMode;
use glimmer_proto::native::request::Change;
use glimmer_proto::native::{Reply, Status};
use glimmer_transport::Poller;
use glimmer_transport::udp::{Peer, Socket, Train, Trains};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// A value that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The value.
    pub value: Vec<u8>,
    /// The 32 bits that were stored with it.
    pub flags: u32,
    /// What [`Client::compare_and_swap`] compares; 0 if it was not asked for.
    pub cas: u64,
}

/// What came of a request, in bytes of its own.
type Answer = Result<(Status, Item, Option<u64>), Failure>;

/// A client of one server. Each call sends and waits; [`Client::get_many`] sends many requests together.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A server that was started with `glimmer serve --native-port 11300`.
/// let mut client = glimmer_client::Client::connect("127.0.0.1:11300")?;
/// client.put(b"greeting", b"hello", 0, 60)?;
/// assert_eq!(client.get(b"greeting")?.unwrap().value, b"hello");
/// # Ok(())
/// # }
/// ```
pub struct Client {
    session: Session<usize>,
    link: Link,
}

/// The socket, and what is received into.
struct Link {
    socket: Socket,
    poller: Poller,
    server: SocketAddr,
    trains: Trains,
    begun: Instant,
}

impl Client {
    /// Finds the server's directory at its native port.
    ///
    /// # Errors
    ///
    /// If the name has no address, there is no socket, or nobody answers.
    pub fn connect(server: impl ToSocketAddrs) -> Result<Client, ConnectError> {
        Client::connect_with(server, Settings::default())
    }

    /// [`Client::connect`] with settings of one's own.
    ///
    /// # Errors
    ///
    /// As [`Client::connect`].
    pub fn connect_with(
        server: impl ToSocketAddrs,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        let server = server.to_socket_addrs()?.next();
        let server = server.ok_or(ConnectError::NoAddress)?;
        let mut client = Client {
            session: Session::new(settings, rand::random()),
            link: Link::open(server)?,
        };
        let deadline_us = client.link.now_us() + settings.deadline_us;
        while client.session.directory().is_none() {
            if client.link.now_us() >= deadline_us {
                return Err(ConnectError::Silent);
            }
            client.link.turn(&mut client.session, &mut |_, _| {})?;
        }
        Ok(client)
    }

    /// Reads an item; none if there is none.
    ///
    /// # Errors
    ///
    /// See [`GetError`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Item>, GetError> {
        found(self.call::<GetError>(key, What::Get, false)?)
    }

    /// Reads an item with its CAS unique.
    ///
    /// # Errors
    ///
    /// See [`GetError`].
    pub fn get_for_swap(&mut self, key: &[u8]) -> Result<Option<Item>, GetError> {
        found(self.call::<GetError>(key, What::Get, true)?)
    }

    /// Reads many items with requests that leave together; an answer for each key, in their order.
    ///
    /// # Errors
    ///
    /// If the socket fails; what concerns one key is told in its place.
    pub fn get_many(&mut self, keys: &[&[u8]]) -> io::Result<Vec<Result<Option<Item>, GetError>>> {
        let asks = keys.iter().map(|&key| Ask {
            key,
            what: What::Get,
            shows_cas: false,
        });
        let answers = self.call_many(asks)?;
        Ok(answers
            .into_iter()
            .map(|answer| found(answer.map_err(GetError::from)?))
            .collect())
    }

    /// Stores an item. `expiry` is memcached's: 0 is never, up to 30 days is in seconds from now, and more is seconds since 1970.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn put(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> Result<(), StoreError> {
        self.store(key, StoreMode::Set, value, flags, expiry)
            .map(drop)
    }

    /// Stores an item if there is none. Returns whether it did.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn add(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> Result<bool, StoreError> {
        let status = self.store(key, StoreMode::Add, value, flags, expiry)?;
        Ok(status == Status::Stored)
    }

    /// Stores an item if there is one. Returns whether it did.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn replace(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> Result<bool, StoreError> {
        let status = self.store(key, StoreMode::Replace, value, flags, expiry)?;
        Ok(status == Status::Stored)
    }

    /// Stores an item if the one that is there has this CAS unique. Returns whether it did.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn compare_and_swap(
        &mut self,
        key: &[u8],
        cas: u64,
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> Result<bool, StoreError> {
        let status = self.store(key, StoreMode::Cas(cas), value, flags, expiry)?;
        Ok(status == Status::Stored)
    }

    /// Adds to a decimal number, wrapping at 2^64. Returns the result; none if there is no item.
    ///
    /// # Errors
    ///
    /// See [`CountError`].
    pub fn increment(&mut self, key: &[u8], delta: u64) -> Result<Option<u64>, CountError> {
        self.count(key, Change::Increment { delta })
    }

    /// Subtracts from a decimal number, stopping at zero. Returns the result; none if there is no item.
    ///
    /// # Errors
    ///
    /// See [`CountError`].
    pub fn decrement(&mut self, key: &[u8], delta: u64) -> Result<Option<u64>, CountError> {
        self.count(key, Change::Decrement { delta })
    }

    /// Removes an item. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// See [`RemoveError`].
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, RemoveError> {
        self.remove(key, Change::Delete)
    }

    /// Gives an item a new expiry time; see [`Client::put`]. Returns whether there is one.
    ///
    /// # Errors
    ///
    /// See [`RemoveError`].
    pub fn touch(&mut self, key: &[u8], expiry: u32) -> Result<bool, RemoveError> {
        self.remove(key, Change::Touch { expiry })
    }

    fn store(
        &mut self,
        key: &[u8],
        mode: StoreMode,
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> Result<Status, StoreError> {
        let change = Change::Store {
            mode,
            expiry,
            flags,
            value,
        };
        let answer = self.ask_one(key, What::Change(change), false)?;
        match answer {
            Err(Failure::TooLarge) | Ok((Status::TooLarge, ..)) => Err(StoreError::TooLarge),
            Err(failure) => Err(failure.into()),
            Ok((Status::OutOfMemory, ..)) => Err(StoreError::OutOfMemory),
            Ok((status @ (Status::Stored | Status::Exists | Status::NotFound), ..)) => Ok(status),
            Ok(_) => Err(StoreError::Protocol),
        }
    }

    fn count(&mut self, key: &[u8], change: Change<'_>) -> Result<Option<u64>, CountError> {
        match self.call::<CountError>(key, What::Change(change), false)? {
            (Status::Counted, _, Some(number)) => Ok(Some(number)),
            (Status::NotFound, ..) => Ok(None),
            (Status::NotANumber, ..) => Err(CountError::NotANumber),
            (Status::OutOfMemory, ..) => Err(CountError::OutOfMemory),
            _ => Err(CountError::Protocol),
        }
    }

    fn remove(&mut self, key: &[u8], change: Change<'_>) -> Result<bool, RemoveError> {
        match self.call::<RemoveError>(key, What::Change(change), false)? {
            (Status::Deleted | Status::Touched, ..) => Ok(true),
            (Status::NotFound, ..) => Ok(false),
            _ => Err(RemoveError::Protocol),
        }
    }

    fn call<E: From<Failure> + From<io::Error>>(
        &mut self,
        key: &[u8],
        what: What<'_>,
        shows_cas: bool,
    ) -> Result<(Status, Item, Option<u64>), E> {
        self.ask_one(key, what, shows_cas)?.map_err(E::from)
    }

    fn ask_one(&mut self, key: &[u8], what: What<'_>, shows_cas: bool) -> io::Result<Answer> {
        let ask = Ask {
            key,
            what,
            shows_cas,
        };
        let mut answers = self.call_many(std::iter::once(ask))?;
        Ok(answers.pop().expect("one request has one answer"))
    }

    fn call_many<'a>(&mut self, asks: impl Iterator<Item = Ask<'a>>) -> io::Result<Vec<Answer>> {
        let mut answers: Vec<Option<Answer>> = Vec::new();
        for (index, ask) in asks.enumerate() {
            let asked = self.session.ask(&ask, index, self.link.now_us());
            answers.push(asked.err().map(|(failure, _)| Err(failure)));
        }
        while self.session.under_way() > 0 {
            let on_answer = &mut |index: usize, reply: Result<Reply<'_>, Failure>| {
                answers[index] = Some(reply.map(owned));
            };
            self.link.turn(&mut self.session, on_answer)?;
        }
        let answers = answers.into_iter();
        Ok(answers
            .map(|answer| answer.unwrap_or(Err(Failure::Silent)))
            .collect())
    }
}

fn owned(reply: Reply<'_>) -> (Status, Item, Option<u64>) {
    let item = Item {
        value: reply.value.to_vec(),
        flags: reply.flags,
        cas: reply.cas.unwrap_or(0),
    };
    (reply.status, item, reply.number)
}

fn found((status, item, _): (Status, Item, Option<u64>)) -> Result<Option<Item>, GetError> {
    match status {
        Status::Found => Ok(Some(item)),
        Status::NotFound => Ok(None),
        _ => Err(GetError::Protocol),
    }
}

impl Link {
    fn open(server: SocketAddr) -> io::Result<Link> {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = Socket::bind_alone(SocketAddr::new(any, 0))?;
        let poller = Poller::new(1)?;
        poller.watch_level(&socket, 0)?;
        Ok(Link {
            socket,
            poller,
            server,
            trains: Trains::default(),
            begun: Instant::now(),
        })
    }

    fn now_us(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }

    /// Sends what is to be sent, waits until something arrives or is to be sent again, and takes in what has arrived.
    fn turn(
        &mut self,
        session: &mut Session<usize>,
        on_answer: &mut impl FnMut(usize, Result<Reply<'_>, Failure>),
    ) -> io::Result<()> {
        let now_us = self.now_us();
        session.expire(now_us, on_answer);
        let (socket, server) = (&self.socket, self.server);
        session.depart(now_us, &mut |port, bytes, stride| {
            let to = SocketAddr::new(server.ip(), port.unwrap_or(server.port()));
            let peer = &Peer::from(to);
            socket.send_trains(&[Train {
                peer,
                bytes,
                stride,
            }]);
        });
        let wakes_us = session.wakes_us().unwrap_or(now_us);
        let wait = Duration::from_micros(wakes_us.saturating_sub(self.now_us()));
        self.poller.wait(Some(wait))?;
        if self.poller.ready_count() > 0 {
            let received = self.socket.receive_trains(&mut self.trains);
            let now_us = self.now_us();
            for train in 0..received {
                let stride = self.trains.stride(train);
                for datagram in self.trains.bytes(train).chunks(stride) {
                    session.arrive(datagram, now_us, on_answer);
                }
            }
        }
        Ok(())
    }
}
