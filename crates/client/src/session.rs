//! Requests in flight: what is sent when, and which answer belongs to which request.

mod bounces;
mod receive;
mod transmit;

use crate::Settings;
use crate::channel::Channel;
use crate::congestion::CongestionWindow;
use crate::health::Health;
use crate::in_flight::{InFlight, Phase};
use crate::outbound::Groups;
use crate::shared_datagram::{Packing, SharedDatagrams};
use glimmer_base::limits::{KEY_BYTES_MAX, PARTITIONS_MAX};
use glimmer_dispatch::PartitionMap;
use glimmer_proto::native::request::{Action, Change};
use glimmer_proto::native::{Directory, Reach, Record, Reply, Status};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;

/// Slots for requests in flight. A sequence number consists of the slot and a use count. The bit
/// between them marks datagrams with several requests, which have slots of their own.
pub(crate) const IN_FLIGHT_MAX: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 17;
/// Difference between the sequence numbers of two successive uses of a slot.
const SEQUENCE_STEP: u32 = 2 << SLOT_BITS;

/// A request for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// The key: 1 to 250 arbitrary bytes.
    pub key: &'a [u8],
    /// What to do.
    pub what: What<'a>,
    /// Whether the answer includes the item's CAS unique.
    pub shows_cas: bool,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// Read the value.
    Get,
    /// Change what is stored.
    Change(Change<'a>),
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The key is empty or too long. Nothing was sent.
    Key,
    /// The item exceeds the server's limit. Nothing was sent.
    TooLarge,
    /// No answer arrived in time. A change may have been executed.
    Silent,
    /// Nothing listens at the server's port. When one request is refused, all in flight fail. A
    /// change that was sent more than once, or while others were in flight, may have been executed.
    Refused,
    /// The server has been silent for too long. Nothing was sent.
    Away,
    /// The server refused the request for lack of room each time until the deadline. It was not
    /// executed.
    Overloaded,
    /// The server has no room to remember another client's changes. The change was not executed.
    TooManyWriters,
    /// The server no longer knows whether the change was executed.
    Forgotten,
    /// The runtime of a client for tasks has ended. A change may have been executed.
    Ended,
    /// The server called the request malformed each time, or its answer is malformed. A change was
    /// not executed.
    Protocol,
}

/// Counters of a session since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Requests issued.
    pub asked: u64,
    /// Requests that shared a datagram with others.
    pub shared: u64,
    /// Retransmissions.
    pub resent: u64,
    /// Requests that had no answer in time.
    pub silent: u64,
    /// Requests that failed because nothing listened at the server's port.
    pub refused: u64,
    /// Datagrams that matched no request: late ones, and ones that are not of this protocol.
    pub ignored: u64,
    /// Directories received.
    pub directories: u64,
}

/// A client of one server, without a socket or a clock. `T` is the caller's tag, which comes back
/// with the answer.
///
/// Requests in flight at the same time are executed in any order. A caller that needs an order
/// waits for each answer.
///
/// ```
/// use glimmer_client::{Ask, Direction, Session, Settings, What};
/// use glimmer_proto::native::directory::{Access, Mode};
/// use glimmer_proto::native::{Directory, Kind, Reply, ReplyHeader, RequestHeader, Status};
///
/// let mut session: Session<&str> = Session::new(Settings::default(), 7);
/// let ask = Ask { key: b"greeting", what: What::Get, shows_cas: false };
/// session.ask(&ask, "the greeting", 0).unwrap();
///
/// // The session first asks for the directory. Port `None` is the server's configured port.
/// let mut sent = Vec::new();
/// session.transmit(0, &mut |port, bytes, _stride| sent.push((port, bytes.to_vec())));
/// assert_eq!(sent[0].0, None);
///
/// // The answer of a server:
/// let question = RequestHeader::read(&sent[0].1).unwrap();
/// let mut directory = ReplyHeader::to(&question, Kind::DirectoryReply, 0, 1).bytes().to_vec();
/// Directory {
///     token: 99, token_s: 3600, seed: glimmer_base::Seed(5), item_bytes_max: 1 << 20,
///     partitions: 1, mode: Mode::Cache, access: Access::Erew, direction: Direction::Client,
///     mutation_window: 1024, begun_s: None, ports: vec![4000],
/// }.write(&mut directory);
/// session.receive(&directory, 10, &mut |_, _| {});
///
/// sent.clear();
/// session.transmit(10, &mut |port, bytes, _stride| sent.push((port, bytes.to_vec())));
/// assert_eq!(sent[0].0, Some(4000));
/// let request = RequestHeader::read(&sent[0].1).unwrap();
/// let mut answer = ReplyHeader::to(&request, Kind::Replies, 1, 1).bytes().to_vec();
/// Reply { value: b"hello", ..Reply::bare(Status::Found) }.write(&mut answer);
/// session.receive(&answer, 20, &mut |tag, reply| {
///     assert_eq!((tag, reply.unwrap().value), ("the greeting", &b"hello"[..]));
/// });
/// assert_eq!(session.under_way(), 0);
/// ```
pub struct Session<T> {
    settings: Settings,
    /// The client number under which the server counts this client's changes.
    client: u64,
    directory: Option<Known>,
    /// The unanswered request for the directory, if there is one.
    question: Option<Question>,
    /// The sequence number of the last request for the directory. Each new request takes the next
    /// one, so that a late answer never matches a newer request.
    last_question: u32,
    /// When the last directory arrived.
    directory_us: Option<u64>,
    /// The directory before the current one.
    left: Option<Left>,
    requests: Vec<InFlight<T>>,
    free: Vec<u32>,
    /// Draws the first sequence number of each slot, so that an attacker who cannot see the traffic
    /// cannot guess it.
    beginnings: SmallRng,
    /// Slots of requests that wait for room in the congestion window, and how many of them are
    /// still waiting: some may have been given up.
    queue: VecDeque<u32>,
    queued: usize,
    congestion: CongestionWindow,
    /// Slots of requests that are to be sent.
    ready: VecDeque<u32>,
    /// Slots of requests that wait for the directory.
    awaiting_directory: Vec<u32>,
    /// Slots of fragmented requests that are to be sent.
    uploads: VecDeque<u32>,
    channels: Vec<Channel>,
    groups: Groups,
    /// Datagrams with several requests.
    shared_datagrams: SharedDatagrams,
    packing: Packing,
    /// When to look for timed out requests next.
    inspect_us: u64,
    /// The channel for the next request that may go to any port.
    turn: usize,
    /// The segment batch under construction.
    segments: Vec<u8>,
    counters: SessionCounters,
    health: Health,
    /// Whether nothing listened at the server's port at the last attempt.
    is_refused: bool,
}

