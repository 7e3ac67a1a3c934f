//! From datagrams to jobs: every request is read where it lies, and is either for the engine or answered here.

use super::Rules;
use super::assemblies::{Assemblies, Taken};
use super::exchange::Figures;
use super::ledger::{Answer, Ledger, Slot, Verdict};
use arrayvec::ArrayVec;
use glimmer_base::Moment;
use glimmer_base::limits::BATCH_MAX;
use glimmer_engine::{Engine, Job, Place};
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{
    Fragment, Kind, REQUESTS_MAX, Record, RequestHeader, Status, directory,
};
use glimmer_transport::udp::{Peer, Trains};

/// Datagrams that are answered together at most.
const LETTERS_MAX: usize = 64;
/// Requests that are answered together at most; some need no engine.
const ENTRIES_MAX: usize = LETTERS_MAX + REQUESTS_MAX;

/// A datagram that is being answered.
#[derive(Clone, Copy, Debug)]
pub struct Letter {
    pub header: RequestHeader,
    /// The train that it came with, and where in it.
    pub spot: Spot,
    /// Its bytes.
    pub bytes: usize,
    /// Its client has shown that it owns its address.
    pub is_proven: bool,
    /// Requests that it has, of those of the batch.
    pub entries: usize,
}

/// What becomes of one request of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// The engine executes it.
    Job {
        /// Where the ledger has it, if it is a mutation.
        slot: Option<Slot>,
        /// The first byte of the reply that is wanted, where that is long.
        offset: u32,
    },
    /// This is the answer.
    Settled(Status),
    /// It was executed before, and this was the answer.
    Repeated(Answer),
    /// The directory is wanted.
    Directory,
    /// A request in fragments lacks everything from this byte on.
    Progress(u32),
}

/// Where a datagram lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    pub train: usize,
    pub offset: usize,
}

/// Datagrams that are answered together, and what becomes of their requests.
#[derive(Default)]
pub struct Batch {
    pub letters: Vec<Letter>,
    pub entries: Vec<Entry>,
}

/// What the entries of a batch that are jobs ask of the engine.
pub type Jobs<'a> = ArrayVec<Job<'a>, BATCH_MAX>;

/// A request that was complete with its last fragment.
pub struct Whole {
    pub letter: Letter,
    pub message: Vec<u8>,
}

/// What a worker judges datagrams by.
pub struct Intake {
    pub rules: Rules,
    pub me: usize,
    pub ledger: Ledger,
    pub assemblies: Assemblies,
    pub whole: Option<Whole>,
    /// The token that was checked last, for a train whose datagrams all show the same.
    checked: Option<(usize, u64, bool)>,
}

/// By what requests are judged, beside what the intake keeps.
pub struct Judging<'t> {
    pub engine: &'t dyn Engine,
    pub now: Moment,
    pub figures: &'t mut Figures,
}

/// Why reading stops.
enum Stop {
    /// The datagram has to wait for the next batch.
    Before,
    /// The batch is to be answered first.
    After,
}

impl Intake {
    pub fn new(rules: Rules, me: usize, ledger: Ledger, assemblies: Assemblies) -> Intake {
        Intake {
            rules,
            me,
            ledger,
            assemblies,
            whole: None,
            checked: None,
        }
    }

    /// New trains have come: what was noted of the old ones means nothing.
    pub fn begin(&mut self) {
        self.checked = None;
    }

