//! Requests that arrive in streams: connections, how their bytes become batches, and the order of
//! their replies.
//!
//! | file | idea |
//! | --- | --- |
//! | `accept` | listeners, and which worker gets a new connection |
//! | `refused` | connections beyond a limit, and how each is told |
//! | `connection` | what a worker knows about one client |
//! | `handshakes`, `shakers` | encrypted connections before their first byte |
//! | `encrypted` | which of them is closed when what they hold is almost too much |
//! | `key` | the key of a connection in its worker's table |
//! | `phase` | what a connection waits for before its next request is parsed |
//! | `receive_buffer` | what has been received of a client and is not finished |
//! | `ready` | which connection is served next |
//! | `serve` | which connections are served together: receive, and run the burst |
//! | `leave` | what becomes of a connection after a burst |
//! | `settle` | what a connection waits for next, and how it ends |
//! | `burst` | from bytes to batches to replies, across connections |
//! | `intake` | what the next request is, where it belongs, and whether it may enter now |
//! | `member` | a connection, or a datagram, while it is part of a burst |
//! | `judge` | requests of users whose rights are named |
//! | `reorder`, `join` | the order of replies while other workers execute some requests |
//! | `continuation` | listings of all items and long replies, as the client takes them |
//! | `patience` | for how long a connection may hold memory, or wait for it |
//! | `postponed` | connections with administrative commands that have to wait |
//! | `send_queue` | what a connection has to be sent: bytes, and values that the table lends |
//! | `borrowers` | connections that have lent values to send, for as long as their clients take |
//! | `withheld`, `watchers` | connections that are not parsed for now, or never again |
//! | `throttle` | connections whose user or address is over its limit |
//! | `incoming` | the value that the next request brings, while it arrives |
//! | `uploads`, `places` | who receives a large value in place, and who waits for a place |
//! | `relief` | which connection gives memory up when it is short |
//! | `journey`, `visit` | connections that another worker serves for a while |
//! | `share` | connections that any worker may take, under hand-off and stealing |
//! | `moves` | connections that get another home, because the plan has changed |
//! | `registry`, `balancer` | which sockets are open, and which worker gets the next connection |

pub(crate) mod accept;
pub(crate) mod balancer;
mod borrowers;
pub(crate) mod burst;
pub(crate) mod connection;
mod continuation;
mod encrypted;
mod handshakes;
mod incoming;
mod intake;
mod join;
pub(crate) mod journey;
mod judge;
pub(crate) mod key;
mod leave;
pub(crate) mod member;
mod moves;
mod patience;
mod phase;
pub(crate) mod places;
mod postponed;
mod queue;
mod ready;
mod receive_buffer;
mod refused;
pub(crate) mod registry;
mod relief;
pub(crate) mod reorder;
pub(crate) mod send_queue;
mod serve;
mod settle;
pub(crate) mod shakers;
mod share;
mod throttle;
mod uploads;
mod visit;
mod watchers;
mod withheld;

use std::collections::VecDeque;
use std::sync::Arc;

use slotmap::SlotMap;

use crate::core::Core;
use borrowers::Borrowers;
use burst::Burst;
use connection::Connection;
use encrypted::Encrypted;
use handshakes::Handshakes;
use journey::Travels;
use key::ConnectionKey;
use moves::Leaving;
use postponed::Postponed;
use ready::{Lane, ReadyQueue};
use refused::Refused;
use throttle::Throttled;
use uploads::WaitingUploads;

/// One worker's connections, and what each waits for.
pub(crate) struct Streams {
    connections: SlotMap<ConnectionKey, Connection>,
    /// Connections to be served.
    ready: ReadyQueue,
    /// Connections that wait for memory, with the bytes they want.
    starved: VecDeque<(ConnectionKey, usize)>,
    /// The room in which none of those could go on.
    starved_room: Option<usize>,
    /// Connections whose answers are withheld, each until a time in milliseconds since the epoch,
    /// in the order of these times; some may be closed.
    withheld: VecDeque<(u64, ConnectionKey)>,
    /// Connections that wait for credit for requests to other workers.
    out_of_credit: Vec<ConnectionKey>,
    /// Connections with administrative commands that have to wait.
    postponed: Postponed,
    /// Connections that wait for the limits of their users or addresses.
    throttled: Throttled,
    /// The version of users and limits by which connections were last metered.
    limits_version: u64,
    /// Connections that wait for places for large values.
    waiting_uploads: WaitingUploads,
    borrowers: Borrowers,
    /// Connections that are shown what happens; some may be closed.
    watchers: Vec<ConnectionKey>,
    /// Those of them that were received from in this turn.
    heard: Vec<ConnectionKey>,
    /// Connections whose reorder buffers moved while forwarded replies were taken.
    moved: Vec<ConnectionKey>,
    /// Connections that may get another home since the plan has changed.
    leaving: Leaving,
    handshakes: Handshakes,
    encrypted: Encrypted,
    refused: Refused,
    burst: Burst,
    travels: Arc<Travels>,
    /// A connection was closed since this was last asked.
    has_closed: bool,
}

impl Streams {
    pub fn new(travels: Arc<Travels>) -> Streams {
        Streams {
            connections: SlotMap::with_key(),
            ready: ReadyQueue::default(),
            starved: VecDeque::new(),
            starved_room: None,
            withheld: VecDeque::new(),
            out_of_credit: Vec::new(),
            postponed: Postponed::default(),
            throttled: Throttled::default(),
            limits_version: 0,
            waiting_uploads: WaitingUploads::default(),
            borrowers: Borrowers::default(),
            watchers: Vec::new(),
            heard: Vec::new(),
            moved: Vec::new(),
            leaving: Leaving::default(),
            handshakes: Handshakes::default(),
            encrypted: Encrypted::default(),
            refused: Refused::default(),
            burst: Burst::new(),
            travels,
            has_closed: false,
        }
    }

    /// Whether there is no connection.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Whether connections wait to be served.
    #[inline]
    pub fn is_busy(&self, core: &Core) -> bool {
        let goes_on = self.has_postponed() && !core.allowance.is_overdrawn();
        let has_small = self.ready.len(Lane::Small) > 0 || goes_on;
        has_small || self.may_serve_large(core) || self.leaving.is_busy() || self.has_handshakes()
    }

    /// Whether connections with large requests wait to be served, and may be.
    #[inline]
    fn may_serve_large(&self, core: &Core) -> bool {
        self.ready.len(Lane::Large) > 0 && !core.shared.homeward.is_full(core.me)
    }

    /// Whether a connection waits for this worker to take it, or to be served now that others have
    /// arrived at their homes.
    #[inline]
    pub fn has_travellers(&self, core: &Core) -> bool {
        self.travels.has_travellers(core.me) || self.has_shared(core) || self.may_serve_large(core)
    }

    /// Whether a connection was closed since this was last asked.
    #[inline]
    pub fn take_closed(&mut self) -> bool {
        std::mem::take(&mut self.has_closed)
    }
}
