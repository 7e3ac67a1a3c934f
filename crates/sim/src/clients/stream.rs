//! A client with a connection.

use super::login::{read_login, write_login};
use super::{Client, Due, Notes, Request, Script};
use crate::encrypted::ClientStream;
use crate::history::{Action, Answer, Value};
use crate::scenario::ClientPlan;
use crate::server::Served;
use glimmer_transport::stream::{LocalListener, Received, Sent, StreamFaults};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How a protocol writes requests and reads replies.
pub trait Codec {
    /// Appends a request, which is this number of its connection.
    fn write(&self, request: &Request, number: u32, out: &mut Vec<u8>);

    /// Reads the reply to a request, if it is complete: how many bytes it has, and what it says of
    /// each key. Fails if it is no reply to this request. A quiet request whose reply is missing
    /// has the usual answer and no bytes.
    fn read(&self, request: &Request, number: u32, bytes: &[u8]) -> Result<Option<Reply>, String>;

    /// What is not answered if a request is quiet; `None` if it cannot be quiet.
    fn usual_answer(&self, _action: &Action) -> Option<Answer> {
        None
    }

    /// Appends a request that is answered after all those in front of it.
    fn write_fence(&self, _number: u32, _out: &mut Vec<u8>) {}

    /// The length of its reply, if that is complete.
    fn read_fence(&self, _number: u32, _bytes: &[u8]) -> Result<Option<usize>, String> {
        Ok(None)
    }
}

/// A request that has no answer yet.
pub struct Asked {
    /// What was asked; `None` for a fence, after quiet requests.
    pub request: Option<Request>,
    /// Its number of the connection.
    pub number: u32,
    /// The calls of its keys.
    pub calls: Vec<usize>,
}

impl Asked {
    /// A fence.
    pub fn fence(number: u32) -> Asked {
        Asked {
            request: None,
            number,
            calls: Vec::new(),
        }
    }

    /// Reads the reply, if it is complete.
    pub fn read(&self, codec: &impl Codec, bytes: &[u8]) -> Result<Option<Reply>, String> {
        match &self.request {
            Some(request) => codec.read(request, self.number, bytes),
            None => {
                let length = codec.read_fence(self.number, bytes)?;
                Ok(length.map(|bytes| Reply {
                    bytes,
                    answers: Vec::new(),
                    uniques: Vec::new(),
                }))
            }
        }
    }

    /// Notes what was answered, and what the client saw.
    pub fn end(self, reply: Reply, script: &mut Script, notes: &mut Notes) {
        for (index, (call, answer)) in self.calls.into_iter().zip(reply.answers).enumerate() {
            if let (Answer::Value(Some(value)), Some(&unique), Some(request)) =
                (&answer, reply.uniques.get(index), &self.request)
            {
                script.see(&request.keys[index], value, unique);
                notes.see(&request.keys[index], value, unique);
            }
            notes.end(call, answer);
        }
    }

    /// Notes that there will be no answer.
    pub fn give_up(self, notes: &mut Notes) {
        let calls = self.calls.into_iter();
        calls.for_each(|call| notes.end(call, Answer::Unknown));
    }
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
    stream: Option<ClientStream>,
    out: Vec<u8>,
    incoming: Vec<u8>,
    under_way: VecDeque<Asked>,
    /// It has sent a login that is not answered.
    logs_in: bool,
    /// The server's process ends.
    is_server_ending: bool,
    /// The connection is to a process that has ended, or ends.
    may_end: bool,
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
            logs_in: false,
            is_server_ending: false,
            may_end: false,
            asked: 0,
            reads_us: 0,
            rng: SmallRng::seed_from_u64(plan.seed),
        }
    }

    /// Whether it has something to send.
    fn has_unsent(&self) -> bool {
        let stream = self.stream.as_ref();
        !self.out.is_empty() || stream.is_some_and(ClientStream::has_unsent)
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
            let stream = listener.connect(from, self.plan.stream, self.rng.random());
            self.stream = Some(ClientStream::new(stream, self.plan.is_encrypted));
            self.may_end = self.is_server_ending;
            self.logs_in = self.plan.logs_in;
            if self.logs_in {
                write_login(&mut self.out);
            }
        }
        let now_us = notes.now.us;
        let Some(mut request) = self.script.take(now_us) else {
            return;
        };
        let may_be_quiet = self.plan.is_quiet && self.codec.usual_answer(&request.action).is_some();
        request.is_quiet = may_be_quiet && self.rng.random_bool(0.5);
        let is_quiet = request.is_quiet;
        self.asked = self.asked.wrapping_add(1);
        self.codec.write(&request, self.asked, &mut self.out);
        self.under_way.push_back(Asked {
            calls: request.begin(self.number, notes),
            request: Some(request),
            number: self.asked,
        });
        if is_quiet && !self.may_ask(now_us) {
            self.asked = self.asked.wrapping_add(1);
            self.codec.write_fence(self.asked, &mut self.out);
            self.under_way.push_back(Asked::fence(self.asked));
        }
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
        let outcome = stream.receive(&mut received)?;
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
        if self.logs_in && !self.incoming.is_empty() {
            let Some(bytes) = read_login(&self.incoming)? else {
                return Ok(());
            };
            (self.logs_in, at) = (false, bytes);
        }
        while at < self.incoming.len() {
            let Some(asked) = self.under_way.front() else {
                let rest = self.incoming[at..].escape_ascii();
                return Err(format!("a reply that nobody asked for: {rest}"));
            };
            let Some(reply) = asked.read(&self.codec, &self.incoming[at..])? else {
                break;
            };
            at += reply.bytes;
            let asked = self.under_way.pop_front().expect("there is a first");
            asked.end(reply, &mut self.script, notes);
        }
        self.incoming.drain(..at);
        Ok(())
    }

    /// The connection has failed: what is under way has no answer.
    fn lose(&mut self, notes: &mut Notes) -> Result<(), String> {
        let may_end = self.may_end || self.plan.stream.reset > 0.0;
        if !may_end && !self.reads_slowly() {
            return Err("the server closed a connection that had done nothing wrong".into());
        }
        self.stream = None;
        self.out.clear();
        self.incoming.clear();
        self.under_way
            .drain(..)
            .for_each(|asked| asked.give_up(notes));
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
        if (ready.readable && self.reads_us <= now_us) || (ready.writable && self.has_unsent()) {
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
        if self.has_unsent() {
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

    fn lose_server(&mut self) {
        (self.is_server_ending, self.may_end) = (true, true);
    }

    fn find_server(&mut self, served: &Served) {
        self.is_server_ending = false;
        self.listeners = served.streams(self.plan.is_encrypted);
    }

    fn calm(&mut self, now_us: u64) {
        (self.plan.read_pause_us, self.reads_us) = (0, 0);
        self.plan.stream = StreamFaults {
            buffer_bytes: self.plan.stream.buffer_bytes,
            ..StreamFaults::default()
        };
        if let Some(stream) = &self.stream {
            stream.set_faults(self.plan.stream);
        }
        self.script.calm(now_us);
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