    /// Reads datagrams from `at` on, as many as make a batch, and moves `at` behind them.
    pub fn read<'a>(
        &mut self,
        trains: &'a Trains,
        at: &mut Spot,
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Judging<'_>,
    ) {
        batch.letters.clear();
        batch.entries.clear();
        while at.train < trains.count() {
            let (bytes, stride) = (trains.bytes(at.train), trains.stride(at.train));
            while at.offset < bytes.len() {
                let end = bytes.len().min(at.offset + stride);
                let datagram = &bytes[at.offset..end];
                let peer = trains.peer(at.train);
                let stop = self.read_one(datagram, (*at, peer), batch, jobs, tools);
                if let Some(Stop::Before) = stop {
                    return;
                }
                at.offset = end;
                if let Some(Stop::After) = stop {
                    return;
                }
            }
            *at = Spot {
                train: at.train + 1,
                offset: 0,
            };
        }
    }

    fn read_one<'a>(
        &mut self,
        datagram: &'a [u8],
        (spot, peer): (Spot, &Peer),
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Judging<'_>,
    ) -> Option<Stop> {
        let Some(header) = RequestHeader::read(datagram) else {
            tools.figures.dropped += 1;
            return None;
        };
        let has_room = batch.letters.len() < LETTERS_MAX
            && batch.entries.len() + REQUESTS_MAX <= ENTRIES_MAX
            && jobs.len() + usize::from(header.count).min(REQUESTS_MAX) <= BATCH_MAX;
        if !has_room {
            return Some(Stop::Before);
        }
        let mut letter = Letter {
            header,
            spot,
            bytes: datagram.len(),
            is_proven: self.is_proven(spot.train, peer, header.token, tools.now),
            entries: 1,
        };
        let rest = &datagram[RequestHeader::BYTES..];
        match header.kind {
            Kind::Requests if (1..=REQUESTS_MAX).contains(&usize::from(header.count)) => {
                letter.entries = 0;
                return self.read_requests(rest, letter, batch, jobs, tools);
            }
            Kind::Directory if datagram.len() >= directory::REPLY_BYTES_MAX => {
                batch.entries.push(Entry::Directory);
            }
            Kind::Fragment => {
                let entry = match Fragment::read(rest) {
                    None => Entry::Settled(Status::Malformed),
                    Some(_) if !letter.is_proven => Entry::Settled(Status::NoToken),
                    Some(fragment) => match self.take_fragment(&header, &fragment, tools.now) {
                        Taken::Lacks(next) => Entry::Progress(next),
                        Taken::TooLarge => Entry::Settled(Status::TooLarge),
                        Taken::Full => Entry::Settled(Status::Overloaded),
                        Taken::Complete(message) => {
                            self.whole = Some(Whole { letter, message });
                            return Some(Stop::After);
                        }
                    },
                };
                if header.count == 0 {
                    return None;
                }
                batch.entries.push(entry);
            }
            _ => {
                tools.figures.dropped += 1;
                return None;
            }
        }
        batch.letters.push(letter);
        None
    }

    fn read_requests<'a>(
        &mut self,
        mut rest: &'a [u8],
        mut letter: Letter,
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Judging<'_>,
    ) -> Option<Stop> {
        for _ in 0..letter.header.count {
            letter.entries += 1;
            let Some((record, bytes)) = Record::read(rest) else {
                batch.entries.push(Entry::Settled(Status::Malformed));
                break;
            };
            rest = &rest[bytes..];
            match self.judge(&letter, record, tools) {
                Some((entry, job)) => {
                    batch.entries.push(entry);
                    jobs.extend(job);
                }
                // The same mutation is in the batch: its answer is known once that is executed.
                None if batch.letters.is_empty() => {
                    batch.entries.push(Entry::Settled(Status::Malformed));
                }
                None => {
                    let kept = batch.entries.len() + 1 - letter.entries;
                    self.withdraw(&batch.entries[kept..]);
                    let is_job = |entry: &&Entry| matches!(entry, Entry::Job { .. });
                    let back = batch.entries[kept..].iter().filter(is_job).count();
                    jobs.truncate(jobs.len() - back);
                    batch.entries.truncate(kept);
                    return Some(Stop::Before);
                }
            }
        }
        batch.letters.push(letter);
        None
    }

    /// What becomes of a request, and its job if the engine executes it. None: it is about to be executed already.
    #[inline]
    pub fn judge<'a>(
        &mut self,
        letter: &Letter,
        record: Record<'a>,
        tools: &mut Judging<'_>,
    ) -> Option<(Entry, Option<Job<'a>>)> {
        let settled = |status| Some((Entry::Settled(status), None));
        let Some(request) = record.request() else {
            return settled(Status::Alive);
        };
        if letter.header.directory != self.rules.directory_version {
            tools.figures.misdirected += 1;
            return settled(Status::NewDirectory);
        }
        let keyhash = record.keyhash;
        let mut entry = Entry::Job {
            slot: None,
            offset: 0,
        };
        let is_here = match record.action {
            Action::Mutate { .. } => {
                let partition = keyhash.partition(self.rules.partitions);
                partition % self.rules.workers == self.me
                    && self.rules.seed.keyhash(record.key) == keyhash
            }
            _ => {
                tools.engine.place(keyhash, true) == Place::Here
                    && (!self.rules.checks_reads || self.rules.seed.keyhash(record.key) == keyhash)
            }
        };
        if !is_here {
            tools.figures.misdirected += 1;
            return settled(Status::WrongPartition);
        }
        match record.action {
            Action::Mutate { .. } if !letter.is_proven => {
                tools.figures.unproven += 1;
                return settled(Status::NoToken);
            }
            Action::Mutate { mutation, .. } => {
                let client = letter.header.client;
                let slot = match self.ledger.admit(client, mutation, keyhash, tools.now.ms) {
                    Verdict::Execute(slot) => slot,
                    Verdict::Pending => return None,
                    Verdict::Repeat(answer) => {
                        tools.figures.repeated += 1;
                        return Some((Entry::Repeated(answer), None));
                    }
                    Verdict::Superseded => {
                        tools.figures.superseded += 1;
                        return settled(Status::Superseded);
                    }
                    Verdict::Forgotten => return settled(Status::Forgotten),
                    Verdict::Full => return settled(Status::Overloaded),
                };
                entry = Entry::Job {
                    slot: Some(slot),
                    offset: 0,
                };
            }
            Action::Read { offset } => entry = Entry::Job { slot: None, offset },
            Action::Get | Action::Noop => {}
        }
        let job = Job {
            keyhash,
            request,
            out: 0,
        };
        Some((entry, Some(job)))
    }

    /// Notes what a mutation was answered.
    #[inline]
    pub fn note(&mut self, slot: Option<Slot>, answer: &[u8]) {
        if let Some(slot) = slot {
            self.ledger.settle(slot, Answer::of(answer));
        }
    }

    /// Takes back what the ledger was told is about to be executed.
    pub fn withdraw(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Entry::Job {
                slot: Some(slot), ..
            } = *entry
            {
                self.ledger.settle(slot, None);
            }
        }
    }

    fn take_fragment(
        &mut self,
        header: &RequestHeader,
        fragment: &Fragment<'_>,
        now: Moment,
    ) -> Taken {
        self.assemblies
            .take(header.client, header.sequence, fragment, now.ms)
    }

    #[inline]
    fn is_proven(&mut self, train: usize, peer: &Peer, token: u64, now: Moment) -> bool {
        if let Some((checked, shown, is_proven)) = self.checked
            && (checked, shown) == (train, token)
        {
            return is_proven;
        }
        let is_proven = token != 0 && self.rules.secret.admits(peer, token, now.ms);
        self.checked = Some((train, token, is_proven));
        is_proven
    }
}
