//! Which mutations have been executed, so that none is executed twice, and none after a newer one of its key.
//!
//! A client numbers its mutations to one port, and says with each how far back it may yet send another one again: to the oldest that it has no answer
//! to. So far back, and never less than [`NATIVE_MUTATIONS_KEPT_MIN`](glimmer_base::limits::NATIVE_MUTATIONS_KEPT_MIN) nor more than [`NATIVE_MUTATIONS_KEPT`], the ledger remembers of each mutation
//! whether it was executed, and what was answered, so that a retransmission is told the same. A number that comes late although it was not executed,
//! its datagram having been lost or overtaken, is executed unless a newer mutation of the same key has been.
//!
//! The bounds are the promise: a mutation that is older than what is remembered is refused, and a client that has been silent for
//! [`NATIVE_CLIENT_IDLE_MS`] may be forgotten when another needs its place. What clients are remembered in grows with what they have under way, within
//! a bound for all of them. Where there is no room, the network that has the most gives up its client that was heard of longest ago, if it has more than
//! who needs the room would have with it; otherwise that one is refused until others have been silent for long enough. Of a client that had to give way
//! it stays known how far it had come, so that nothing it has sent before is executed again.

mod holdings;
mod window;

use glimmer_base::limits::{NATIVE_CLIENT_IDLE_MS, NATIVE_CLIENTS_MAX, NATIVE_MUTATIONS_KEPT};
use glimmer_base::{Keyhash, short};
use glimmer_proto::native::Reach;
use holdings::Holdings;
use std::collections::{HashMap, VecDeque};
use window::{ENTRY_BYTES, Window};

/// Bytes that a client takes beside its mutations.
const CLIENT_BYTES: usize = 128;
/// Bytes that a client takes at most.
const CLIENT_BYTES_MAX: usize = CLIENT_BYTES + NATIVE_MUTATIONS_KEPT as usize * ENTRY_BYTES;

/// What was answered to a mutation: status, shape and one number of a reply, which is all that a mutation's reply has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Bytes of the reply.
    bytes: [u8; Answer::BYTES_MAX],
    length: u8,
}

impl Answer {
    /// A status, and a number or a unique, or both.
    pub const BYTES_MAX: usize = 24;

    /// Keeps a reply. False: it is no mutation's, and too long.
    #[inline]
    fn keep(&mut self, reply: &[u8]) -> bool {
        let place = self.bytes.get_mut(..reply.len());
        let fits = place.is_some();
        if let Some(place) = place {
            short::copy(place, reply);
            self.length = reply.len() as u8;
        }
        fits
    }

    /// The reply.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Who sends a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The client's own number.
    pub client: u64,
    /// Where it is, see [`Peer::network`](glimmer_transport::udp::Peer::network).
    pub network: u64,
}

struct Client {
    origin: Origin,
    heard_ms: u64,
    window: Window,
}

/// A mutation that is about to be executed: the place of its client, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The place, and behind it the number. One word: it is copied as one, soon after it has been written.
    word: u64,
}

impl Slot {
    fn new(client: u32, mutation: u32) -> Slot {
        Slot {
            word: u64::from(client) << 32 | u64::from(mutation),
        }
    }

    fn client(self) -> usize {
        (self.word >> 32) as usize
    }

    fn mutation(self) -> u32 {
        self.word as u32
    }
}

/// What is to be done with a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Execute it, and then settle the slot.
    Execute(Slot),
    /// It has been executed, and this was answered.
    Repeat(Answer),
    /// It is about to be executed.
    Pending,
    /// A newer one of its key has been executed.
    Superseded,
    /// It is older than what is remembered, or another one had its number.
    Forgotten,
    /// There is no place for another client, or for as many mutations as this one has under way.
    Full,
}

/// What one worker remembers of the mutations it executed.
pub struct Ledger {
    /// By client: its place.
    places: HashMap<u64, u32>,
    clients: Vec<Client>,
    /// Places of clients that have been forgotten.
    free: Vec<u32>,
    /// What each network has of the bytes and places.
    holdings: Holdings,
    /// Clients that had to give way, and their newest mutations, the last of them at the end.
    displaced: VecDeque<(u64, u32)>,
    bytes: usize,
    bytes_max: usize,
    /// Until then no client has been silent for so long that it may be forgotten.
    busy_until_ms: u64,
    /// The client that was looked up last.
    last: Option<(u64, u32)>,
}

