//! A client with a connection.

use super::{Client, Due, Notes, Request, Script};
use crate::history::{Action, Answer, Value};
use crate::scenario::ClientPlan;
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, Received, Sent};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How a protocol writes requests and reads replies.
pub trait Codec {
    /// Appends a request, which is this number of its connection.
    fn write(&self, request: &Request, number: u32, out: &mut Vec<u8>);

    /// Reads the reply to a request, if it is complete: how many bytes it has, and what it says of
    /// each key. Fails if it is no reply to this request.
    fn read(&self, request: &Request, number: u32, bytes: &[u8]) -> Result<Option<Reply>, String>;
}

/// A reply.
pub struct Reply {
    /// Its length.
    pub bytes: usize,
    /// What it says of each key of the request, in order.
    pub answers: Vec<Answer>,
    /// The unique of each value that was read.
    pub uniques: Vec<u64>,
}

/// A client with a connection, which it makes again when it is reset.
pub struct StreamClient<C> {
    codec: C,
    plan: ClientPlan,
    number: usize,
    script: Script,
    listeners: Vec<LocalListener>,
    stream: Option<LocalStream>,
    out: Vec<u8>,
    incoming: Vec<u8>,
    /// Requests without an answer: their numbers, and the calls of their keys.
    under_way: VecDeque<(Request, u32, Vec<usize>)>,
    asked: u32,
    /// When it takes the next bytes, if it takes them slowly.
    reads_us: u64,
    rng: SmallRng,
}

impl<C: Codec> StreamClient<C> {
    /// A client that has not connected yet.
    pub fn new(codec: C, number: usize, plan: &ClientPlan, listeners: Vec<LocalListener>) -> Self {
        StreamClient {
            codec,
            plan: plan.clone(),
            number,
            script: Script::new(number, plan),
            listeners,
            stream: None,
            out: Vec::new(),
            incoming: Vec::new(),
            under_way: VecDeque::new(),
            asked: 0,
            reads_us: 0,
            rng: SmallRng::seed_from_u64(plan.seed),
        }
    }

    fn may_ask(&self, now_us: u64) -> bool {
        self.under_way.len() < self.plan.pipeline
            && self.script.due_us().is_some_and(|due_us| due_us <= now_us)
    }

    fn ask(&mut self, notes: &mut Notes) {
        if self.stream.is_none() {
            let listener = &self.listeners[self.rng.random_range(0..self.listeners.len())];
            let port = 10_000 + self.number as u16;
            let from = SocketAddr::from(([10, 0, 0, 2], port));
            self.stream = Some(listener.connect(from, self.plan.stream, self.rng.random()));
        }
        let Some(request) = self.script.take(notes.now.us) else {
            return;
        };
        let is_flush = request.action == Action::Flush;
        let nameless = is_flush.then(String::new);
        let names = request.keys.iter().cloned().chain(nameless);
        let calls = names.map(|key| notes.begin(self.number, key, request.action.clone()));
        let calls = calls.collect();
        self.asked = self.asked.wrapping_add(1);
        self.codec.write(&request, self.asked, &mut self.out);
        self.under_way.push_back((request, self.asked, calls));
    }

    fn send(&mut self, notes: &mut Notes) -> Result<(), String> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        match stream.send(&self.out) {
            Sent::All => self.out.clear(),
            Sent::Part(count) => _ = self.out.drain(..count),
            Sent::Failed => return self.lose(notes),
        }
        Ok(())
    }

    fn receive(&mut self, notes: &mut Notes) -> Result<(), String> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        let room = match self.plan.read_pause_us {
            0 => 4096,
            pause_us => {
                self.reads_us = notes.now.us + self.rng.random_range(0..=pause_us);
                self.rng.random_range(1..500)
            }
        };
        let mut received = Vec::with_capacity(room);
        let outcome = stream.receive(&mut received);
        notes.trace.add(&received);
        self.incoming.extend_from_slice(&received);
        self.read(notes)?;
        match outcome {
            Received::Ended => self.lose(notes),
            _ => Ok(()),
        }
    }

    fn read(&mut self, notes: &mut Notes) -> Result<(), String> {
        let mut at = 0;
        while at < self.incoming.len() {
            let Some((request, number, _)) = self.under_way.front() else {
                let rest = self.incoming[at..].escape_ascii();
                return Err(format!("a reply that nobody asked for: {rest}"));
            };
            let Some(reply) = self.codec.read(request, *number, &self.incoming[at..])? else {
                break;
            };
            let (request, _, calls) = self.under_way.pop_front().expect("there is a first");
            for (index, (call, answer)) in calls.into_iter().zip(reply.answers).enumerate() {
                if let (Answer::Value(Some(value)), Some(&unique)) =
                    (&answer, reply.uniques.get(index))
                {
                    self.script.see(&request.keys[index], value, unique);
                }
                notes.end(call, answer);
            }
            at += reply.bytes;
        }
        self.incoming.drain(..at);
        Ok(())
    }

    /// The connection has failed: what is under way has no answer.
    fn lose(&mut self, notes: &mut Notes) -> Result<(), String> {
        if self.plan.stream.reset == 0.0 && !self.reads_slowly() {
            return Err("the server closed a connection that had done nothing wrong".into());
        }
        self.stream = None;
        self.out.clear();
        self.incoming.clear();
        for (_, _, calls) in self.under_way.drain(..) {
            calls
                .into_iter()
                .for_each(|call| notes.end(call, Answer::Unknown));
        }
        Ok(())
    }
}

impl<C: Codec> Client for StreamClient<C> {
    fn due(&self, now_us: u64) -> Due {
        if self.may_ask(now_us) {
            return Due::Now;
        }
        let ready = self.stream.as_ref().map(|stream| stream.ready());
        let ready = ready.unwrap_or_default();
        if (ready.readable && self.reads_us <= now_us) || (ready.writable && !self.out.is_empty()) {
            return Due::Now;
        }
        let reads = ready.readable.then_some(self.reads_us);
        let may_ask = self.under_way.len() < self.plan.pipeline;
        let asks = self.script.due_us().filter(|_| may_ask);
        match reads.into_iter().chain(asks).min() {
            Some(at_us) => Due::At(at_us),
            None if self.script.is_over() && self.under_way.is_empty() => Due::Done,
            None => Due::Waits,
        }
    }

    fn act(&mut self, notes: &mut Notes) -> Result<(), String> {
        if self.may_ask(notes.now.us) {
            self.ask(notes);
        }
        if !self.out.is_empty() {
            self.send(notes)?;
        }
        if self.reads_us <= notes.now.us {
            self.receive(notes)?;
        }
        Ok(())
    }

    fn reads_slowly(&self) -> bool {
        self.plan.read_pause_us > 0
    }
}

/// What a reply says of one key.
pub fn answered(bytes: usize, answer: Answer) -> Result<Option<Reply>, String> {
    Ok(Some(Reply {
        bytes,
        answers: vec![answer],
        uniques: Vec::new(),
    }))
}

/// Bytes as a value.
pub fn value(bytes: &[u8]) -> Value {
    bytes.into()
}