/// The directory, prepared for use by the session.
struct Known {
    directory: Directory,
    /// Which core owns each partition.
    map: PartitionMap,
    version: u32,
    /// When to ask for a new token.
    renew_us: u64,
    /// Whether reads and changes may go to any port.
    any_port: AnyPort,
}

impl Known {
    /// Whether another directory has other cores or other places for keys than this one. A server
    /// keeps these under one version. The access mode and the direction may change.
    fn differs(&self, other: &Directory) -> bool {
        let Directory {
            seed,
            partitions,
            ports,
            ..
        } = &self.directory;
        (*seed, *partitions) != (other.seed, other.partitions) || *ports != other.ports
    }
}

/// Which requests may go to any port.
#[derive(Clone, Copy)]
struct AnyPort {
    reads: bool,
    changes: bool,
}

/// A directory that another one replaced.
#[derive(Clone, Copy)]
struct Left {
    version: u32,
    at_us: u64,
}

/// A request for the directory in flight.
struct Question {
    sequence: u32,
    sends: u8,
    /// When it was first sent.
    asked_us: u64,
    /// When to send it again; `None` means now.
    due_us: Option<u64>,
}

impl<T> Session<T> {
    /// A session that does not know its server yet. `client` must be random: the server tells
    /// clients apart by it.
    pub fn new(settings: Settings, client: u64) -> Session<T> {
        let mut rng = SmallRng::seed_from_u64(client);
        let last_question = rng.random();
        let shared_datagrams = SharedDatagrams::new(1 << SLOT_BITS, rng.random());
        Session {
            settings,
            client,
            directory: None,
            question: Some(Question::new(last_question)),
            last_question,
            directory_us: None,
            left: None,
            requests: Vec::new(),
            free: Vec::new(),
            beginnings: rng,
            queue: VecDeque::new(),
            queued: 0,
            congestion: CongestionWindow::new(&settings),
            ready: VecDeque::new(),
            awaiting_directory: Vec::new(),
            uploads: VecDeque::new(),
            channels: Vec::new(),
            groups: Groups::default(),
            shared_datagrams,
            packing: Packing::new(settings.requests_per_datagram),
            inspect_us: 0,
            turn: 0,
            segments: Vec::new(),
            counters: SessionCounters::default(),
            health: Health::new(&settings),
            is_refused: false,
        }
    }

    /// The server's directory, once it is known.
    pub fn directory(&self) -> Option<&Directory> {
        self.directory.as_ref().map(|known| &known.directory)
    }

    /// Whether the server has a core at this port. Datagrams from other ports are not the server's,
    /// except those from its configured port. Addresses are not compared: a server with several
    /// addresses may answer from a different one than the client asked.
    pub fn has_port(&self, port: u16) -> bool {
        self.directory()
            .is_some_and(|directory| directory.ports.contains(&port))
    }

