//! Clients: each asks what its plan says, and notes what it is answered.
//!
//! | file | idea |
//! | --- | --- |
//! | [`stream`] | a client with a connection: sends, receives, connects again |
//! | [`datagrams`] | a client with memcached's datagrams: sends, receives, tries reads again |
//! | [`text`], [`meta`], [`binary`], [`resp`] | how requests are written and replies read |
//! | [`login`] | how clients log in, where they have to |
//! | [`native`] | a session of the client library over a network with faults |
//! | [`flood`] | a client that never stops sending, in whatever state its connection is |
//! | [`watch`] | a client that watches mutations, and compares them with the history |

pub mod binary;
pub mod datagrams;
pub mod flood;
pub mod login;
pub mod meta;
pub mod native;
pub mod resp;
pub mod stream;
pub mod text;
pub mod watch;

use crate::history::{Action, Answer, Call, Stamp, Value};
use crate::scenario::{ClientPlan, Operation, Protocol, key_name};
use crate::server::{Served, memcached_address};
use binary::Binary;
use datagrams::DatagramClient;
use flood::Flooder;
use glimmer_transport::packet::Microseconds;
use meta::Meta;
use native::NativeClient;
use resp::Resp;
use std::collections::{BTreeMap, BTreeSet};
use stream::StreamClient;
use text::Text;
use watch::Watcher;

/// When a client has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Now.
    Now,
    /// At this time, in microseconds.
    At(u64),
    /// When the server does something.
    Waits,
    /// Never again.
    Done,
}

/// A client of a scenario.
pub trait Client {
    /// When it has something to do.
    fn due(&self, now_us: u64) -> Due;

    /// Does a part of it. Fails if the server did something that no server may.
    fn act(&mut self, notes: &mut Notes) -> Result<(), String>;

    /// Whether it takes its replies when it likes, and not when they come.
    fn reads_slowly(&self) -> bool;

    /// Whether it goes on for as long as the others do.
    fn never_ends(&self) -> bool {
        false
    }

    /// How often the server has received from it what never ends.
    fn flooded(&self) -> u64 {
        0
    }

    /// The server's process ends, or begins to. Its connections may end without a word.
    fn lose_server(&mut self) {}

    /// Another process serves there.
    fn find_server(&mut self, _served: &Served) {}

    /// From here on nothing fails, and the client takes its replies when they come. It asks what
    /// its plan has for this time.
    fn calm(&mut self, now_us: u64);

    /// Compares what it saw with the history of everyone, in the end.
    fn check(&self, _calls: &[Call]) -> Result<(), String> {
        Ok(())
    }
}

/// The client of a plan.
pub fn new(
    number: usize,
    plan: &ClientPlan,
    served: &Served,
    time: Microseconds,
) -> Box<dyn Client> {
    let listeners = &served.listeners;
    let streams = served.streams(plan.is_encrypted);
    let servers = || (0..listeners.len()).map(memcached_address).collect();
    let switch = &served.switch;
    match plan.protocol {
        Protocol::Text => Box::new(StreamClient::new(Text, number, plan, streams)),
        Protocol::Meta => Box::new(StreamClient::new(Meta, number, plan, streams)),
        Protocol::Binary => Box::new(StreamClient::new(Binary, number, plan, streams)),
        Protocol::Resp => Box::new(StreamClient::new(Resp, number, plan, streams)),
        Protocol::TextDatagrams => {
            let network = (switch, servers());
            Box::new(DatagramClient::new(Text, number, plan, network, time))
        }
        Protocol::BinaryDatagrams => {
            let network = (switch, servers());
            Box::new(DatagramClient::new(Binary, number, plan, network, time))
        }
        Protocol::Native => Box::new(NativeClient::new(number, plan, switch, time)),
        Protocol::Watch => Box::new(Watcher::new(number, plan, listeners)),
        Protocol::Flood(flood) => Box::new(Flooder::new(number, plan, flood, listeners)),
    }
}

/// The number of no client.
const NOBODY: usize = usize::MAX;

/// The history as it is written.
#[derive(Default)]
pub struct Notes {
    /// What was asked so far.
    pub calls: Vec<Call>,
    /// The present moment.
    pub now: Stamp,
    /// What clients sent and received, as one number.
    pub trace: Trace,
    /// Calls that are not over.
    open: BTreeSet<usize>,
    /// What each CAS unique of each key named, as clients saw it.
    named: BTreeMap<(String, u64), Value>,
    /// A unique that has named two values.
    ambiguous: Option<String>,
}

impl Notes {
    /// A client asks.
    pub fn begin(&mut self, client: usize, key: String, action: Action) -> usize {
        self.calls.push(Call {
            client,
            key,
            action,
            begun: self.now,
            ended: None,
            answer: Answer::Unknown,
        });
        self.open.insert(self.calls.len() - 1);
        self.calls.len() - 1
    }

    /// A client is answered, or gives up.
    pub fn end(&mut self, call: usize, answer: Answer) {
        self.open.remove(&call);
        let call = &mut self.calls[call];
        if answer != Answer::Unknown {
            call.ended = Some(self.now);
        }
        call.answer = answer;
    }

    /// A process of the server was killed now, and the next one has lost items.
    pub fn lose(&mut self) {
        let Stamp { step, us } = self.now;
        self.calls.push(Call {
            client: NOBODY,
            key: String::new(),
            action: Action::Lose,
            begun: self.now,
            // Before a client does anything.
            ended: Some(Stamp { step: step + 1, us }),
            answer: Answer::Done,
        });
    }

