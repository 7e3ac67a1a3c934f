//! A client that watches mutations (protocol.txt, "Watchers"), and compares what it is shown with
//! the history: every store that was acknowledged has one line, unless the server said that it has
//! left lines out. It begins again with each process of the server.

use super::login::write_login;
use super::{Client, Due, Notes};
use crate::history::{Action, Answer, Call};
use crate::scenario::{COUNTERS, ClientPlan, key_name};
use crate::server::Served;
use glimmer_transport::stream::{
    ByteStream, LocalListener, LocalStream, Received, Sent, StreamFaults,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What it asks.
const COMMAND: &[u8] = b"watch mutations\n";

/// A client that watches mutations.
pub struct Watcher {
    number: usize,
    plan: ClientPlan,
    stream: LocalStream,
    /// The server's process ends, or has ended.
    may_end: bool,
    /// The connection has ended with it.
    has_ended: bool,
    out: Vec<u8>,
    incoming: Vec<u8>,
    /// The step at which it was told that it watches.
    since: Option<u64>,
    /// Lines of stores, by key and command.
    stored: BTreeMap<(String, String), usize>,
    /// Lines that the server left out.
    skipped: usize,
    /// When it takes the next bytes, if it takes them slowly.
    reads_us: u64,
    rng: SmallRng,
}

impl Watcher {
    /// A client that has yet to say what it watches.
    pub fn new(number: usize, plan: &ClientPlan, listeners: &[LocalListener]) -> Watcher {
        let mut rng = SmallRng::seed_from_u64(plan.seed);
        let listener = &listeners[rng.random_range(0..listeners.len())];
        let from = SocketAddr::from(([10, 0, 0, 2], 10_000 + number as u16));
        // The command has to be alone.
        let mut out = Vec::new();
        match plan.logs_in {
            true => write_login(&mut out),
            false => out.extend_from_slice(COMMAND),
        }
        Watcher {
            number,
            plan: plan.clone(),
            stream: listener.connect(from, plan.stream, rng.random()),
            may_end: false,
            has_ended: false,
            out,
            incoming: Vec::new(),
            since: None,
            stored: BTreeMap::new(),
            skipped: 0,
            reads_us: 0,
            rng,
        }
    }

    fn receive(&mut self, notes: &mut Notes) -> Result<(), String> {
        let pause_us = self.plan.read_pause_us;
        self.reads_us = notes.now.us + self.rng.random_range(0..=pause_us);
        let mut received = Vec::with_capacity(4096);
        let outcome = self.stream.receive(&mut received);
        notes.trace.add(&received);
        self.incoming.extend_from_slice(&received);
        if outcome == Received::Ended {
            return self.end("the server closed the connection of a watcher");
        }
        while let Some(end) = self.incoming.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.incoming.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_end().to_string();
            match self.since {
                None if line == "STORED" && self.plan.logs_in => {
                    self.out.extend_from_slice(COMMAND);
                }
                None if line == "OK" => self.since = Some(notes.now.step),
                None => return Err(format!("watch was answered {line:?}")),
                Some(_) => self.read(&line)?,
            }
        }
        Ok(())
    }

    /// The connection has ended.
    fn end(&mut self, wrong: &str) -> Result<(), String> {
        self.has_ended = true;
        match self.may_end {
            true => Ok(()),
            false => Err(wrong.into()),
        }
    }

    /// Reads a line: `ts=… gid=… type=item_store key=… status=… cmd=… …`.
    fn read(&mut self, line: &str) -> Result<(), String> {
        let wrong = || format!("a watcher was shown {line:?}");
        if let Some(skipped) = line.strip_prefix("skipped=") {
            self.skipped += skipped.parse::<usize>().map_err(|_| wrong())?;
            return Ok(());
        }
        let fields = line.split(' ').map(|field| field.split_once('='));
        let fields: Option<BTreeMap<&str, &str>> = fields.collect();
        let fields = fields.ok_or_else(wrong)?;
        let field = |name| fields.get(name).copied().ok_or_else(wrong);
        if field("type")? != "item_store" {
            return Err(wrong());
        }
        if field("status")? == "stored" {
            let of = (field("key")?.to_string(), field("cmd")?.to_string());
            *self.stored.entry(of).or_default() += 1;
        }
        Ok(())
    }
}

/// The command of a store in the words of a watcher.
fn command(action: &Action) -> Option<&'static str> {
    match action {
        Action::Set(..) => Some("set"),
        Action::Add(..) => Some("add"),
        Action::Replace(..) => Some("replace"),
        Action::Append(_) => Some("append"),
        Action::Cas(..) => Some("cas"),
        _ => None,
    }
}

impl Client for Watcher {
    fn due(&self, now_us: u64) -> Due {
        let ready = self.stream.ready();
        match () {
            () if self.has_ended => Due::Done,
            () if ready.writable && !self.out.is_empty() => Due::Now,
            () if ready.readable && self.reads_us <= now_us => Due::Now,
            () if ready.readable => Due::At(self.reads_us),
            () if self.since.is_none() => Due::Waits,
            () => Due::Done,
        }
    }

    fn act(&mut self, notes: &mut Notes) -> Result<(), String> {
        if !self.out.is_empty() {
            match self.stream.send(&self.out) {
                Sent::All => self.out.clear(),
                Sent::Part(count) => _ = self.out.drain(..count),
                Sent::Failed => return self.end("a watcher cannot send"),
            }
        }
        self.receive(notes)
    }

    fn reads_slowly(&self) -> bool {
        self.plan.read_pause_us > 0
    }

    fn lose_server(&mut self) {
        self.may_end = true;
    }

    fn find_server(&mut self, served: &Served) {
        *self = Watcher::new(self.number, &self.plan, &served.listeners);
    }

    fn calm(&mut self, _: u64) {
        self.plan.read_pause_us = 0;
        self.plan.stream = StreamFaults {
            buffer_bytes: self.plan.stream.buffer_bytes,
            ..StreamFaults::default()
        };
        self.stream.set_faults(self.plan.stream);
    }

    /// A store that was acknowledged, and that began when the watcher had been told that it
    /// watches, has to have a line. A store that began earlier, or has no answer, may have one.
    fn check(&self, calls: &[Call]) -> Result<(), String> {
        let since = self.since.unwrap_or(u64::MAX);
        let mut expected: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
        for call in calls {
            let Some(command) = command(&call.action) else {
                continue;
            };
            let is_sure = call.answer == Answer::Done && call.begun.step > since;
            let may_be = matches!(
                call.answer,
                Answer::Done | Answer::Unknown | Answer::Refused
            );
            let of = (call.key.clone(), command.to_string());
            let (least, most) = expected.entry(of).or_default();
            *least += usize::from(is_sure);
            *most += usize::from(may_be);
        }
        let counters = key_name(COUNTERS).trim_end_matches('0').to_string();
        let mut missing = 0;
        for ((key, command), (least, most)) in &expected {
            let of = (key.clone(), command.clone());
            let shown = self.stored.get(&of).copied().unwrap_or(0);
            missing += least.saturating_sub(shown);
            // A number that a client counts from the beginning is shown as if it was added.
            if shown > *most && !key.starts_with(&counters) {
                return Err(format!(
                    "a watcher was shown {shown} times that {key} was stored by {command}, \
                     which happened {most} times at most"
                ));
            }
            if *least > shown && missing > self.skipped {
                return Err(format!(
                    "a watcher was shown {shown} times that {key} was stored by {command}, \
                     which happened {least} times at least; {} lines were left out",
                    self.skipped
                ));
            }
        }
        Ok(())
    }
}
