//! The native protocol through the client library, so that a measurement shows what an application
//! would get.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use glimmer_base::limits::PACKET_BATCH_MAX;
use glimmer_client::{
    Ask as Request, Change, Direction, Directory, Failure, Reply as Answer, Session, Settings,
    Status, StoreMode, What,
};
use glimmer_transport::{
    Wakeup,
    packet::{Message, PacketDevice, PacketTransport, RxBatch, TxBatch},
    udp::UdpDevice,
};

use super::{Awaited, Link, Meaning, Poll, Reply};
use crate::workload::{Ask, Key, Then, Verb, value};

/// A request that has no answer for this long is lost. It is not retransmitted, because losses are
/// to be counted.
const LOST_AFTER_US: u64 = 200_000;
/// How long to wait for a server's directory.
const DIRECTORY_MAX: Duration = Duration::from_secs(5);
/// Receive calls before the loop continues with other work.
const RECEIVES_MAX: usize = 4;

/// The tag of a request in the session.
#[derive(Clone, Copy, Debug)]
struct Pending {
    key: Key,
    verb: Verb,
    then: Then,
    tag: u64,
    value_bytes: u32,
    ttl_s: u32,
    /// For one key of a read of several: the index in `groups`.
    group: Option<u32>,
}

/// How requests pass through the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// Each in its own datagram; datagrams of equal length as one segment batch.
    Segmented,
    /// Several in a datagram; datagrams of equal length as one segment batch.
    Packed,
    /// Each in its own datagram; each datagram separately.
    Plain,
    /// Like [`SendMode::Segmented`], but to all ports in turn.
    Undirected,
}

impl SendMode {
    fn requests_per_datagram(self) -> usize {
        match self {
            SendMode::Segmented | SendMode::Plain | SendMode::Undirected => 1,
            SendMode::Packed => Settings::default().requests_per_datagram,
        }
    }
}

/// A session with its packet device.
pub struct Native {
    session: Session<Pending>,
    device: Box<dyn PacketDevice>,
    server: SocketAddr,
    received: RxBatch,
    /// Whether datagrams of equal length are sent as one segment batch.
    segments: bool,
    begun: Instant,
    now_us: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    groups: Groups,
    /// Writes that were not sent, because the server accepts no item of such a length.
    too_large: Vec<Pending>,
}

/// The number of unanswered keys of each read of several keys.
#[derive(Default)]
struct Groups {
    left: Vec<u32>,
    free: Vec<u32>,
}

impl Groups {
    fn begin(&mut self, keys: u32) -> u32 {
        let group = self.free.pop().unwrap_or_else(|| {
            self.left.push(0);
            self.left.len() as u32 - 1
        });
        self.left[group as usize] = keys;
        group
    }

    /// Records an answered key. Returns whether it was the last one of its group.
    fn one_less(&mut self, group: u32) -> bool {
        let left = &mut self.left[group as usize];
        *left -= 1;
        let is_last = *left == 0;
        if is_last {
            self.free.push(group);
        }
        is_last
    }
}

impl Native {
    /// Opens a device of a transport, or a socket if there is none, and connects to a server's
    /// first native port.
    pub fn open(
        server: SocketAddr,
        way: SendMode,
        transport: Option<&dyn PacketTransport>,
    ) -> Result<Native> {
        let device = match transport {
            Some(transport) => transport.open_towards(server)?,
            None => {
                let any: SocketAddr = if server.is_ipv4() {
                    "0.0.0.0:0"
                } else {
                    "[::]:0"
                }
                .parse()?;
                let device = UdpDevice::bind(any).context("a UDP socket")?;
                match way {
                    SendMode::Plain => Box::new(device.without_coalescing()),
                    _ => Box::new(device) as Box<dyn PacketDevice>,
                }
            }
        };
        let settings = Settings {
            resends: false,
            deadline_us: LOST_AFTER_US,
            requests_per_datagram: way.requests_per_datagram(),
            round_robin: way == SendMode::Undirected,
            // Lost requests are counted, however many there are.
            away_after: 0,
            ..Settings::default()
        };
        let mut native = Native {
            session: Session::new(settings, rand::random()),
            device,
            server,
            received: RxBatch::default(),
            segments: way != SendMode::Plain,
            begun: Instant::now(),
            now_us: 0,
            key: Vec::new(),
            value: Vec::new(),
            groups: Groups::default(),
            too_large: Vec::new(),
        };
        let mut poll = Poll::new(std::slice::from_ref(&native))?;
        while native.session.directory().is_none() {
            if native.begun.elapsed() > DIRECTORY_MAX {
                bail!("no reply from {server}: is it a native port?");
            }
            native.send()?;
            let patience = Duration::from_millis(10);
            poll.ready(std::slice::from_ref(&native), patience, &mut Vec::new())?;
            native.receive(&mut |_| {})?;
        }
        let directs = |directory: &Directory| directory.direction == Direction::Server;
        if way == SendMode::Undirected && !native.session.directory().is_some_and(directs) {
            bail!("{server} hands no requests over: start it with --native-direction server");
        }
        Ok(native)
    }

    fn tick(&mut self) {
        self.now_us = self.begun.elapsed().as_micros() as u64;
    }
}

impl Awaited for Native {
    fn wakeup(&self) -> Wakeup<'_> {
        self.device.wakeup()
    }
}

impl Link for Native {
    const GATHERS: bool = true;