impl Ledger {
    /// A ledger of at most so many bytes, but with room for one client at least.
    pub fn new(bytes_max: usize) -> Ledger {
        Ledger {
            places: HashMap::new(),
            clients: Vec::new(),
            free: Vec::new(),
            holdings: Holdings::default(),
            displaced: VecDeque::new(),
            bytes: 0,
            bytes_max: bytes_max.max(CLIENT_BYTES_MAX),
            busy_until_ms: 0,
            last: None,
        }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Looks a mutation up, and enters it if it is to be executed.
    pub fn admit(
        &mut self,
        origin: Origin,
        (mutation, reach): (u32, Reach),
        keyhash: Keyhash,
        now_ms: u64,
    ) -> Verdict {
        let entries = Window::entries_for(reach);
        let Some(place) = self.place(origin, mutation, entries, now_ms) else {
            return Verdict::Full;
        };
        let client = &mut self.clients[place as usize];
        client.heard_ms = now_ms;
        if client.window.len() < entries && !self.grow(place, entries, now_ms) {
            return Verdict::Full;
        }
        let key = (keyhash.0 >> 16) as u32;
        match self.clients[place as usize].window.admit(mutation, key) {
            Ok(()) => Verdict::Execute(Slot::new(place, mutation)),
            Err(verdict) => verdict,
        }
    }

    /// A mutation has been executed, and this is its answer; none: it was not executed after all.
    #[inline]
    pub fn settle(&mut self, slot: Slot, answer: Option<&[u8]>) {
        let client = &mut self.clients[slot.client()];
        client.window.settle(slot.mutation(), answer);
    }

    #[inline]
    fn place(&mut self, origin: Origin, mutation: u32, entries: usize, now_ms: u64) -> Option<u32> {
        if let Some((last, place)) = self.last
            && last == origin.client
        {
            return Some(place);
        }
        let place = match self.places.get(&origin.client) {
            Some(&place) => place,
            None => self.enter(origin, mutation, entries, now_ms)?,
        };
        self.last = Some((origin.client, place));
        Some(place)
    }

    #[cold]
    fn enter(&mut self, origin: Origin, mutation: u32, entries: usize, now_ms: u64) -> Option<u32> {
        let bytes = CLIENT_BYTES + entries * ENTRY_BYTES;
        while self.places.len() >= NATIVE_CLIENTS_MAX || self.bytes + bytes > self.bytes_max {
            self.make_way(origin.network, (1, bytes), None, now_ms)?;
        }
        self.take(origin.network, 1, bytes);
        let displaced = self.displaced.iter();
        let came_to = displaced.rev().find(|(client, _)| *client == origin.client);
        let newcomer = Client {
            origin,
            heard_ms: now_ms,
            window: match came_to {
                Some(&(_, newest)) => Window::behind(newest, entries),
                None => Window::before(mutation, entries),
            },
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.clients[place as usize] = newcomer;
                place
            }
            None => {
                self.clients.push(newcomer);
                self.clients.len() as u32 - 1
            }
        };
        self.places.insert(origin.client, place);
        Some(place)
    }

    #[cold]
    fn grow(&mut self, place: u32, entries: usize, now_ms: u64) -> bool {
        let client = &self.clients[place as usize];
        let network = client.origin.network;
        let bytes = (entries - client.window.len()) * ENTRY_BYTES;
        while self.bytes + bytes > self.bytes_max {
            let kept = Some(place);
            if (self.make_way(network, (0, bytes), kept, now_ms)).is_none() {
                return false;
            }
        }
        self.take(network, 0, bytes);
        self.clients[place as usize].window.grow(entries);
        true
    }

    fn take(&mut self, network: u64, places: usize, bytes: usize) {
        self.bytes += bytes;
        self.holdings.add(network, places, bytes);
    }

    /// Has a client give up its place, for one of `network` that needs so many places and bytes, but not the one at `kept`: a client that has been silent
    /// for long enough, or one of those who have the most. None: there is nobody.
    fn make_way(
        &mut self,
        network: u64,
        needed: (usize, usize),
        kept: Option<u32>,
        now_ms: u64,
    ) -> Option<()> {
        if self.forget_silent(kept, now_ms) {
            return Some(());
        }
        let of_all = (NATIVE_CLIENTS_MAX, self.bytes_max);
        let most = self.holdings.heavier_than(network, needed, of_all)?;
        // Whoever was heard of now may have a mutation that is about to be executed: its slot has to stay its own.
        let may_go = |place, client: &Client| {
            client.origin.network == most && client.heard_ms < now_ms && Some(place) != kept
        };
        let place = self.longest_silent(may_go)?;
        let Client { origin, window, .. } = &self.clients[place as usize];
        if self.displaced.len() == NATIVE_CLIENTS_MAX {
            self.displaced.pop_front();
        }
        self.displaced.push_back((origin.client, window.newest()));
        self.forget(place);
        Some(())
    }

