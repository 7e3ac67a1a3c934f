//! Requests under way: what is sent when, and which answer belongs to which.

mod answers;
mod bounces;
mod departures;

use crate::Settings;
use crate::flight::{Flight, Phase};
use crate::health::Health;
use crate::lane::Lane;
use crate::outbound::Groups;
use crate::pace::Pace;
use crate::parcel::{Packing, Parcels};
use glimmer_base::limits::{KEY_BYTES_MAX, PARTITIONS_MAX};
use glimmer_proto::native::request::{Action, Change};
use glimmer_proto::native::{Directory, Reach, Record, Reply, Status};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;

/// Places for requests under way. A sequence number names a place and how often it has been used; the bit between is that of datagrams with several
/// requests, which have places of their own.
pub(crate) const FLIGHTS_MAX: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 17;
/// From one use of a place to the next.
const SEQUENCE_STEP: u32 = 2 << PLACE_BITS;

/// What is asked of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// The key, 1 to 250 bytes of any kind.
    pub key: &'a [u8],
    /// What is to be done.
    pub what: What<'a>,
    /// Whether the answer is to show the item's CAS unique.
    pub shows_cas: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// Read the value.
    Get,
    /// Change what is stored.
    Change(Change<'a>),
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The key is empty or too long; nothing was sent.
    Key,
    /// The item is larger than the server takes; nothing was sent.
    TooLarge,
    /// There was no answer in time. A change may have been carried out.
    Silent,
    /// Nothing listens at the server's port. A change that was sent more than once may have been
    /// carried out before.
    Refused,
    /// The server has been silent for too long; nothing was sent.
    Away,
    /// The server has refused it for lack of room each time that it was sent, until it was given up. Not carried out.
    Overloaded,
    /// The server remembers the changes of as many clients as it has room for, and this one is not among them. Not carried out.
    TooManyWriters,
    /// The server no longer knows whether the change was carried out.
    Forgotten,
    /// The runtime has ended that a client for tasks was made on. A change may have been carried out.
    Ended,
    /// The server calls the request malformed, each time that it was sent, or its answer is. A change was not carried out.
    Protocol,
}

/// What a session has done, since it was begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Requests that were taken on.
    pub asked: u64,
    /// Requests that left in a datagram with others.
    pub shared: u64,
    /// Requests that were sent again.
    pub resent: u64,
    /// Requests that had no answer in time.
    pub silent: u64,
    /// Requests that failed because nothing listened at the server's port.
    pub refused: u64,
    /// Datagrams that were nothing that was waited for: late ones, or not of this protocol.
    pub ignored: u64,
    /// Directories that were received.
    pub directories: u64,
}

