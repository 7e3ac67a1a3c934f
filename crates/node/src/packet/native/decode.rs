//! From datagrams to jobs: every request is read where it lies, and is either for the engine or
//! answered here.

use super::Rules;
use super::assemblies::{Assemblies, Taken};
use super::completions::{CompletionSlot, CompletionTable, Origin, RecordedReply, Verdict};
use super::endpoint::NativeFigures;
use arrayvec::ArrayVec;
use glimmer_base::limits::BATCH_MAX;
use glimmer_base::{Keyhash, Moment};
use glimmer_engine::Job;
use glimmer_proto::native::directory::{Access, Direction};
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{
    self, DATAGRAM_BYTES_MAX, Extent, Fragment, Kind, REQUESTS_MAX, Record, ReplyHeader,
    RequestHeader, Status, Wanted, directory, reply,
};
use glimmer_proto::{Form, Request, Verb};
use glimmer_transport::udp::{Peer, Trains};

/// Datagrams that are answered together at most.
const CONTEXTS_MAX: usize = 64;
/// Requests that are answered together at most; some need no engine.
const ENTRIES_MAX: usize = CONTEXTS_MAX + REQUESTS_MAX;

/// A datagram that is being answered.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext {
    /// What its answer repeats.
    pub sequence: u32,
    pub timestamp: u32,
    /// The train that it came with, and where in it.
    pub spot: Spot,
    /// Its bytes.
    pub bytes: u32,
    /// Its client has shown that it owns its address.
    pub is_proven: bool,
    /// Requests that it has, of those of the batch.
    pub entries: u8,
}

/// A datagram as it is read.
#[derive(Clone, Copy)]
struct Opened {
    header: RequestHeader,
    spot: Spot,
    bytes: u32,
    is_proven: bool,
}

impl Opened {
    #[inline(always)]
    fn context(&self, entries: u8) -> RequestContext {
        RequestContext {
            sequence: self.header.sequence,
            timestamp: self.header.timestamp,
            spot: self.spot,
            bytes: self.bytes,
            is_proven: self.is_proven,
            entries,
        }
    }

    #[inline(always)]
    fn sender<'p>(&self, peer: &'p Peer) -> Sender<'p> {
        Sender {
            peer,
            client: self.header.client,
            directory: self.header.directory,
            is_proven: self.is_proven,
            requests: self.header.count,
            short_bytes_max: {
                let others = usize::from(self.header.count).saturating_sub(1);
                let taken = ReplyHeader::BYTES + others * reply::RECORD_BYTES;
                let bytes = match self.is_proven {
                    true => DATAGRAM_BYTES_MAX,
                    false => self.bytes as usize,
                };
                bytes.saturating_sub(taken) as u32
            },
        }
    }
}

/// By whom a request was sent, and in knowledge of what.
#[derive(Clone, Copy)]
pub struct Sender<'p> {
    pub peer: &'p Peer,
    pub client: u64,
    pub directory: u32,
    pub is_proven: bool,
    /// Requests of its datagram; 0 if it came in fragments.
    pub requests: u8,
    /// Bytes of a reply that leaves room for the others in the datagram, and is not longer than
    /// the client may be sent.
    pub short_bytes_max: u32,
}

impl Sender<'_> {
    /// How much is wanted of the reply to a read. A long one goes to a client that has shown its
    /// address and asked for nothing else; all others are told so, and nothing is copied for them.
    #[inline(always)]
    fn extent(&self, offset: u32) -> Extent {
        let may_be_long = self.is_proven && self.requests <= 1;
        Extent {
            short_bytes_max: self.short_bytes_max,
            long: match may_be_long {
                true => Wanted::Window(offset),
                false => Wanted::Nothing,
            },
        }
    }
}

/// What becomes of one request of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// The engine executes it.
    Job {
        /// Where the completion table has it, if it is a mutation.
        slot: Option<CompletionSlot>,
        /// The first byte of the reply that is wanted, where that is long.
        offset: u32,
    },
    /// This is the answer.
    Settled(Status),
    /// It was executed before; the answer has this place among the batch's.
    Repeated(u32),
    /// The directory is wanted.
    Directory,
    /// A request in fragments lacks everything from this byte on.
    Progress(u32),
}

