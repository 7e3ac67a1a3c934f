//! Large values that are received where they will lie: which connections have a place in the table
//! for one, and which wait for one.
//!
//! A connection gets a place when its request has announced the value, and what has arrived of it
//! moves there. From then on the connection receives into the place, and holds nothing but the
//! request's line. If such values take as much of the table as they may, later ones wait with their
//! sockets unread, those first that have waited for longest. While some wait at any worker, a
//! connection that has a place is closed if its client has sent nothing for
//! [`UPLOAD_IDLE_MS_MAX`], or has been slow for [`UPLOAD_SLOW_MS_MAX`].
//!
//! The commands of a long transaction get their places in the same way ([`queue`](super::queue)).
//!
//! Room for a place is made over several turns. In each, a bounded number of items leave
//! ([`ROOM_ITEMS_PER_TURN`]), so that other clients do not wait while a value takes the place of
//! tens of thousands. One connection of a worker at a time makes room, until it has its place.
//! Those that come later wait for that, as they would take the room.
//!
//! A place is in the key's partition. Where only one worker may write there, the connection visits
//! it for the place, and again when the value is complete. Any worker may receive into the place.

use std::collections::VecDeque;

use glimmer_base::limits::{
    BUFFER_BYTES, ROOM_ITEMS_PER_TURN, SHORT_TICK_MS, TURN_LARGE_BYTES_MAX, UPLOAD_IDLE_MS_MAX,
    UPLOAD_SLOW_MS_MAX,
};
use glimmer_engine::{Announced, Begun};

use super::Streams;
use super::connection::{Connection, Turn};
use super::incoming::{Incoming, LargeValue};
use super::key::ConnectionKey;
use super::queue::Search;
use super::ready::Lane;
use crate::core::Core;

/// What became of a question for a place.
enum Asked {
    /// The connection goes on: it has a place, or receives into its buffer.
    Settled,
    /// It is to ask again in a later turn: room is being made, for it or for another one.
    Later,
    /// There is no room for the value now.
    Full,
    /// The connection has left for the worker that may give it a place.
    Left,
}

/// Connections that wait for places.
#[derive(Default)]
pub(super) struct WaitingUploads {
    /// Those that have waited for longest first.
    queue: VecDeque<ConnectionKey>,
    /// When they ask again, in milliseconds since the epoch.
    retry_ms: u64,
    /// Places that had been given up when they last asked.
    ended: u64,
    /// What the keys are made of by which places for commands are found.
    place_seed: u64,
    /// When connections that keep their places without progress are looked for again.
    search_ms: u64,
    room: MakingRoom,
}

/// Who makes room for a place, and how much more in this turn.
#[derive(Default)]
struct MakingRoom {
    /// Items that may leave.
    items_left: u64,
    maker: Option<ConnectionKey>,
}

impl MakingRoom {
    /// Whether this connection may make room now.
    fn is_open_to(&self, key: ConnectionKey) -> bool {
        self.items_left > 0 && self.maker.is_none_or(|maker| maker == key)
    }

    /// This connection has more room to make.
    fn go_on(&mut self, key: ConnectionKey) {
        self.maker = Some(key);
    }

    /// This connection needs no more room, or gets none.
    fn end(&mut self, key: ConnectionKey) {
        self.maker.take_if(|maker| *maker == key);
    }
}

impl Streams {
    /// Goes on with the large value of a connection: asks for a place, and receives. Returns the
    /// number of bytes if there is nothing to be parsed now.
    #[cold]
    #[inline(never)]
    pub(super) fn go_on_with_upload(
        &mut self,
        key: ConnectionKey,
        core: &mut Core,
    ) -> Option<usize> {
        if !self.begin_upload(key, core) {
            return Some(match self.waiting_uploads.room.is_open_to(key) {
                true => 0,
                // That was the share of its lane in this turn.
                false => core.slice_bytes().min(TURN_LARGE_BYTES_MAX),
            });
        }
        if !self.connections[key].is_runnable() {
            // Only what the poller has announced is received, so that it announces the rest.
            self.settle(key, core);
            return Some(0);
        }
        let connection = &mut self.connections[key];
        if connection.rx.missing_in_place() == 0 {
            return None;
        }
        // Of a client that sends faster than that, another worker receives the rest.
        let bytes_max = match self.worker_for_value(key, core) {
            Some(_) => core.slice_bytes().min(BUFFER_BYTES),
            None => core.slice_bytes(),
        };
        let connection = &mut self.connections[key];
        let pool = &mut core.memory.pool;
        let bytes;
        if connection.rx.has_ahead() {
            bytes = connection.rx.take_ahead_in_place(bytes_max, pool);
        } else {
            bytes = connection.receive_in_place(bytes_max, pool, core.now.ms);
            core.tally.bytes_read += bytes as u64;
        }
        let is_complete = connection.rx.missing_in_place() == 0;
        if is_complete && connection.is_runnable() {
            return None;
        }
        match self.worker_for_value(key, core) {
            Some(worker) => self.depart(key, worker, core),
            None => self.settle(key, core),
        }
        Some(bytes)
    }