    /// A client is shown an item with its unique, or with 0 if the protocol has none.
    pub fn see(&mut self, key: &str, value: &Value, unique: u64) {
        if unique == 0 {
            return;
        }
        let named = self.named.entry((key.into(), unique));
        let named = named.or_insert_with(|| value.clone());
        if named != value {
            self.ambiguous = Some(format!("two values of {key} have the CAS unique {unique}"));
        }
    }

    /// Fails if a CAS unique has named two values.
    pub fn check_uniques(&self) -> Result<(), String> {
        self.ambiguous.clone().map_or(Ok(()), Err)
    }

    /// The call that has waited for longest, of those that a condition holds for.
    pub fn oldest_open(&self, counts: impl Fn(&Call) -> bool) -> Option<&Call> {
        let calls = self.open.iter().map(|&call| &self.calls[call]);
        calls.into_iter().find(|call| counts(call))
    }
}

/// A number that follows from everything that happened, in order (FNV-1a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace(u64);

impl Default for Trace {
    fn default() -> Trace {
        Trace(0xcbf2_9ce4_8422_2325)
    }
}

impl Trace {
    /// Something happened.
    pub fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What a client asks next, with its values.
#[derive(Clone, Debug)]
pub struct Request {
    /// What it is about.
    pub keys: Vec<String>,
    /// What is asked of each key.
    pub action: Action,
    /// The unique that a compare-and-swap names.
    pub unique: u64,
    /// It asks not to be answered where the answer is the usual one.
    pub is_quiet: bool,
}

impl Request {
    /// Notes that it is asked: a call for each key, or one for all of them.
    pub fn begin(&self, client: usize, notes: &mut Notes) -> Vec<usize> {
        let is_flush = matches!(self.action, Action::Flush(_));
        let nameless = is_flush.then(String::new);
        let names = self.keys.iter().cloned().chain(nameless);
        let calls = names.map(|key| notes.begin(client, key, self.action.clone()));
        calls.collect()
    }
}

/// The plan of a client, as far as it has come.
pub struct Script {
    operations: Vec<(u64, Operation)>,
    next: usize,
    /// When the next operation may begin.
    due_us: u64,
    client: usize,
    /// By key: what was read last, and its unique.
    seen: BTreeMap<String, (Value, u64)>,
    /// What is asked while nothing fails.
    calm: Vec<(u64, Operation)>,
}

impl Script {
    /// The operations of a plan.
    pub fn new(client: usize, plan: &ClientPlan) -> Script {
        let first = plan.operations.first();
        Script {
            due_us: first.map_or(0, |(pause_us, _)| *pause_us),
            operations: plan.operations.clone(),
            next: 0,
            client,
            seen: BTreeMap::new(),
            calm: plan.calm.clone(),
        }
    }

    /// Goes on with what is asked while nothing fails.
    pub fn calm(&mut self, now_us: u64) {
        self.operations.append(&mut self.calm);
        if let Some((pause_us, _)) = self.operations.get(self.next) {
            self.due_us = now_us + pause_us;
        }
    }

    /// Whether everything was asked.
    pub fn is_over(&self) -> bool {
        self.next == self.operations.len()
    }

    /// When the next operation may begin, if there is one.
    pub fn due_us(&self) -> Option<u64> {
        (!self.is_over()).then_some(self.due_us)
    }

    /// The next operation.
    pub fn take(&mut self, now_us: u64) -> Option<Request> {
        let (_, operation) = self.operations.get(self.next)?;
        let keys: Vec<String> = operation.keys().into_iter().map(key_name).collect();
        let value = |bytes| value(self.client, self.next, bytes);
        let mut unique = 0;
        let action = match operation {
            Operation::Get(_) => Action::Get,
            Operation::Set(_, bytes, expiry_s) => Action::Set(value(*bytes), *expiry_s),
            Operation::Add(_, bytes, expiry_s) => Action::Add(value(*bytes), *expiry_s),
            Operation::Replace(_, bytes, expiry_s) => Action::Replace(value(*bytes), *expiry_s),
            Operation::Append(_, bytes) => Action::Append(value(*bytes)),
            Operation::Cas(_, bytes) => match self.seen.get(&keys[0]) {
                Some((seen, of_seen)) => {
                    unique = *of_seen;
                    Action::Cas(seen.clone(), value(*bytes))
                }
                None => Action::Get,
            },
            Operation::Delete(_) => Action::Delete,
            Operation::Begin(_) => Action::Add(b"0"[..].into(), 0),
            Operation::Increment(_, delta) => Action::Increment(*delta),
            Operation::Count(_, delta) => Action::Count(*delta),
            Operation::Touch(_, expiry_s) => Action::Touch(*expiry_s),
            Operation::GetAndTouch(_, expiry_s) => Action::GetAndTouch(*expiry_s),
            Operation::Flush(after_s) => Action::Flush(*after_s),
        };
        self.next += 1;
        if let Some((pause_us, _)) = self.operations.get(self.next) {
            self.due_us = now_us + pause_us;
        }
        Some(Request {
            keys,
            action,
            unique,
            is_quiet: false,
        })
    }

    /// A value was read with its unique.
    pub fn see(&mut self, key: &str, value: &Value, unique: u64) {
        self.seen.insert(key.into(), (value.clone(), unique));
    }
}

/// A value that no other operation stores, and of which no long part is that of another one.
fn value(client: usize, operation: usize, bytes: usize) -> Value {
    let mut value = format!("{client}.{operation}").into_bytes();
    let name = value.len();
    let first = 7 * client + operation;
    let letters = (first..).map(|at| b'a' + (at % 26) as u8);
    value.extend(letters.take(bytes.saturating_sub(name)));
    value.into()
}