/// A client of one server, without socket and clock. `T` is what comes back with an answer.
///
/// Requests that are under way at the same time have no order among one another; who needs one waits for the answer.
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
/// // It has to know the server first. Port `None` is the one that the server is known by.
/// let mut sent = Vec::new();
/// session.depart(0, &mut |port, bytes, _stride| sent.push((port, bytes.to_vec())));
/// assert_eq!(sent[0].0, None);
///
/// // What a server would answer:
/// let question = RequestHeader::read(&sent[0].1).unwrap();
/// let mut directory = ReplyHeader::to(&question, Kind::DirectoryReply, 0, 1).bytes().to_vec();
/// Directory {
///     token: 99, token_s: 3600, seed: glimmer_base::Seed(5), item_bytes_max: 1 << 20,
///     partitions: 1, mode: Mode::Cache, access: Access::Erew, direction: Direction::Client, mutation_window: 1024, ports: vec![4000],
/// }.write(&mut directory);
/// session.arrive(&directory, 10, &mut |_, _| {});
///
/// sent.clear();
/// session.depart(10, &mut |port, bytes, _stride| sent.push((port, bytes.to_vec())));
/// assert_eq!(sent[0].0, Some(4000));
/// let request = RequestHeader::read(&sent[0].1).unwrap();
/// let mut answer = ReplyHeader::to(&request, Kind::Replies, 1, 1).bytes().to_vec();
/// Reply { value: b"hello", ..Reply::bare(Status::Found) }.write(&mut answer);
/// session.arrive(&answer, 20, &mut |tag, reply| {
///     assert_eq!((tag, reply.unwrap().value), ("the greeting", &b"hello"[..]));
/// });
/// assert_eq!(session.under_way(), 0);
/// ```
pub struct Session<T> {
    settings: Settings,
    /// By which the server counts this client's changes.
    client: u64,
    directory: Option<Known>,
    /// The question for the directory that waits for its answer.
    question: Option<Question>,
    /// The sequence number of the last question. Each has the next, so that what answers one is never taken for the answer of another.
    last_question: u32,
    /// The directory that was left last.
    left: Option<Left>,
    flights: Vec<Flight<T>>,
    free: Vec<u32>,
    /// Where the sequence numbers of each place begin: who does not see them is not to guess them.
    beginnings: SmallRng,
    /// Places of requests that wait for their turn, and how many these are: some may have been given up.
    queue: VecDeque<u32>,
    queued: usize,
    pace: Pace,
    /// Places of requests that are to be sent.
    ready: VecDeque<u32>,
    /// Places of requests that wait for the directory.
    grounded: Vec<u32>,
    /// Places of requests in fragments that are to be sent.
    uploads: VecDeque<u32>,
    lanes: Vec<Lane>,
    groups: Groups,
    /// Datagrams with several requests.
    parcels: Parcels,
    packing: Packing,
    /// When requests are looked through next for those that have waited in vain.
    inspect_us: u64,
    /// The core that the next read goes to, where any will do.
    turn: usize,
    /// The segment batch that is being put together.
    segments: Vec<u8>,
    figures: Figures,
    health: Health,
    /// Nothing listened at the server's port when it was last asked.
    is_refused: bool,
}

/// The directory, as this session uses it.
struct Known {
    directory: Directory,
    /// By partition: the core that owns it. Looked up, as a division for every request costs more.
    owners: Box<[u16]>,
    version: u32,
    /// When another token is asked for.
    renew_us: u64,
    /// Whether reads may go to any port, and whether changes may.
    any_port: AnyPort,
}

/// What may go to any port.
#[derive(Clone, Copy)]
struct AnyPort {
    reads: bool,
    changes: bool,
}

/// A directory that was left for another.
#[derive(Clone, Copy)]
struct Left {
    version: u32,
    at_us: u64,
}

/// A question that is under way.
struct Question {
    sequence: u32,
    sends: u8,
    /// When it was asked first.
    asked_us: u64,
    /// When it is asked again; `None`: it is to be asked now.
    due_us: Option<u64>,
}

impl<T> Session<T> {
    /// A session that knows nothing of its server yet. `client` is to be drawn at random: the server tells clients apart by it.
    pub fn new(settings: Settings, client: u64) -> Session<T> {
        let mut rng = SmallRng::seed_from_u64(client);
        let last_question = rng.random();
        let parcels = Parcels::new(1 << PLACE_BITS, rng.random());
        Session {
            settings,
            client,
            directory: None,
            question: Some(Question::new(last_question)),
            last_question,
            left: None,
            flights: Vec::new(),
            free: Vec::new(),
            beginnings: rng,
            queue: VecDeque::new(),
            queued: 0,
            pace: Pace::new(&settings),
            ready: VecDeque::new(),
            grounded: Vec::new(),
            uploads: VecDeque::new(),
            lanes: Vec::new(),
            groups: Groups::default(),
            parcels,
            packing: Packing::new(settings.requests_per_datagram),
            inspect_us: 0,
            turn: 0,
            segments: Vec::new(),
            figures: Figures::default(),
            health: Health::new(&settings),
            is_refused: false,
        }
    }

