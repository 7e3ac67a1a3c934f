//! `glimmer copy`: fills a server from another one.
//!
//! Items are stored only where the other server has none (`ms` with the mode `E`, add). So what
//! clients have stored there meanwhile is never replaced by an older value, and the same command
//! may be given again after a failure. There is no file that says how far a copy is: the items that
//! are there say so themselves, and `--skip-present` asks for them before it reads them again.

mod item;
mod keys;
mod pace;
mod tally;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use glimmer_base::limits::ITEM_BYTES_MAX;
use glimmer_cli::{AdmissionArguments, vocabulary};
use glimmer_connect::{Admission, Link};
use glimmer_notation::{Location, bytes, count, counted};

use crate::progress::Progress;
use item::{Found, Unit};
use keys::{Key, Keys};
use pace::{Pace, Rates};
use tally::{Fate, Tally};

/// A server that is silent for this long counts as gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Items that are on their way together. Their answers fit into the buffers of a connection, so
/// that neither server waits for the other.
const BATCH_MAX: u64 = 64;
/// A batch has one item, or at most about this part of what a second may have, so that items are
/// copied evenly.
const BATCHES_PER_S_MIN: u64 = 20;
/// Bytes that are gathered before they are sent.
const GATHERED_BYTES_HIGH: usize = 256 << 10;
/// How lines begin that refuse a command.
const REFUSALS: [&[u8]; 3] = [b"CLIENT_ERROR ", b"SERVER_ERROR ", b"ERROR "];
/// A server of which nothing can be copied, and to which nothing can.
const NO_META: &str = "it has no meta commands: memcached has them since 1.6";
/// Items in a row for which there is no memory, after which there will be none for others.
const FULL_MAX: u64 = 1000;

/// Fill a server from another one, item by item
///
/// Copies every item that FROM lists, with its flags and its remaining lifetime (to a second if one
/// of the servers is memcached). FROM and TO are this server or memcached, FROM from version 1.6 on
/// and TO from 1.6.10 on. An item that TO has already stays as it is, so that clients may use both
/// servers meanwhile, and the same command may be given again.
///
/// Items that are stored in FROM after the command has begun are not copied. The last lines say
/// what was copied, and what was not and why. The exit status is 0 if TO has everything that FROM
/// had.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    glimmer copy old.example new.example\n  \
    glimmer copy old.example:11211 unix:/run/glimmer.sock --rate 5k --byte-rate 10m\n  \
    glimmer copy old.example new.example --skip-present\n  \
    glimmer copy old.example new.example --tls --login-to to --auth-user ann --password-file pw")]
pub struct Arguments {
    /// The server that has the items: HOST:PORT, or unix:PATH
    #[arg(value_name = "FROM", value_parser = vocabulary::connection)]
    from: Location,

    /// The server that gets them
    #[arg(value_name = "TO", value_parser = vocabulary::connection)]
    to: Location,

    /// Items per second, at most; 0 for as fast as it goes
    #[arg(short, long, value_name = "COUNT", default_value = "20k", value_parser = count)]
    rate: u64,

    /// Bytes of values per second, at most; 0 for as fast as it goes
    #[arg(long, value_name = "BYTES", default_value = "64m", value_parser = bytes)]
    byte_rate: u64,

    /// Ask TO for each item first, and read from FROM only those that it lacks, and those whose
    /// keys are not text without spaces: to go on with a copy that has ended early
    #[arg(long)]
    skip_present: bool,

    /// Which of the servers TLS and the login are for
    #[arg(
        long,
        value_name = "SERVER",
        default_value = "both",
        help_heading = "TLS and login"
    )]
    login_to: Side,

    #[command(flatten)]
    admission: AdmissionArguments,
}

/// Which servers want TLS and a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Side {
    Both,
    From,
    To,
}

impl Arguments {
    /// Runs the command.
    pub fn run(self) -> Result<()> {
        ensure!(
            self.from != self.to,
            "FROM and TO are the same server: {}",
            self.from
        );
        let admission = self.admission.read()?;
        let admitted = |side| match self.login_to {
            Side::Both => admission.clone(),
            wanted if wanted == side => admission.clone(),
            _ => Admission::default(),
        };
        let open = |server, side| Link::open(server, &admitted(side), SILENCE_MAX);
        let mut from = open(&self.from, Side::From)?;
        let mut to = open(&self.to, Side::To)?;
        takes_values(&mut to).with_context(|| at("TO", &self.to))?;
        let keys = Keys::of(&mut from).with_context(|| format!("{}", self.from))?;
        let unit = match has_milliseconds(&mut from).with_context(|| at("FROM", &self.from))?
            && has_milliseconds(&mut to).with_context(|| at("TO", &self.to))?
        {
            true => Unit::Milliseconds,
            false => Unit::Seconds,
        };
        let mut copy = Copy {
            arguments: &self,
            unit,
            from,
            to,
            total: keys.count,
            tally: Tally::default(),
            full_in_a_row: 0,
            value: Vec::new(),
            gathered: Vec::new(),
            line: Vec::new(),
        };
        let before = copy.evictions()?;
        let mut progress = Progress::new();
        let result = copy.all(keys, &mut progress);
        progress.end();
        println!("{}", copy.tally);
        result.with_context(|| {
            format!(
                "{} of {} looked at; give the command again with --skip-present to go on",
                copy.tally.all(),
                counted(copy.total, "item")
            )
        })?;
        if let (Some(before), Some(after)) = (before, copy.evictions()?)
            && after > before
        {
            let evicted = counted(after - before, "item");
            println!("TO has evicted {evicted} meanwhile: it has no room for all of them");
        }
        match copy.tally.lacking() {
            0 => Ok(()),
            1 => bail!("1 item is not in {}", self.to),
            lacking => bail!("{lacking} items are not in {}", self.to),
        }
    }
}