    /// Forgets the client that was heard of longest ago, if that is long enough.
    fn forget_silent(&mut self, kept: Option<u32>, now_ms: u64) -> bool {
        if now_ms < self.busy_until_ms {
            return false;
        }
        let Some(place) = self.longest_silent(|place, _| Some(place) != kept) else {
            return false;
        };
        let until_ms = self.clients[place as usize].heard_ms + NATIVE_CLIENT_IDLE_MS;
        if now_ms < until_ms {
            self.busy_until_ms = until_ms;
            return false;
        }
        self.forget(place);
        true
    }

    fn longest_silent(&self, may_go: impl Fn(u32, &Client) -> bool) -> Option<u32> {
        let known = self.places.values().copied();
        let known = known.filter(|&place| may_go(place, &self.clients[place as usize]));
        known.min_by_key(|&place| self.clients[place as usize].heard_ms)
    }

    fn forget(&mut self, place: u32) {
        let client = &mut self.clients[place as usize];
        let bytes = CLIENT_BYTES + client.window.len() * ENTRY_BYTES;
        client.window = Window::none();
        let Origin { client, network } = client.origin;
        self.bytes -= bytes;
        self.holdings.remove(network, 1, bytes);
        self.places.remove(&client);
        self.free.push(place);
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: u64 = 77;

    fn execute(ledger: &mut Ledger, mutation: u32, key: u64) {
        match admit(ledger, CLIENT, mutation, key) {
            Verdict::Execute(slot) => {
                ledger.settle(slot, Some(&mutation.to_le_bytes()));
            }
            other => panic!("mutation {mutation}: {other:?}"),
        }
    }

    /// Of a client that does not say how far it reaches back.
    fn admit(ledger: &mut Ledger, client: u64, mutation: u32, key: u64) -> Verdict {
        ledger.admit(of(client), (mutation, Reach::UNKNOWN), hash(key), 0)
    }

    fn of(client: u64) -> Origin {
        Origin { client, network: 0 }
    }

    fn ledger() -> Ledger {
        Ledger::new(4 * CLIENT_BYTES_MAX)
    }

    fn hash(key: u64) -> Keyhash {
        Keyhash(key << 16)
    }

    #[test]
    fn what_was_executed_is_answered_again() {
        let mut ledger = ledger();
        for mutation in [u32::MAX - 1, u32::MAX, 0, 1] {
            execute(&mut ledger, mutation, 5);
        }
        for mutation in [u32::MAX - 1, u32::MAX, 0, 1] {
            let verdict = admit(&mut ledger, CLIENT, mutation, 5);
            let mut answer = Answer::default();
            assert!(answer.keep(&mutation.to_le_bytes()));
            assert_eq!(verdict, Verdict::Repeat(answer));
        }
        // Another client's numbers are its own.
        assert!(matches!(
            admit(&mut ledger, CLIENT + 1, 0, 5),
            Verdict::Execute(_)
        ));
    }

    #[test]
    fn what_comes_late_is_executed_unless_its_key_has_changed_since() {
        let mut ledger = ledger();
        execute(&mut ledger, 10, 1);
        execute(&mut ledger, 14, 2);
        execute(&mut ledger, 12, 1);
        assert_eq!(
            admit(&mut ledger, CLIENT, 11, 1),
            Verdict::Superseded,
            "12 is newer"
        );
        execute(&mut ledger, 13, 1);
        execute(&mut ledger, 11, 3);
        // A number before the first one that was heard of.
        execute(&mut ledger, 9, 4);
        assert_eq!(admit(&mut ledger, CLIENT, 8, 1), Verdict::Superseded);
    }

    /// Two processes may share a client by accident, as after a fork.
    #[test]
    fn another_mutation_of_the_same_number_is_not_told_that_it_was_executed() {
        let mut ledger = ledger();
        execute(&mut ledger, 3, 1);
        assert_eq!(admit(&mut ledger, CLIENT, 3, 2), Verdict::Forgotten);
        assert!(matches!(
            admit(&mut ledger, CLIENT, 3, 1),
            Verdict::Repeat(_)
        ));
    }

    #[test]
    fn what_is_about_to_be_executed_is_not_begun_again() {
        let mut ledger = ledger();
        let Verdict::Execute(slot) = admit(&mut ledger, CLIENT, 3, 1) else {
            panic!("it is new");
        };
        assert_eq!(admit(&mut ledger, CLIENT, 3, 1), Verdict::Pending);
        ledger.settle(slot, None);
        execute(&mut ledger, 3, 1);
    }

    #[test]
    fn what_is_too_old_is_refused_not_executed() {
        let mut ledger = ledger();
        execute(&mut ledger, 0, 1);
        execute(&mut ledger, NATIVE_MUTATIONS_KEPT - 1, 2);
        assert!(matches!(
            admit(&mut ledger, CLIENT, 0, 1),
            Verdict::Repeat(_)
        ));
        execute(&mut ledger, NATIVE_MUTATIONS_KEPT, 3);
        assert_eq!(admit(&mut ledger, CLIENT, 0, 1), Verdict::Forgotten);
        // A leap leaves nothing of what was before.
        execute(&mut ledger, 10 * NATIVE_MUTATIONS_KEPT + 5, 4);
        for back in 1..NATIVE_MUTATIONS_KEPT {
            execute(
                &mut ledger,
                10 * NATIVE_MUTATIONS_KEPT + 5 - back,
                100 + u64::from(back),
            );
        }
    }

    #[test]
    fn only_a_silent_client_gives_its_place_away() {
        let mut ledger = Ledger::new(2 * CLIENT_BYTES_MAX);
        let admit = |ledger: &mut Ledger, client, now_ms| match ledger.admit(
            of(client),
            (1, Reach::UNKNOWN),
            hash(1),
            now_ms,
        ) {
            Verdict::Execute(slot) => {
                ledger.settle(slot, Some(&[1]));
                true
            }
            Verdict::Repeat(_) => true,
            Verdict::Full => false,
            other => panic!("{other:?}"),
        };
        assert!(admit(&mut ledger, 1, 0) && admit(&mut ledger, 2, 1));
        let bytes = ledger.bytes();
        assert!(!admit(&mut ledger, 3, NATIVE_CLIENT_IDLE_MS - 1));
        assert!(admit(&mut ledger, 1, NATIVE_CLIENT_IDLE_MS - 1));
        assert!(admit(&mut ledger, 3, NATIVE_CLIENT_IDLE_MS + 1));
        assert!(!admit(&mut ledger, 2, NATIVE_CLIENT_IDLE_MS + 1));
        assert_eq!(ledger.bytes(), bytes);
    }

    /// In memory for twenty clients with all that a client may have under way, hundreds write that have one mutation under way each.
    #[test]
    fn hundreds_of_light_writers_fit() {
        let bytes_max = 20 * CLIENT_BYTES_MAX;
        let mut ledger = Ledger::new(bytes_max);
        for mutation in 0..100 {
            for client in 0..900 {
                let verdict = ledger.admit(of(client), (mutation, Reach::over(1)), hash(1), 0);
                let Verdict::Execute(slot) = verdict else {
                    panic!("mutation {mutation} of client {client}: {verdict:?}");
                };
                ledger.settle(slot, Some(&[1]));
            }
        }
        assert!(ledger.bytes() <= bytes_max);
    }

    /// What is admitted with it in a batch must not take its place.
    #[test]
    fn who_is_about_to_execute_something_does_not_give_way() {
        let mut ledger = Ledger::new(2 * CLIENT_BYTES_MAX);
        let mut ask = |network, client, now_ms| {
            let origin = Origin { client, network };
            ledger.admit(origin, (1, Reach::UNKNOWN), hash(1), now_ms)
        };
        let is_admitted = |verdict| matches!(verdict, Verdict::Execute(_));
        assert!(is_admitted(ask(7, 1, 5)) && is_admitted(ask(7, 2, 5)));
        assert_eq!(ask(8, 3, 5), Verdict::Full);
        assert!(is_admitted(ask(8, 3, 6)));
    }

    /// One machine may call itself any number of clients. It has what nobody else needs.
    #[test]
    fn who_has_the_most_gives_way_to_who_has_less() {
        let mut ledger = Ledger::new(20 * CLIENT_BYTES_MAX);
        let mut ask = |network, client, mutation| {
            let origin = Origin { client, network };
            let reach = (mutation, Reach::UNKNOWN);
            let verdict = ledger.admit(origin, reach, hash(client), client);
            if let Verdict::Execute(slot) = verdict {
                ledger.settle(slot, Some(&[1]));
            }
            assert!(ledger.bytes() <= ledger.bytes_max);
            verdict
        };
        let is_executed = |verdict| matches!(verdict, Verdict::Execute(_));
        let of_one = (0..40).filter(|&client| is_executed(ask(7, client, 5)));
        assert_eq!(of_one.count(), 20);
        let of_other = (100..140).filter(|&client| is_executed(ask(8, client, 5)));
        assert_eq!(of_other.count(), 10);
        assert_eq!(ask(7, 41, 5), Verdict::Full);
        // Of the first one's clients those are left that were heard of last.
        assert!(matches!(ask(7, 19, 5), Verdict::Repeat(_)));
        // One that had to give way comes back when there is room; what it sent before is not executed again.
        let later = Origin {
            client: 3,
            network: 9,
        };
        let mut again = |mutation| {
            let verdict = ledger.admit(later, (mutation, Reach::over(1)), hash(3), 141);
            if let Verdict::Execute(slot) = verdict {
                ledger.settle(slot, Some(&[1]));
            }
            verdict
        };
        assert_eq!(again(5), Verdict::Forgotten);
        assert_eq!(again(4), Verdict::Forgotten);
        assert!(is_executed(again(6)));
        assert!(matches!(again(6), Verdict::Repeat(_)));
    }

    /// A client grows as far as there is room. Then it is refused what it has more of, and nothing else; until others have been silent for long enough.
    #[test]
    fn growth_is_bounded_by_what_all_may_have() {
        let bytes_max = 2 * CLIENT_BYTES_MAX;
        let mut ledger = Ledger::new(bytes_max);
        let mut ask = |client, mutation, reach, now_ms| {
            let verdict = ledger.admit(of(client), (mutation, reach), hash(1), now_ms);
            if let Verdict::Execute(slot) = verdict {
                ledger.settle(slot, Some(&[1]));
            }
            assert!(ledger.bytes() <= bytes_max);
            verdict
        };
        let (all, one) = (Reach::over(1024), Reach::over(1));
        let is_executed = |verdict| matches!(verdict, Verdict::Execute(_));
        assert!(is_executed(ask(1, 7, one, 0)));
        assert!(is_executed(ask(2, 7, one, 0)));
        assert!(is_executed(ask(1, 8, all, 0)));
        // It is heard of later than the first, so that the first is the one to be forgotten.
        assert!(is_executed(ask(3, 7, one, 1)));
        assert_eq!(ask(2, 8, all, 0), Verdict::Full);
        assert!(matches!(ask(2, 7, one, 0), Verdict::Repeat(_)));
        assert!(
            matches!(ask(1, 7, one, 0), Verdict::Repeat(_)),
            "it has grown since"
        );
        assert!(is_executed(ask(2, 8, one, NATIVE_CLIENT_IDLE_MS)));
        assert!(is_executed(ask(2, 9, all, NATIVE_CLIENT_IDLE_MS)));
        assert!(
            is_executed(ask(1, 8, one, NATIVE_CLIENT_IDLE_MS)),
            "it was forgotten"
        );
    }

    /// Mutations in any order, lost and doubled, as a client sends them that has more or less under way: each is executed once, and whatever it sends
    /// again before it has an answer is answered.
    #[test]
    fn what_a_client_reaches_back_for_is_known() {
        for seed in 1..=40u64 {
            let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut draw = |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % below
            };
            let mut ledger = ledger();
            let mut executed = std::collections::HashSet::new();
            // What was sent, with its reach, and whether it has been answered.
            let mut sent: Vec<(u32, Reach, bool)> = Vec::new();
            let first = u32::MAX - 300;
            for _ in 0..4000 {
                let oldest = sent.iter().position(|&(_, _, is_answered)| !is_answered);
                let under_way = oldest.map_or(0, |oldest| sent.len() - oldest);
                let under_way_max = [1, 20, 300][draw(3) as usize];
                if under_way < under_way_max {
                    let number = first.wrapping_add(sent.len() as u32);
                    sent.push((number, Reach::over(under_way + 1), false));
                }
                // Mostly something that has no answer; sometimes something old arrives once more.
                let from = oldest.unwrap_or(0).saturating_sub(40);
                let which = from + draw((sent.len() - from) as u64) as usize;
                let (number, reach, is_answered) = sent[which];
                let answer = number.to_le_bytes();
                match ledger.admit(of(CLIENT), (number, reach), hash(number.into()), 0) {
                    Verdict::Execute(slot) => {
                        assert!(executed.insert(number), "seed {seed}: {number} twice");
                        ledger.settle(slot, Some(&answer));
                    }
                    Verdict::Repeat(repeated) => assert_eq!(repeated.bytes(), answer),
                    verdict => assert!(is_answered, "seed {seed}: {number}: {verdict:?}"),
                }
                // Of the answers, some are lost.
                sent[which].2 |= draw(3) > 0;
            }
            assert!(executed.len() > 100);
        }
    }
}