/// Where a datagram lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    pub train: u32,
    pub offset: u32,
}

impl Spot {
    /// The train that it came with.
    #[inline(always)]
    pub fn train(self) -> usize {
        self.train as usize
    }
}

/// Datagrams that are answered together, and what becomes of their requests.
#[derive(Default)]
pub struct Batch {
    pub contexts: Vec<RequestContext>,
    pub entries: Vec<Entry>,
    /// What was answered to mutations that were executed before.
    pub answers: Vec<RecordedReply>,
}

impl Batch {
    /// Enters an answer that needs no engine.
    #[inline]
    fn settle(&mut self, status: Status) -> bool {
        self.entries.push(Entry::Settled(status));
        true
    }
}

/// What the entries of a batch that are jobs ask of the engine.
pub type Jobs<'a> = ArrayVec<Job<'a>, BATCH_MAX>;

/// A request that was complete with its last fragment.
pub struct Whole {
    pub context: RequestContext,
    pub client: u64,
    pub directory: u32,
    pub message: Vec<u8>,
}

impl Whole {
    /// By whom it was sent, from where its last fragment came.
    pub fn sender<'p>(&self, peer: &'p Peer) -> Sender<'p> {
        Sender {
            peer,
            client: self.client,
            directory: self.directory,
            is_proven: self.context.is_proven,
            requests: 0,
            short_bytes_max: (DATAGRAM_BYTES_MAX - ReplyHeader::BYTES) as u32,
        }
    }
}

/// What a worker judges datagrams by.
pub struct Decoder {
    pub rules: Rules,
    /// By partition: whether this worker owns it. Looked up, as a division for every request costs
    /// more.
    owned: Box<[bool]>,
    pub completions: CompletionTable,
    pub assemblies: Assemblies,
    pub whole: Option<Whole>,
    /// The token that was checked last, for a train whose datagrams all show the same.
    checked: Option<(usize, u64, bool)>,
}

/// By what requests are judged, beside what the decoder keeps.
pub struct Judging<'t> {
    pub now: Moment,
    pub figures: &'t mut NativeFigures,
}

/// Why reading stops.
enum Stop {
    /// The datagram has to wait for the next batch.
    Before,
    /// The batch is to be answered first.
    After,
}

