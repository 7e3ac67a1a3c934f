//! A client with memcached's datagrams, which copes with what the network does as memcached's UDP
//! clients do: it tries reads again, and does not know what became of a write without a reply.
//!
//! The network does not repeat its requests, because the server would execute a repeated write
//! again at any later time, and the history would not show it. Instead the client itself sends some
//! datagrams twice, and notes the calls of both.

use super::stream::{Asked, Codec};
use super::{Client, Due, Notes, Script};
use crate::history::{Action, Answer};
use crate::scenario::ClientPlan;
use glimmer_transport::Poller;
use glimmer_transport::packet::{
    FaultInjector, Faults, Message, Microseconds, PacketDevice, PacketSender, RxBatch, Switch,
    SwitchPort,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// How long a client waits for a reply.
const REPLY_US_MAX: u64 = 150_000;
/// How often a read is asked.
const TRIES_MAX: usize = 5;
/// Requests of one datagram.
const REQUESTS_MAX: usize = 5;
/// A datagram of this many bytes takes no further request.
const DATAGRAM_BYTES_HIGH: usize = 20_000;
const HEADER_BYTES: usize = 8;

/// A client with memcached's datagrams.
pub struct DatagramClient<C> {
    codec: C,
    plan: ClientPlan,
    number: usize,
    script: Script,
    servers: Vec<SocketAddr>,
    device: FaultInjector<SwitchPort>,
    batch: RxBatch,
    /// Told of what the server sends.
    poller: Poller,
    /// By request id.
    under_way: BTreeMap<u16, Envelope>,
    last_id: u16,
    asked: u32,
    is_calm: bool,
    rng: SmallRng,
}

/// A datagram that has no reply yet.
struct Envelope {
    asked: Vec<Asked>,
    /// The requests, without the header.
    bytes: Vec<u8>,
    to: SocketAddr,
    tries: usize,
    has_copies: bool,
    /// When it is tried again, or given up.
    until_us: u64,
    /// The datagrams of the reply.
    parts: Vec<Option<Vec<u8>>>,
}

/// The network while nothing fails.
pub fn calm_faults() -> Faults {
    Faults {
        delay_us_min: 10,
        delay_us_max: 200,
        ..Faults::default()
    }
}

impl<C: Codec> DatagramClient<C> {
    /// A client of the server with these addresses, one for each worker.
    pub fn new(
        codec: C,
        number: usize,
        plan: &ClientPlan,
        (switch, servers): (&Switch, Vec<SocketAddr>),
        time: Microseconds,
    ) -> Self {
        let address = SocketAddr::from(([10, 0, 2, number as u8], 9));
        let port = switch.attach(address);
        let poller = Poller::local(1);
        let watched = poller.watch_level(port.wakeup(), 0);
        watched.expect("a port in this process has a signal");
        let sending = Faults {
            duplication: 0.0,
            ..plan.packets
        };
        DatagramClient {
            codec,
            plan: plan.clone(),
            number,
            script: Script::new(number, plan),
            servers,
            device: FaultInjector::new(port, (plan.packets, sending), plan.seed, time),
            batch: RxBatch::default(),
            poller,
            under_way: BTreeMap::new(),
            last_id: 0,
            asked: 0,
            is_calm: false,
            rng: SmallRng::seed_from_u64(plan.seed),
        }
    }

    fn may_ask(&self, now_us: u64) -> bool {
        self.under_way.len() < self.plan.pipeline
            && self.script.due_us().is_some_and(|due_us| due_us <= now_us)
    }

    /// Sends the next operations in one datagram.
    fn ask(&mut self, notes: &mut Notes) {
        let now_us = notes.now.us;
        let (mut asked, mut bytes) = (Vec::new(), Vec::new());
        let mut copies = Vec::new();
        let has_copies = !self.is_calm && self.rng.random_bool(self.plan.packets.duplication);
        let count = self.rng.random_range(1..=REQUESTS_MAX);
        let mut is_quiet = false;
        while asked.len() < count && bytes.len() < DATAGRAM_BYTES_HIGH && self.may_ask(now_us) {
            let Some(mut request) = self.script.take(now_us) else {
                break;
            };
            let has_usual = self.codec.usual_answer(&request.action).is_some();
            request.is_quiet = self.plan.is_quiet && has_usual && self.rng.random_bool(0.5);
            is_quiet = request.is_quiet;
            self.asked = self.asked.wrapping_add(1);
            self.codec.write(&request, self.asked, &mut bytes);
            if has_copies {
                copies.extend(request.begin(self.number, notes));
            }
            asked.push(Asked {
                calls: request.begin(self.number, notes),
                request: Some(request),
                number: self.asked,
            });
        }
        if is_quiet {
            self.asked = self.asked.wrapping_add(1);
            self.codec.write_fence(self.asked, &mut bytes);
            asked.push(Asked::fence(self.asked));
        }
        // What becomes of a copy is not known.
        let copies = copies.into_iter();
        copies.for_each(|call| notes.end(call, Answer::Unknown));
        let to = self.servers[self.rng.random_range(0..self.servers.len())];
        let envelope = Envelope {
            asked,
            bytes,
            to,
            tries: 0,
            has_copies,
            until_us: 0,
            parts: Vec::new(),
        };
        self.send(envelope, now_us);
    }

    /// Sends a datagram with an id that has not been used before.
    fn send(&mut self, mut envelope: Envelope, now_us: u64) {
        self.last_id = self.last_id.wrapping_add(1);
        let [high, low] = self.last_id.to_be_bytes();
        let header = [high, low, 0, 0, 0, 1, 0, 0];
        let datagram = [&header[..], &envelope.bytes].concat();
        envelope.tries += 1;
        envelope.until_us = now_us + REPLY_US_MAX;
        envelope.parts.clear();
        for _ in 0..1 + usize::from(envelope.has_copies && envelope.tries == 1) {
            let message = Message::alone(envelope.to, &datagram);
            self.device.send(&[message]);
        }
        self.under_way.insert(self.last_id, envelope);
    }

    fn receive(&mut self, notes: &mut Notes) -> Result<(), String> {
        let mut datagrams = Vec::new();
        while self.device.receive(&mut self.batch) > 0 {
            for index in 0..self.batch.count() {
                let bytes = self.batch.bytes(index);
                let bytes = bytes.chunks(self.batch.segment_bytes(index));
                datagrams.extend(bytes.map(<[u8]>::to_vec));
            }
        }
        for datagram in datagrams {
            notes.trace.add(&datagram);
            self.take(&datagram, notes)?;
        }
        Ok(())
    }

    /// Takes a datagram of a reply.
    fn take(&mut self, datagram: &[u8], notes: &mut Notes) -> Result<(), String> {
        let Some((header, payload)) = datagram.split_first_chunk::<HEADER_BYTES>() else {
            return Err(format!("a datagram of {} bytes", datagram.len()));
        };
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let [id, part, parts] = [0, 2, 4].map(word);
        if part >= parts || word(6) != 0 {
            return Err(format!("a datagram with the header {header:02x?}"));
        }
        if id > self.last_id {
            return Err(format!("a reply to request {id}, which no client sent"));
        }
        // A reply that comes too late, or twice.
        let Some(envelope) = self.under_way.get_mut(&id) else {
            return Ok(());
        };
        envelope.parts.resize(parts.into(), None);
        envelope.parts[usize::from(part)] = Some(payload.to_vec());
        if envelope.parts.iter().any(Option::is_none) {
            return Ok(());
        }
        let envelope = self.under_way.remove(&id).expect("it was found");
        self.finish(envelope, notes)
    }

    /// Reads a complete reply.
    fn finish(&mut self, envelope: Envelope, notes: &mut Notes) -> Result<(), String> {
        // Datagrams of two replies cannot be told apart.
        let is_mixed = envelope.has_copies && envelope.parts.len() > 1;
        let bytes: Vec<u8> = envelope.parts.into_iter().flatten().flatten().collect();
        let is_refused = bytes.ends_with(b"SERVER_ERROR reply too large for UDP\r\n");
        if (is_refused || is_mixed) && !self.is_calm {
            let asked = envelope.asked.into_iter();
            asked.for_each(|asked| asked.give_up(notes));
            return Ok(());
        }
        let mut at = 0;
        for asked in envelope.asked {
            let Some(reply) = asked.read(&self.codec, &bytes[at..])? else {
                let rest = bytes[at..].escape_ascii();
                return Err(format!("the rest of a reply is {rest}"));
            };
            at += reply.bytes;
            asked.end(reply, &mut self.script, notes);
        }
        match at == bytes.len() {
            true => Ok(()),
            false => Err(format!(
                "a reply goes on with {}",
                bytes[at..].escape_ascii()
            )),
        }
    }

    /// Tries reads again that have no reply, and gives up writes.
    fn expire(&mut self, notes: &mut Notes) -> Result<(), String> {
        let now_us = notes.now.us;
        while let Some(id) = self.overdue(now_us) {
            let envelope = self.under_way.remove(&id).expect("it was found");
            if self.is_calm {
                return Err(format!(
                    "request {id}, of {} bytes, is not answered",
                    envelope.bytes.len()
                ));
            }
            let reads = |asked: &Asked| {
                (asked.request.as_ref()).is_none_or(|request| request.action == Action::Get)
            };
            if envelope.tries < TRIES_MAX && envelope.asked.iter().all(reads) {
                self.send(envelope, now_us);
            } else {
                let asked = envelope.asked.into_iter();
                asked.for_each(|asked| asked.give_up(notes));
            }
        }
        Ok(())
    }

    fn overdue(&self, now_us: u64) -> Option<u16> {
        let mut under_way = self.under_way.iter();
        let overdue = under_way.find(|(_, envelope)| envelope.until_us <= now_us);
        overdue.map(|(id, _)| *id)
    }
}

impl<C: Codec> Client for DatagramClient<C> {
    fn due(&self, now_us: u64) -> Due {
        if self.may_ask(now_us) || self.poller.has_signals() {
            return Due::Now;
        }
        let may_ask = self.under_way.len() < self.plan.pipeline;
        let asks = self.script.due_us().filter(|_| may_ask);
        let waits = self.under_way.values().map(|envelope| envelope.until_us);
        let times = [asks, waits.min(), self.device.next_us()];
        match times.into_iter().flatten().min() {
            Some(at_us) if at_us <= now_us => Due::Now,
            Some(at_us) => Due::At(at_us),
            None => Due::Done,
        }
    }

    fn act(&mut self, notes: &mut Notes) -> Result<(), String> {
        if self.may_ask(notes.now.us) {
            self.ask(notes);
        }
        self.receive(notes)?;
        self.expire(notes)
    }

    fn reads_slowly(&self) -> bool {
        false
    }

    fn calm(&mut self, now_us: u64) {
        self.is_calm = true;
        self.device.set_faults(calm_faults());
        self.script.calm(now_us);
    }
}