    fn ask(&mut self, ask: &Ask, tag: u64) {
        let group = (ask.keys.len() > 1).then(|| self.groups.begin(ask.keys.len() as u32));
        for &key in &ask.keys {
            self.key.clear();
            key.write(&mut self.key);
            // The length of the vector was stored a moment ago. A load of it together with the
            // pointer would wait for that store.
            let key_bytes = &self.key[..key.len()];
            let what = match ask.verb {
                Verb::Get => What::Get,
                Verb::Delete => What::Change(Change::Delete),
                Verb::Set => {
                    self.value.clear();
                    let bytes = ask.value_bytes as usize;
                    value::append(&mut self.value, bytes, key.number(), ask.version);
                    What::Change(Change::Store {
                        mode: StoreMode::Set,
                        expiry: ask.ttl_s.into(),
                        flags: 0,
                        value: &self.value,
                    })
                }
            };
            let request = Request {
                key: key_bytes,
                what,
                shows_cas: false,
            };
            let pending = Pending {
                key,
                verb: ask.verb,
                then: ask.then,
                tag,
                value_bytes: ask.value_bytes,
                ttl_s: ask.ttl_s,
                group,
            };
            match self.session.ask(&request, pending, self.now_us) {
                Ok(()) => {}
                Err((Failure::TooLarge, pending)) => self.too_large.push(pending),
                // Keys are valid, so the only other refusal is that too many requests are in
                // flight.
                Err((failure, _)) => panic!("{failure:?}"),
            }
        }
    }

    fn send(&mut self) -> Result<()> {
        self.tick();
        let Native {
            session,
            device,
            server,
            segments,
            ..
        } = self;
        session.transmit(self.now_us, &mut |port, bytes, segment_bytes| {
            let to = SocketAddr::new(server.ip(), port.unwrap_or(server.port()));
            let message = Message::segments(to, bytes, segment_bytes);
            // A datagram that the device does not accept is lost, as any datagram may be.
            let mut out = TxBatch::new(&mut **device);
            match *segments {
                true => out.push(message),
                false => message.apart().for_each(|datagram| out.push(datagram)),
            }
            out.finish();
        });
        Ok(())
    }

    fn is_blocked(&self) -> bool {
        false
    }

    fn has_unsent(&self) -> bool {
        !self.too_large.is_empty()
    }

    fn receive(&mut self, on_step: &mut impl FnMut(Reply)) -> Result<()> {
        for pending in self.too_large.drain(..) {
            on_step(step(&mut self.groups, &pending, Meaning::Unsent, 0));
        }
        for _ in 0..RECEIVES_MAX {
            let count = self.device.receive(&mut self.received);
            if count == 0 {
                break;
            }
            self.tick();
            let Native {
                session,
                received,
                groups,
                now_us,
                ..
            } = self;
            let mut wrong = None;
            for batch in 0..count {
                let arrived_ns = received.arrived_ns(batch);
                for datagram in received.bytes(batch).chunks(received.segment_bytes(batch)) {
                    session.receive(datagram, *now_us, &mut |pending, answer| match understand(
                        &pending, answer,
                    ) {
                        Ok(meaning) => on_step(step(groups, &pending, meaning, arrived_ns)),
                        Err(error) => wrong = Some(error),
                    });
                }
            }
            if let Some(error) = wrong {
                return Err(error);
            }
            if count < PACKET_BATCH_MAX {
                break;
            }
        }
        // Refused requests go to another core, and long replies continue.
        if self.session.has_outgoing() {
            self.send()?;
        }
        Ok(())
    }

    fn expire(&mut self, _tag: u64, on_step: &mut impl FnMut(Reply)) {
        self.tick();
        let groups = &mut self.groups;
        (self.session).expire(self.now_us, &mut |pending, _| {
            on_step(step(groups, &pending, Meaning::Lost, 0));
        });
    }

    fn under_way(&self) -> usize {
        self.session.under_way() + self.too_large.len()
    }

    fn note_arrivals(&mut self) -> Result<()> {
        let reported = self.device.report_arrivals();
        reported.context("receive timestamps (SO_TIMESTAMPNS) need sockets")?;
        self.received.keep_arrivals();
        Ok(())
    }
}

/// The step that a reply is. Inlined, so that it is not copied.
#[inline(always)]
fn step(groups: &mut Groups, pending: &Pending, meaning: Meaning, arrived_ns: u64) -> Reply {
    let Pending {
        key,
        verb,
        then,
        tag,
        value_bytes,
        ttl_s,
        group,
    } = *pending;
    Reply {
        tag,
        verb,
        key,
        meaning,
        last: group.is_none_or(|group| groups.one_less(group)),
        then,
        value_bytes,
        item_bytes: match (verb, meaning) {
            (Verb::Get, Meaning::Miss) if group.is_none() => 0,
            (Verb::Delete, _) => 0,
            _ => value_bytes,
        },
        arrived_ns,
        ttl_s,
    }
}

#[inline]
fn understand(pending: &Pending, answer: Result<&Answer<'_>, Failure>) -> Result<Meaning> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(Failure::Overloaded | Failure::TooManyWriters) => return Ok(Meaning::Refused),
        Err(Failure::TooLarge) => return Ok(Meaning::TooLarge),
        Err(Failure::Silent | Failure::Forgotten) => return Ok(Meaning::Lost),
        Err(failure) => bail!("a request of key {:x}: {failure:?}", pending.key.number()),
    };
    Ok(match (pending.verb, answer.status) {
        (Verb::Get, Status::Found) => {
            if value::verify(answer.value, pending.key.number()).is_none() {
                bail!("a wrong value of key {:x}", pending.key.number());
            }
            Meaning::Hit
        }
        (Verb::Get | Verb::Delete, Status::NotFound) => Meaning::Miss,
        (Verb::Set, Status::Stored) => Meaning::Done,
        (Verb::Set, Status::OutOfMemory) => Meaning::Refused,
        (Verb::Set, Status::TooLarge) => Meaning::TooLarge,
        (Verb::Delete, Status::Deleted) => Meaning::Hit,
        (verb, status) => bail!("{verb:?} was answered {status:?}"),
    })
}