impl Decoder {
    pub fn new(
        rules: Rules,
        me: usize,
        completions: CompletionTable,
        assemblies: Assemblies,
    ) -> Decoder {
        let owned = (0..rules.partitions).map(|partition| partition % rules.workers == me);
        Decoder {
            rules,
            owned: owned.collect(),
            completions,
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
        self.completions.begin_batch();
        batch.contexts.clear();
        batch.entries.clear();
        batch.answers.clear();
        while at.train() < trains.count() {
            let (bytes, stride) = (trains.bytes(at.train()), trains.stride(at.train()));
            let peer = trains.peer(at.train());
            while (at.offset as usize) < bytes.len() {
                let rest = &bytes[at.offset as usize..];
                let datagram = &rest[..rest.len().min(stride)];
                let stop = self.read_one(datagram, (*at, peer), batch, jobs, tools);
                if let Some(Stop::Before) = stop {
                    return;
                }
                at.offset += datagram.len() as u32;
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
        let is_short = datagram.len() <= DATAGRAM_BYTES_MAX;
        let Some(header) = RequestHeader::read(datagram).filter(|_| is_short) else {
            tools.figures.dropped += 1;
            return None;
        };
        let has_room = batch.contexts.len() < CONTEXTS_MAX
            && batch.entries.len() + REQUESTS_MAX <= ENTRIES_MAX
            && jobs.len() + usize::from(header.count).min(REQUESTS_MAX) <= BATCH_MAX;
        if !has_room {
            return Some(Stop::Before);
        }
        let opened = Opened {
            header,
            spot,
            bytes: datagram.len() as u32,
            is_proven: self.is_proven(spot.train(), peer, header.token, tools.now),
        };
        let rest = &datagram[RequestHeader::BYTES..];
        match header.kind {
            Kind::Requests if (1..=REQUESTS_MAX).contains(&usize::from(header.count)) => {
                return self.read_requests(rest, (&opened, peer), batch, jobs, tools);
            }
            Kind::Directory if datagram.len() >= directory::REPLY_BYTES_MAX => {
                batch.entries.push(Entry::Directory);
            }
            Kind::Fragment => {
                let entry = match Fragment::read(rest) {
                    None => Entry::Settled(Status::Malformed),
                    Some(_) if !opened.is_proven => Entry::Settled(Status::NoToken),
                    Some(fragment) => match self.take_fragment(&header, peer, &fragment, tools.now)
                    {
                        Taken::Lacks(next) => Entry::Progress(next),
                        Taken::TooLarge => Entry::Settled(Status::TooLarge),
                        Taken::Full => Entry::Settled(Status::Overloaded),
                        Taken::Complete(message) => {
                            self.whole = Some(Whole {
                                context: opened.context(1),
                                client: header.client,
                                directory: header.directory,
                                message,
                            });
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
        batch.contexts.push(opened.context(1));
        None
    }

    #[inline]
    fn read_requests<'a>(
        &mut self,
        mut rest: &'a [u8],
        (opened, peer): (&Opened, &Peer),
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Judging<'_>,
    ) -> Option<Stop> {
        let sender = opened.sender(peer);
        let mut entries = 0;
        while entries < opened.header.count {
            entries += 1;
            let Some((record, bytes)) = Record::read(rest) else {
                batch.entries.push(Entry::Settled(Status::Malformed));
                break;
            };
            rest = &rest[bytes..];
            if self.judge(sender, &record, batch, jobs, tools) {
                continue;
            }
            // The same mutation is in the batch: its answer is known once that is executed.
            if batch.contexts.is_empty() {
                batch.entries.push(Entry::Settled(Status::Malformed));
                continue;
            }
            let kept = batch.entries.len() + 1 - usize::from(entries);
            self.withdraw(&batch.entries[kept..]);
            let is_job = |entry: &&Entry| matches!(entry, Entry::Job { .. });
            let back = batch.entries[kept..].iter().filter(is_job).count();
            jobs.truncate(jobs.len() - back);
            batch.entries.truncate(kept);
            return Some(Stop::Before);
        }
        batch.contexts.push(opened.context(entries));
        None
    }

    /// Enters what becomes of a request, and its job if the engine executes it. False: it is about
    /// to be executed already, and nothing is entered.
    #[inline(always)]
    pub fn judge<'a>(
        &mut self,
        sender: Sender<'_>,
        record: &Record<'a>,
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Judging<'_>,
    ) -> bool {
        let is_informed = sender.directory == self.rules.directory_version;
        let offset = match record.action {
            Action::Noop => return batch.settle(Status::Alive),
            _ if !is_informed => return turn_away(Status::NewDirectory, batch, tools),
            Action::Get => 0,
            Action::Read { offset } => offset,
            Action::Mutate { .. } => {
                return self.judge_mutation(sender, record, batch, jobs, tools);
            }
        };
        let keyhash = record.keyhash;
        let may_read = self.rules.access != Access::Erew || self.owns(keyhash);
        let is_here = may_read
            && (!self.rules.checks_reads || self.rules.seed.keyhash(record.key) == keyhash);
        if !is_here {
            return turn_away(self.refusal(sender, keyhash), batch, tools);
        }
        let slot = None;
        batch.entries.push(Entry::Job { slot, offset });
        jobs.push(Job {
            keyhash,
            request: Request {
                key: record.key,
                verb: Verb::Get,
                form: Form::Native(native::Form {
                    shows_cas: record.shows_cas,
                    extent: sender.extent(offset),
                }),
            },
            out: 0,
        });
        true
    }

    /// As [`Decoder::judge`], by a directory that holds; a mutation is the owner's to execute,
    /// once, for a client that owns its address.
    #[inline(never)]
    fn judge_mutation<'a>(
        &mut self,
        sender: Sender<'_>,
        record: &Record<'a>,
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Judging<'_>,
    ) -> bool {
        let (
            Some(request),
            Action::Mutate {
                mutation, reach, ..
            },
        ) = (record.request(), record.action)
        else {
            return batch.settle(Status::Malformed);
        };
        let keyhash = record.keyhash;
        let is_here = self.owns(keyhash) && self.rules.seed.keyhash(record.key) == keyhash;
        if !is_here {
            return turn_away(self.refusal(sender, keyhash), batch, tools);
        }
        if !sender.is_proven {
            tools.figures.unproven += 1;
            return batch.settle(Status::NoToken);
        }
        let origin = Origin {
            client: sender.client,
            network: sender.peer.network(),
        };
        let verdict = (self.completions).admit(origin, (mutation, reach), keyhash, tools.now.ms);
        let slot = match verdict {
            Verdict::Execute(slot) => Some(slot),
            Verdict::Pending => return false,
            Verdict::Repeat(answer) => {
                tools.figures.repeated += 1;
                let place = batch.answers.len() as u32;
                batch.answers.push(answer);
                batch.entries.push(Entry::Repeated(place));
                return true;
            }
            Verdict::Superseded => {
                tools.figures.superseded += 1;
                return batch.settle(Status::Superseded);
            }
            Verdict::Forgotten => return batch.settle(Status::Forgotten),
            Verdict::Full => return batch.settle(Status::Overloaded),
            Verdict::TooManyWriters => return batch.settle(Status::TooManyWriters),
        };
        batch.entries.push(Entry::Job { slot, offset: 0 });
        jobs.push(Job {
            keyhash,
            request,
            out: 0,
        });
        true
    }

    /// Whether the key is in a partition of this worker's.
    #[inline(always)]
    fn owns(&self, keyhash: Keyhash) -> bool {
        self.owned[keyhash.partition(self.owned.len())]
    }

    /// What is answered to a request that this worker may not execute. Where the server directs
    /// requests, what is here has not been handed over to its owner: the mesh could not take it, or
    /// the requests of its datagram belong to several workers.
    #[cold]
    fn refusal(&self, sender: Sender<'_>, keyhash: Keyhash) -> Status {
        let is_ours = self.owns(keyhash);
        match (self.rules.direction, sender.requests) {
            (Direction::Server, 1) if !is_ours => Status::Overloaded,
            (Direction::Server, 2..) if !is_ours => Status::AskAlone,
            _ => Status::WrongPartition,
        }
    }

    /// Notes what a mutation was answered.
    #[inline]
    pub fn note(&mut self, slot: Option<CompletionSlot>, answer: &[u8]) {
        if let Some(slot) = slot {
            self.completions.settle(slot, Some(answer));
        }
    }

    /// Takes back what the completion table was told is about to be executed.
    pub fn withdraw(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Entry::Job {
                slot: Some(slot), ..
            } = *entry
            {
                self.completions.settle(slot, None);
            }
        }
    }

    fn take_fragment(
        &mut self,
        header: &RequestHeader,
        peer: &Peer,
        fragment: &Fragment<'_>,
        now: Moment,
    ) -> Taken {
        let origin = (peer.network(), header.client);
        self.assemblies
            .take(origin, header.sequence, fragment, now.ms)
    }

    #[inline]
    fn is_proven(&mut self, train: usize, peer: &Peer, token: u64, now: Moment) -> bool {
        if let Some((checked, shown, is_proven)) = self.checked
            && (checked, shown) == (train, token)
        {
            return is_proven;
        }
        let is_proven = token != 0 && self.rules.token_key.admits(peer, token, now.ms);
        self.checked = Some((train, token, is_proven));
        is_proven
    }
}

/// Answers a request that was sent to the wrong place, or by a directory that no longer holds.
#[cold]
fn turn_away(status: Status, batch: &mut Batch, tools: &mut Judging<'_>) -> bool {
    tools.figures.misdirected += 1;
    batch.settle(status)
}