    /// What the server says of itself, once it is known.
    pub fn directory(&self) -> Option<&Directory> {
        self.directory.as_ref().map(|known| &known.directory)
    }

    /// Whether the server has a core at this port. What comes from any other is nothing of the server's, but for what comes from the port that it is known by.
    /// Its addresses are not compared: a server that has several may answer from another than it was asked at.
    pub fn has_port(&self, port: u16) -> bool {
        self.directory()
            .is_some_and(|directory| directory.ports.contains(&port))
    }

    /// Whether requests wait for their turn. Who has very many asks the others later: their time runs from when they are asked.
    #[inline]
    pub fn has_queue(&self) -> bool {
        self.queued > 0
    }

    /// Requests that have no answer yet.
    #[inline]
    pub fn under_way(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// What was done.
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Whether the server has been silent for so long that requests fail at once.
    pub fn is_away(&self, now_us: u64) -> bool {
        self.health.is_away(now_us)
    }

    /// Takes a request on. It leaves with the next [`Session::depart`], and `tag` comes back with its answer.
    ///
    /// # Errors
    ///
    /// [`Failure::Key`] or [`Failure::TooLarge`], and the tag; [`Failure::Away`] if the server is; [`Failure::Overloaded`] if very many requests are under way.
    pub fn ask(&mut self, ask: &Ask<'_>, tag: T, now_us: u64) -> Result<(), (Failure, T)> {
        if !(1..=KEY_BYTES_MAX).contains(&ask.key.len()) {
            return Err((Failure::Key, tag));
        }
        let Some(place) = self.take_place() else {
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
            self.free.push(place);
            return Err((failure, tag));
        }
        let flight = &mut self.flights[place as usize];
        flight.tag = Some(tag);
        flight.sequence = flight.sequence.wrapping_add(SEQUENCE_STEP);
        flight.record.clear();
        record.write(&mut flight.record);
        flight.begin(matches!(ask.what, What::Get), now_us);
        self.figures.asked += 1;
        if self.pace.has_room(self.under_way() - self.queued - 1) {
            self.start(place);
        } else {
            self.flights[place as usize].phase = Phase::Queued;
            self.queue.push_back(place);
            self.queued += 1;
        }
        Ok(())
    }

    /// When [`Session::depart`] is to be called although nothing arrives; none: there is nothing to wait for.
    pub fn wakes_us(&self) -> Option<u64> {
        let question = self.question.as_ref();
        let asks = question.map(|question| question.due_us.unwrap_or(0));
        let leaves = self.has_departures().then_some(0);
        let inspects = (self.under_way() > 0).then_some(self.inspect_us);
        [asks, leaves, inspects].into_iter().flatten().min()
    }

    /// Whether something is to be sent now.
    #[inline]
    pub fn has_departures(&self) -> bool {
        let asks = |question: &Question| question.due_us.is_none();
        !self.ready.is_empty()
            || !self.uploads.is_empty()
            || self.question.as_ref().is_some_and(asks)
    }

    /// Asks for the directory anew; requests go on by the old one until it is there.
    pub fn refresh(&mut self) {
        if self.question.is_none() {
            self.last_question = self.last_question.wrapping_add(1);
            self.question = Some(Question::new(self.last_question));
        }
    }

    /// Has a request leave as soon as the server is known.
    #[inline]
    fn start(&mut self, place: u32) {
        if self.directory.is_some() {
            self.direct(place);
        } else {
            self.ground(place);
        }
    }

    /// Starts requests whose turn has come.
    #[cold]
    fn take_turns(&mut self) {
        while self.queued > 0 && self.pace.has_room(self.under_way() - self.queued) {
            let Some(place) = self.queue.pop_front() else {
                return;
            };
            if self.flights[place as usize].phase == Phase::Queued {
                self.queued -= 1;
                self.start(place);
            }
        }
    }

    fn take_place(&mut self) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        let place = self.flights.len();
        (place < FLIGHTS_MAX).then(|| {
            let uses = self.beginnings.random::<u32>() & !(SEQUENCE_STEP - 1);
            self.flights.push(Flight::free(uses | place as u32));
            place as u32
        })
    }