/// A copy in progress.
struct Copy<'a> {
    arguments: &'a Arguments,
    from: Link,
    to: Link,
    /// What lifetimes are copied in.
    unit: Unit,
    /// Items that FROM has listed.
    total: u64,
    tally: Tally,
    /// The latest items for which there was no memory.
    full_in_a_row: u64,
    value: Vec<u8>,
    /// Commands for TO that are not sent yet.
    gathered: Vec<u8>,
    line: Vec<u8>,
}

impl Copy<'_> {
    /// Copies all items, batch by batch.
    fn all(&mut self, mut keys: Keys, progress: &mut Progress) -> Result<()> {
        let rates = Rates {
            items_per_s: self.arguments.rate,
            bytes_per_s: self.arguments.byte_rate,
        };
        let part = |rate| match rate {
            0 => u64::MAX,
            rate => rate / BATCHES_PER_S_MIN,
        };
        let items_max = part(rates.items_per_s).clamp(1, BATCH_MAX);
        let start = Instant::now();
        let mut pace = Pace::new(rates);
        loop {
            let batch = keys.batch(items_max, part(rates.bytes_per_s))?;
            if batch.is_empty() {
                return Ok(());
            }
            thread::sleep(pace.wait(start.elapsed()));
            let (begun, items) = (start.elapsed(), batch.len() as u64);
            let bytes = self.batch(batch)?;
            pace.note(begun, items, bytes);
            let (done, copied) = (self.tally.all(), self.tally.count(Fate::Copied));
            let percent = 100 * done / self.total.max(1);
            progress.show(&format!(
                "{done} of {} items, {percent}%, {copied} copied",
                self.total
            ));
            ensure!(
                self.full_in_a_row < FULL_MAX,
                "{} is full, and evicts nothing",
                self.arguments.to
            );
        }
    }

    /// Copies the items with these keys. Returns how many bytes of values were read.
    fn batch(&mut self, keys: Vec<Key>) -> Result<u64> {
        let (mut keys, long): (Vec<Key>, Vec<Key>) = keys.into_iter().partition(Key::is_nameable);
        for _ in long {
            self.tally.note(Fate::LongKey);
        }
        if self.arguments.skip_present {
            let to = &self.arguments.to;
            keys = absent(&mut self.to, keys, &mut self.tally).with_context(|| at("TO", to))?;
        }
        let mut reads = Vec::new();
        for key in &keys {
            item::put_read(key, self.unit, &mut reads);
        }
        let from = &self.arguments.from;
        self.from
            .send_bytes(&reads)
            .with_context(|| at("FROM", from))?;
        let mut sent = Vec::with_capacity(keys.len());
        let mut bytes = 0;
        for key in &keys {
            if let Some(value_bytes) = self.pass_on(key)? {
                sent.push(value_bytes);
                bytes += value_bytes as u64;
            }
        }
        self.send()?;
        for value_bytes in sent {
            self.read_answer(value_bytes)?;
        }
        Ok(bytes)
    }

    /// Reads the next item, and gathers the command that stores it. Returns the bytes of its value
    /// if there is such a command.
    fn pass_on(&mut self, key: &Key) -> Result<Option<usize>> {
        let server = || at("FROM", &self.arguments.from);
        self.from.read_line(&mut self.line).with_context(server)?;
        let head = match Found::parse(&self.line) {
            Some(Found::Value(head)) => head,
            Some(Found::Gone) => {
                self.tally.note(Fate::Gone);
                return Ok(None);
            }
            None => {
                self.note_refused().with_context(server)?;
                return Ok(None);
            }
        };
        ensure!(
            head.value_bytes <= ITEM_BYTES_MAX,
            "{}: a value of {} bytes",
            server(),
            head.value_bytes
        );
        self.value.clear();
        let read = self.from.read_value(head.value_bytes, &mut self.value);
        read.with_context(server)?;
        // Less than one is left of the unit: zero would mean that the item never expires.
        if head.ttl == Some(0) {
            self.tally.note(Fate::Gone);
            return Ok(None);
        }
        if head.is_stale {
            self.tally.note(Fate::Stale);
            return Ok(None);
        }
        item::put_add(key, &head, self.unit, &mut self.gathered);
        if self.gathered.len() + self.value.len() <= GATHERED_BYTES_HIGH {
            self.gathered.extend_from_slice(&self.value);
        } else {
            self.send()?;
            let server = || at("TO", &self.arguments.to);
            self.to.send_bytes(&self.value).with_context(server)?;
        }
        self.gathered.extend_from_slice(b"\r\n");
        Ok(Some(head.value_bytes))
    }

    /// Sends what is gathered.
    fn send(&mut self) -> Result<()> {
        let server = || at("TO", &self.arguments.to);
        self.to.send_bytes(&self.gathered).with_context(server)?;
        self.gathered.clear();
        Ok(())
    }

    /// Reads what became of the next item in TO.
    fn read_answer(&mut self, value_bytes: usize) -> Result<()> {
        let server = || at("TO", &self.arguments.to);
        self.to.read_line(&mut self.line).with_context(server)?;
        let is_full = self.line.starts_with(b"SERVER_ERROR out of memory");
        self.full_in_a_row = if is_full { self.full_in_a_row + 1 } else { 0 };
        match &self.line[..] {
            b"HD" => self.tally.note_copied(value_bytes),
            b"NS" => self.tally.note(Fate::There),
            _ if is_full => self.tally.note(Fate::NoMemory),
            b"SERVER_ERROR object too large for cache" => self.tally.note(Fate::TooLarge),
            b"CLIENT_ERROR unauthenticated" => {
                bail!("{}: it wants a login: give --auth-user", server());
            }
            _ => self.note_refused().with_context(server)?,
        }
        Ok(())
    }

    /// Counts the item that a server has refused with the latest line. Fails if that is no refusal:
    /// what follows it may not be the next answer.
    fn note_refused(&mut self) -> Result<()> {
        let is_refusal = REFUSALS.iter().any(|word| self.line.starts_with(word));
        ensure!(
            is_refusal,
            "not what a memcached answers: {}",
            self.line.escape_ascii()
        );
        self.tally.note_refused(&self.line);
        Ok(())
    }

    /// How many items TO has evicted since its start; `None` if it does not say.
    fn evictions(&mut self) -> Result<Option<u64>> {
        let server = || at("TO", &self.arguments.to);
        let Ok(figures) = self.to.stats_or_refusal("").with_context(server)? else {
            return Ok(None);
        };
        let evictions = figures.iter().find(|(name, _)| name == "evictions");
        Ok(evictions.and_then(|(_, count)| count.parse().ok()))
    }
}

