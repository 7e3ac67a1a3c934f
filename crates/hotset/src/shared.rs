//! The body that answers from memory which it shares with the server: the workers, or a packet
//! program.

use crate::body::{Body, BodyFigures, Kept, Retracted};
use crate::controller::{Changed, Controller, Credit};
use crate::deadline::Timeline;
use crate::guard::{Epoch, Filled, Guard, Token};
use crate::layout::{HotItem, NEVER_NS, State, Tally};
use crate::lookup::Reader;
use crate::memory::Memory;
use crate::pause::Pause;
use crate::popularity::SampledRead;
use crate::prices::Prices;
use crate::{Offer, Policy};
use glimmer_base::Keyhash;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{Arc, Mutex, lock};

/// See the module's text.
#[derive(Debug)]
pub struct Shared {
    controller: Controller,
    guard: Arc<Guard>,
    readers: Readers,
    /// Where the server's time lies on the readers' clock.
    timeline: Timeline,
    /// Held during a flush, so that the time of the next one is set in the order of flushes.
    flushing: Mutex<()>,
}

/// Who answers from the slots. Each reader has a row of counts of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The workers: each looks in the slots before it parses a datagram.
    Workers,
    /// Somebody outside the process, such as a program in the kernel. What comes to a worker was
    /// passed on, so it would find nothing in the slots and does not look.
    Elsewhere,
}

impl Shared {
    /// The body of slots in this memory, all of them empty.
    pub fn new(
        memory: Arc<Memory>,
        readers: Readers,
        policy: Box<dyn Policy>,
        timeline: Timeline,
    ) -> Shared {
        let guard = Arc::new(Guard::new(memory));
        Shared {
            controller: Controller::new(guard.clone(), policy),
            guard,
            readers,
            timeline,
            flushing: Mutex::default(),
        }
    }

    fn count(&self, tally: Tally) -> u64 {
        let memory = self.guard.memory();
        let rows = (0..memory.readers()).map(|reader| memory.tallies(reader));
        rows.map(|row| row[tally as usize].load(Relaxed)).sum()
    }
}

impl Body for Shared {
    #[inline]
    fn epoch(&self) -> Epoch {
        self.guard.epoch()
    }

    #[inline]
    fn may_have(&self, keyhash: Keyhash) -> bool {
        self.guard.may_have(keyhash)
    }

    fn retract(&self, keyhash: Keyhash) -> Option<Retracted> {
        self.guard.retract(keyhash).map(Retracted::from)
    }

    fn refill(
        &self,
        retracted: Retracted,
        epoch: Epoch,
        item: Option<&HotItem<'_>>,
        now_ms: u64,
    ) -> Kept {
        match (self.controller).changed(retracted.into(), epoch, item, now_ms) {
            Changed::Refilled(filled) => filled.into(),
            Changed::LeftDead => Kept::Unfit,
            Changed::Evicted => Kept::Evicted,
        }
    }

    fn evict(&self, keyhash: Keyhash) -> bool {
        self.guard.evict(keyhash)
    }

    fn fill(&self, offer: &Offer, epoch: Epoch, item: Option<&HotItem<'_>>, now_ms: u64) -> Kept {
        match item {
            Some(item) => self.controller.fill(offer, epoch, item, now_ms).into(),
            None => {
                self.controller.refused(offer, now_ms);
                Kept::Unfit
            }
        }
    }

    fn flush(&self, flush: &mut dyn FnMut() -> Option<u64>) {
        let flushing = lock(&self.flushing);
        let control = self.guard.memory().control();
        let mut pending_ms = None;
        // Until the flush is done, the time of the one that was pending stands.
        let at_ns = Some(control.flush_at_ns());
        self.guard.flush(at_ns, || pending_ms = flush());
        control.set_flush_at_ns(pending_ms.map_or(NEVER_NS, |at_ms| self.timeline.ns(at_ms)));
        drop(flushing);
    }

    fn pause(&self, reason: Pause, is_paused: bool) {
        match is_paused {
            true => self.guard.pause(reason),
            false => self.guard.resume(reason),
        }
    }

    fn sample_every(&self) -> u32 {
        self.controller.sample_every()
    }

    fn sampled(
        &self,
        reads: &mut dyn Iterator<Item = SampledRead<'_>>,
        now_ms: u64,
        offer: &mut dyn FnMut(Offer),
    ) {
        self.controller.sampled(reads, now_ms, offer);
    }

    fn priced(&self, prices: Prices) {
        self.controller.priced(prices);
    }

    fn hits(&self) -> u64 {
        let hits = [Tally::HitGet, Tally::HitGets, Tally::HitBinary];
        hits.into_iter().map(|tally| self.count(tally)).sum()
    }

    fn harvest(
        &self,
        now_ms: u64,
        is_mine: &dyn Fn(Keyhash) -> bool,
        credit: &mut dyn FnMut(Credit),
    ) {
        self.controller.harvest(now_ms, is_mine, credit);
    }

    fn figures(&self, now_ms: u64) -> BodyFigures {
        let events = Tally::all().iter().map(|&tally| (tally, self.count(tally)));
        BodyFigures {
            slots: self.guard.memory().slots().len(),
            live: self.guard.live(self.timeline.ns(now_ms)),
            hits: self.hits(),
            events: events.collect(),
            quarantined: self.controller.quarantined(now_ms),
            paused: self.guard.pauses().collect(),
            own: Vec::new(),
        }
    }

    fn reader(&self, worker: usize) -> Option<Reader> {
        let is_mine = self.readers == Readers::Workers;
        is_mine.then(|| Reader::new(self.guard.memory().clone(), worker))
    }
}

impl From<Token> for Retracted {
    fn from(token: Token) -> Retracted {
        Retracted {
            keyhash: token.keyhash,
            slot: token.slot,
            note: token.state.raw(),
        }
    }
}

impl From<Retracted> for Token {
    fn from(retracted: Retracted) -> Token {
        Token {
            slot: retracted.slot,
            state: State::from_raw(retracted.note),
            keyhash: retracted.keyhash,
        }
    }
}

impl From<Filled> for Kept {
    fn from(filled: Filled) -> Kept {
        match filled {
            Filled::Live(_) => Kept::Live,
            Filled::Unfit(_) => Kept::Unfit,
            Filled::Outweighed | Filled::NoEntry => Kept::NoRoom,
            Filled::Busy => Kept::Late,
        }
    }
}