    /// Whether the server would not take the item, by the limit that it has told.
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

    /// Chooses the core that a request goes to, and has it leave.
    #[inline]
    fn direct(&mut self, place: u32) {
        let Session {
            directory,
            flights,
            lanes,
            ready,
            uploads,
            turn,
            ..
        } = self;
        let Some(Known {
            directory,
            owners,
            any_port,
            ..
        }) = directory
        else {
            return;
        };
        let flight = &mut flights[place as usize];
        flight.owner = owners[flight.keyhash().partition(owners.len())];
        let owner = usize::from(flight.owner);
        let may_turn = if flight.is_read {
            any_port.reads && flight.refusal != Some(Status::AskOwner)
        } else {
            if !flight.is_numbered {
                match lanes[owner].number(directory.mutation_window) {
                    Some((mutation, reach)) => flight.set_mutation(mutation, reach),
                    None => {
                        flight.phase = Phase::Held;
                        lanes[owner].held.push_back(place);
                        return;
                    }
                }
            }
            any_port.changes && flight.upload.is_none()
        };
        let core = if may_turn {
            *turn = (*turn + 1) % lanes.len();
            *turn
        } else {
            owner
        };
        flight.core = core as u16;
        flight.phase = Phase::Ready;
        match flight.upload {
            Some(_) => uploads.push_back(place),
            None => ready.push_back(place),
        }
    }

    /// Has a request wait for the directory.
    fn ground(&mut self, place: u32) {
        self.flights[place as usize].phase = Phase::Grounded;
        self.grounded.push(place);
        self.refresh();
    }

    /// Ends a request. Inlined, so that the answer reaches its taker in registers.
    #[inline(always)]
    fn finish(
        &mut self,
        place: u32,
        answer: Result<&Reply<'_>, Failure>,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        let flight = &mut self.flights[place as usize];
        if let Some(tag) = flight.tag.take() {
            on_answer(tag, answer);
        }
        self.queued -= usize::from(flight.phase == Phase::Queued);
        flight.phase = Phase::Free;
        flight.reply = None;
        flight.upload = None;
        let (owner, mutation) = (usize::from(flight.owner), flight.mutation());
        self.free.push(place);
        self.settle(owner, mutation);
        if self.queued > 0 {
            self.take_turns();
        }
    }

    /// The owner's lane has a mutation less, if it was one.
    #[inline(always)]
    fn settle(&mut self, owner: usize, mutation: Option<u32>) {
        if let Some(mutation) = mutation
            && let Some(lane) = self.lanes.get_mut(owner)
            && lane.settle(mutation)
        {
            self.release(owner);
        }
    }

    /// Ends a request that has no answer.
    #[cold]
    fn fail(
        &mut self,
        place: u32,
        failure: Failure,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        self.finish(place, Err(failure), on_answer);
    }

    /// Has changes leave that waited for others.
    #[cold]
    fn release(&mut self, core: usize) {
        for _ in 0..self.lanes[core].held.len() {
            let Some(place) = self.lanes[core].held.pop_front() else {
                return;
            };
            if self.flights[place as usize].phase == Phase::Held {
                self.direct(place);
                if self.flights[place as usize].phase == Phase::Held {
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

/// Whether a reply's time is that of a request which was sent from then on until now.
#[inline]
fn is_between(timestamp: u32, then_us: u64, now_us: u64) -> bool {
    let since_us = u32::try_from(now_us.saturating_sub(then_us)).unwrap_or(u32::MAX);
    timestamp.wrapping_sub(then_us as u32) <= since_us
}

const _: () = assert!(PARTITIONS_MAX <= u16::MAX as usize);