/// Makes sure that a server takes the values of `ms` as such. An old one would take each for a
/// command.
fn takes_values(server: &mut Link) -> Result<()> {
    server.send_bytes(item::QUESTION_OF_VALUES)?;
    let mut line = Vec::new();
    server.read_line(&mut line)?;
    ensure!(
        line != b"CLIENT_ERROR unauthenticated",
        "it wants a login: give --auth-user"
    );
    ensure!(line != b"ERROR", NO_META);
    server.read_line(&mut line)?;
    ensure!(
        line != b"MN",
        "it has other meta commands: memcached has these since 1.6.10"
    );
    ensure!(
        line.starts_with(b"VERSION "),
        "it refuses `version`: {}",
        line.escape_ascii()
    );
    Ok(())
}

/// Whether a server can count lifetimes in milliseconds.
fn has_milliseconds(server: &mut Link) -> Result<bool> {
    let mut line = Vec::new();
    server.send_bytes(item::QUESTION_OF_UNIT)?;
    server.read_line(&mut line)?;
    ensure!(line != b"ERROR", NO_META);
    Ok(item::has_milliseconds(&line))
}

/// A server in an error.
fn at(role: &str, server: &Location) -> String {
    format!("{role} ({server})")
}

/// Those of the keys that a server has no item with, as far as it can be asked. The others are
/// counted.
fn absent(server: &mut Link, keys: Vec<Key>, tally: &mut Tally) -> Result<Vec<Key>> {
    let mut questions = Vec::new();
    for key in keys.iter().filter(|key| key.can_be_asked()) {
        item::put_question(key, &mut questions);
    }
    server.send_bytes(&questions)?;
    let mut line = Vec::new();
    let mut absent = Vec::with_capacity(keys.len());
    for key in keys {
        let is_there = key.can_be_asked() && {
            server.read_line(&mut line)?;
            line.starts_with(b"ME ")
        };
        match is_there {
            true => tally.note(Fate::There),
            false => absent.push(key),
        }
    }
    Ok(absent)
}