    /// Whether requests wait for room in the congestion window. A caller with very many requests
    /// should issue the rest later, because a request's deadline starts when it is issued.
    #[inline]
    pub fn has_queue(&self) -> bool {
        self.queued > 0
    }

    /// Requests that have no answer yet.
    #[inline]
    pub fn under_way(&self) -> usize {
        self.requests.len() - self.free.len()
    }

    /// The session's counters.
    pub fn counters(&self) -> SessionCounters {
        self.counters
    }

    /// Whether the server has been silent for so long that requests fail at once.
    pub fn is_away(&self, now_us: u64) -> bool {
        self.health.is_away(now_us)
    }

    /// Whether the server was away when it was last asked. It may have been heard since.
    #[inline]
    pub(crate) fn is_doubtful(&self) -> bool {
        self.health.is_doubtful()
    }

    /// Whether nothing has answered at the server's address lately.
    pub(crate) fn is_lost(&self) -> bool {
        self.health.is_silent() || self.is_refused
    }

    /// Issues a request. The next [`Session::transmit`] sends it, and `tag` comes back with its
    /// answer.
    ///
    /// # Errors
    ///
    /// [`Failure::Key`], [`Failure::TooLarge`], [`Failure::Away`] if the server is away, or
    /// [`Failure::Overloaded`] if all slots are in use; with the tag.
    pub fn ask(&mut self, ask: &Ask<'_>, tag: T, now_us: u64) -> Result<(), (Failure, T)> {
        if !(1..=KEY_BYTES_MAX).contains(&ask.key.len()) {
            return Err((Failure::Key, tag));
        }
        let Some(slot) = self.take_slot() else {
            return Err((Failure::Overloaded, tag));
        };
        let seed = self.directory().map(|directory| directory.seed);
        let record = Record {
            action: match ask.what {
                What::Get => Action::Get,
                What::Change(change) => Action::Mutate {
                    mutation: 0,
                    reach: Reach::UNKNOWN,
                    change,
                },
            },
            keyhash: seed.unwrap_or(glimmer_base::Seed(0)).keyhash(ask.key),
            key: ask.key,
            shows_cas: ask.shows_cas,
        };
        let refusal = if self.is_too_large(&record) {
            Some(Failure::TooLarge)
        } else if self.health.is_doubtful() && !self.health.admit(now_us) {
            Some(Failure::Away)
        } else {
            None
        };
        if let Some(failure) = refusal {
            self.free.push(slot);
            return Err((failure, tag));
        }
        let request = &mut self.requests[slot as usize];
        request.tag = Some(tag);
        request.sequence = request.sequence.wrapping_add(SEQUENCE_STEP);
        request.record.clear();
        record.write(&mut request.record);
        request.begin(matches!(ask.what, What::Get), now_us);
        self.counters.asked += 1;
        if self.congestion.has_room(self.under_way() - self.queued - 1) {
            self.start(slot);
        } else {
            self.requests[slot as usize].phase = Phase::Queued;
            self.queue.push_back(slot);
            self.queued += 1;
        }
        Ok(())
    }

    /// When [`Session::transmit`] must be called even if nothing arrives; `None` if there is
    /// nothing to wait for.
    pub fn wakes_us(&self) -> Option<u64> {
        let question = self.question.as_ref();
        let asks = question.map(|question| question.due_us.unwrap_or(0));
        let leaves = self.has_outgoing().then_some(0);
        let inspects = (self.under_way() > 0).then_some(self.inspect_us);
        [asks, leaves, inspects].into_iter().flatten().min()
    }

    /// Whether there is something to send now.
    #[inline]
    pub fn has_outgoing(&self) -> bool {
        let asks = |question: &Question| question.due_us.is_none();
        !self.ready.is_empty()
            || !self.uploads.is_empty()
            || self.question.as_ref().is_some_and(asks)
    }

    /// Asks for the directory again. The old directory stays in use until the answer arrives. A
    /// server whose directories are out of date as soon as they arrive is asked for one in each
    /// [`Settings::resend_first_us`]: a new directory may have all requests sent again.
    pub fn refresh(&mut self) {
        if self.question.is_none() {
            self.last_question = self.last_question.wrapping_add(1);
            let wait_us = self.settings.resend_first_us;
            let due_us = self.directory_us.map(|at_us| at_us.saturating_add(wait_us));
            self.question = Some(Question {
                due_us,
                ..Question::new(self.last_question)
            });
        }
    }

    /// Sends a request as soon as the directory is known.
    #[inline]
    fn start(&mut self, slot: u32) {
        if self.directory.is_some() {
            self.direct(slot);
        } else {
            self.await_directory(slot);
        }
    }