    /// A turn begins, in which room may be made again.
    #[inline]
    pub fn begin_to_make_room(&mut self) {
        let room = &mut self.waiting_uploads.room;
        room.items_left = ROOM_ITEMS_PER_TURN;
        if let Some(maker) = room.maker {
            let goes_on = |connection: &Connection| {
                connection.rx.awaits_place()
                    && connection.turn == Turn::Queued
                    && connection.throttled_since_ms.is_none()
            };
            // Otherwise it is gone, or is held back.
            (room.maker).take_if(|_| !self.connections.get(maker).is_some_and(goes_on));
        }
    }

    /// Asks for a place for the value that a connection has announced, if it has. Returns false if
    /// the connection has to wait, or has left for the worker that has the place.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_upload(&mut self, key: ConnectionKey, core: &mut Core) -> bool {
        if !self.connections[key].rx.awaits_place() {
            return true;
        }
        let is_visitor = self.connections[key].visit.is_some();
        let is_maker = self.waiting_uploads.room.maker == Some(key);
        let asked = match core.shared.places.are_awaited() && !is_visitor && !is_maker {
            // Others came first.
            true => Asked::Full,
            false => self.ask(key, core),
        };
        match asked {
            Asked::Later => self.ask_later(key, core),
            Asked::Full if is_visitor => {
                self.connections[key].is_wanted_at_home = true;
                self.settle(key, core);
            }
            Asked::Full => self.await_place(key, core),
            Asked::Left => {}
            Asked::Settled => return true,
        }
        false
    }

    /// Has a connection ask for a place in a later turn.
    fn ask_later(&mut self, key: ConnectionKey, core: &mut Core) {
        self.connections[key].turn = Turn::Queued;
        match self.waiting_uploads.room.maker == Some(key) {
            true => self.ready.push_first(key, Lane::Large),
            false => self.ready.push(key, Lane::Large),
        }
        self.settle(key, core);
    }

    /// Asks for a place for the value that a connection has announced, or for the commands of its
    /// transaction.
    fn ask(&mut self, key: ConnectionKey, core: &mut Core) -> Asked {
        let connection = &mut self.connections[key];
        let WaitingUploads {
            place_seed, room, ..
        } = &mut self.waiting_uploads;
        let announcement = match connection.rx.value.as_deref_mut() {
            Some(LargeValue::Announced(announcement)) => announcement,
            Some(LargeValue::Queue(_)) if !room.is_open_to(key) => return Asked::Later,
            Some(LargeValue::Queue(place)) => {
                room.end(key);
                let queue = connection.rx.queue.get_or_insert_default();
                match queue.find_place(place, (place_seed, &mut room.items_left), core) {
                    Search::Found => {
                        connection.rx.value = None;
                        connection.patience.begin_pace(core.now.ms);
                        return Asked::Settled;
                    }
                    Search::GoesOn => {
                        room.go_on(key);
                        return Asked::Later;
                    }
                    Search::Failed => {
                        place.is_refused = true;
                        return Asked::Full;
                    }
                }
            }
            _ => return Asked::Settled,
        };
        let layout = core.plan.layout();
        if !layout.may_run(core.me, announcement.keyhash, false) {
            room.end(key);
            let owner = layout.home(core.me, announcement.keyhash);
            return self.ask_owner(key, owner, core);
        }
        if !room.is_open_to(key) {
            return Asked::Later;
        }
        room.end(key);
        announcement.headway.items_left = room.items_left;
        let announced = Announced {
            key: &announcement.key,
            keyhash: announcement.keyhash,
            value_bytes: announcement.value_bytes,
            part: 1,
            now: core.now,
        };
        let begun = (core.engine).begin_upload(&announced, &mut announcement.headway);
        room.items_left = announcement.headway.items_left;
        match begun {
            Begun::Never => connection.rx.value = None,
            Begun::Again => {
                room.go_on(key);
                return Asked::Later;
            }
            Begun::Full => {
                announcement.is_refused = true;
                return Asked::Full;
            }
            Begun::Yes(upload) => {
                connection.session.parser.take_value();
                let announcement = announcement.clone();
                let pool = &mut core.memory.pool;
                let received = connection.rx.move_value(&announcement, &upload, pool);
                let incoming = Incoming { upload, received };
                connection.rx.value = Some(Box::new(LargeValue::InPlace(incoming)));
                connection.patience.begin_pace(core.now.ms);
            }
        }
        Asked::Settled
    }

    /// Has a connection visit the only worker that may give it a place. If it may not, it receives
    /// into its buffer.
    fn ask_owner(&mut self, key: ConnectionKey, owner: usize, core: &mut Core) -> Asked {
        let connection = &mut self.connections[key];
        if connection.visit.is_some() {
            return Asked::Full;
        }
        if connection.may_visit() && core.may_depart() {
            self.depart(key, owner, core);
            return Asked::Left;
        }
        connection.rx.value = None;
        Asked::Settled
    }

    /// Has a connection wait for a place, at its home. One that has asked the owner comes first
    /// again.
    pub(super) fn await_place(&mut self, key: ConnectionKey, core: &mut Core) {
        let connection = &mut self.connections[key];
        connection.turn = Turn::Queued;
        connection.compact(&mut core.memory.pool);
        connection.recharge(&mut core.memory.budget);
        let waiting = &mut self.waiting_uploads;
        match connection.rx.is_refused() {
            true => waiting.queue.push_front(key),
            false => waiting.queue.push_back(key),
        }
        waiting.retry_ms = waiting.retry_ms.min(core.now.ms + SHORT_TICK_MS);
        core.tally.uploads_postponed += 1;
        if core.shared.places.begin_wait() {
            // Others may have connections that keep their places without progress.
            core.shared.wake_all();
        }
    }

    /// Has the connections that wait for places ask again, in the order in which they came, if a
    /// place was given up or if it is time. Once one finds its partition full, none that came later
    /// asks there.
    #[cold]
    pub fn serve_waiting_uploads(&mut self, core: &mut Core) {
        let (waiting, ended) = (&mut self.waiting_uploads, core.shared.places.ended());
        let may_ask = waiting.room.maker.is_none() && ended != waiting.ended;
        if core.now.ms < waiting.retry_ms && !may_ask {
            return;
        }
        waiting.retry_ms = core.now.ms + SHORT_TICK_MS;
        let map = core.plan.layout().map;
        let (mut full, mut stay) = (Vec::new(), VecDeque::new());
        let (mut gives_up, mut all_asked) = (true, true);
        for key in std::mem::take(&mut waiting.queue) {
            let connection = self.connections.get_mut(key);
            let Some(connection) = connection.filter(|connection| connection.rx.awaits_place())
            else {
                core.shared.places.end_wait();
                continue;
            };
            if connection.rx.gives_up_place(core.now.ms) {
                // Those before it may wait for what its transaction keeps.
                self.ready.push(key, Lane::Large);
                core.shared.places.end_wait();
                continue;
            }
            if !self.waiting_uploads.room.is_open_to(key) {
                all_asked = false;
                stay.push_back(key);
                continue;
            }
            let keyhash = connection.rx.announced_keyhash();
            // Commands of transactions may lie in any partition of this worker's.
            let partition = keyhash.map(|keyhash| map.partition(keyhash));
            if full.contains(&partition) {
                stay.push_back(key);
                continue;
            }
            connection.turn = Turn::None;
            match self.ask(key, core) {
                Asked::Settled => {
                    self.connections[key].turn = Turn::Queued;
                    self.ready.push(key, Lane::Large);
                }
                Asked::Later => self.ask_later(key, core),
                Asked::Left => full.push(partition),
                Asked::Full if gives_up && self.connections[key].rx.gives_up_queue(core.now.ms) => {
                    gives_up = false;
                    core.tally.values_refused += 1;
                    self.connections[key].turn = Turn::Queued;
                    self.ready.push(key, Lane::Large);
                }
                Asked::Full => {
                    self.connections[key].turn = Turn::Queued;
                    full.push(partition);
                    stay.push_back(key);
                    continue;
                }
            }
            core.shared.places.end_wait();
        }
        self.waiting_uploads.queue = stay;
        if all_asked {
            self.waiting_uploads.ended = ended;
        }
    }

    /// While others wait for places, closes the connection that has one and has made no progress
    /// for longest, if that is long.
    #[cold]
    pub fn give_up_upload(&mut self, core: &mut Core) {
        let now_ms = core.now.ms;
        if now_ms < self.waiting_uploads.search_ms {
            return;
        }
        self.waiting_uploads.search_ms = now_ms + SHORT_TICK_MS;
        let stalled = |(key, connection): (ConnectionKey, &Connection)| {
            let awaits_client = connection.rx.has_places()
                && connection.turn == Turn::None
                && connection.phase.awaits_client();
            let idle_ms = connection.patience.idle_ms(now_ms);
            let is_stalled = idle_ms >= UPLOAD_IDLE_MS_MAX
                || connection.patience.slow_ms(now_ms) >= UPLOAD_SLOW_MS_MAX;
            (awaits_client && is_stalled).then_some((idle_ms, key))
        };
        if let Some((_, key)) = self.connections.iter().filter_map(stalled).max() {
            core.tally.stalled_kicks += 1;
            self.close(key, core);
        }
    }
}