    /// Starts queued requests that now fit into the congestion window.
    #[cold]
    fn take_turns(&mut self) {
        while self.queued > 0 && self.congestion.has_room(self.under_way() - self.queued) {
            let Some(slot) = self.queue.pop_front() else {
                return;
            };
            if self.requests[slot as usize].phase == Phase::Queued {
                self.queued -= 1;
                self.start(slot);
            }
        }
    }

    fn take_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = self.requests.len();
        (slot < IN_FLIGHT_MAX).then(|| {
            let uses = self.beginnings.random::<u32>() & !(SEQUENCE_STEP - 1);
            self.requests.push(InFlight::free(uses | slot as u32));
            slot as u32
        })
    }

    /// Whether the item exceeds the limit in the server's directory.
    fn is_too_large(&self, record: &Record<'_>) -> bool {
        let Action::Mutate {
            change: Change::Store { value, .. },
            ..
        } = record.action
        else {
            return false;
        };
        self.directory().is_some_and(|directory| {
            record.key.len() + value.len() > directory.item_bytes_max as usize
        })
    }

    /// Chooses the core for a request and marks the request as ready.
    #[inline]
    fn direct(&mut self, slot: u32) {
        let Session {
            directory,
            requests,
            channels,
            ready,
            uploads,
            turn,
            settings,
            ..
        } = self;
        let Some(Known {
            directory,
            map,
            any_port,
            ..
        }) = directory
        else {
            return;
        };
        let request = &mut requests[slot as usize];
        let owner = map.owner(request.keyhash());
        request.owner = owner as u16;
        let may_turn = if request.is_read {
            any_port.reads && request.refusal != Some(Status::AskOwner)
        } else {
            if !request.is_numbered {
                match channels[owner].number(directory.mutation_window, settings.resends) {
                    Some((mutation, reach)) => request.set_mutation(mutation, reach),
                    None => {
                        request.phase = Phase::Held;
                        channels[owner].held.push_back(slot);
                        return;
                    }
                }
            }
            any_port.changes && request.upload.is_none()
        };
        let core = if may_turn {
            *turn = (*turn + 1) % channels.len();
            *turn
        } else {
            owner
        };
        request.core = core as u16;
        request.phase = Phase::Ready;
        match request.upload {
            Some(_) => uploads.push_back(slot),
            None => ready.push_back(slot),
        }
    }

    /// Makes a request wait for the directory.
    fn await_directory(&mut self, slot: u32) {
        self.requests[slot as usize].phase = Phase::AwaitingDirectory;
        self.awaiting_directory.push(slot);
        self.refresh();
    }

    /// Ends a request. Inlined, so that the answer reaches the caller in registers.
    #[inline(always)]
    fn finish(
        &mut self,
        slot: u32,
        answer: Result<&Reply<'_>, Failure>,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        let request = &mut self.requests[slot as usize];
        if let Some(tag) = request.tag.take() {
            on_answer(tag, answer);
        }
        self.queued -= usize::from(request.phase == Phase::Queued);
        request.phase = Phase::Free;
        request.reply = None;
        request.upload = None;
        let (owner, mutation) = (usize::from(request.owner), request.mutation());
        self.free.push(slot);
        self.settle(owner, mutation);
        if self.queued > 0 {
            self.take_turns();
        }
    }

    /// Records in the owner's channel that a mutation has ended.
    #[inline(always)]
    pub(super) fn settle(&mut self, owner: usize, mutation: Option<u32>) {
        if let Some(mutation) = mutation
            && let Some(channel) = self.channels.get_mut(owner)
            && channel.settle(mutation)
        {
            self.release(owner);
        }
    }

    /// Ends a request with a failure.
    #[cold]
    fn fail(
        &mut self,
        slot: u32,
        failure: Failure,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        self.finish(slot, Err(failure), on_answer);
    }

    /// Starts mutations that waited for room in the channel's window.
    #[cold]
    fn release(&mut self, core: usize) {
        for _ in 0..self.channels[core].held.len() {
            let Some(slot) = self.channels[core].held.pop_front() else {
                return;
            };
            if self.requests[slot as usize].phase == Phase::Held {
                self.direct(slot);
                if self.requests[slot as usize].phase == Phase::Held {
                    return;
                }
            }
        }
    }
}

impl Question {
    fn new(sequence: u32) -> Question {
        Question {
            sequence,
            sends: 0,
            asked_us: 0,
            due_us: None,
        }
    }
}

/// Whether a reply's timestamp lies between `then_us` and `now_us`.
#[inline]
fn is_between(timestamp: u32, then_us: u64, now_us: u64) -> bool {
    let since_us = u32::try_from(now_us.saturating_sub(then_us)).unwrap_or(u32::MAX);
    timestamp.wrapping_sub(then_us as u32) <= since_us
}

const _: () = assert!(PARTITIONS_MAX <= u16::MAX as usize);
