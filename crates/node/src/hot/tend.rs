//! A worker's part in the accelerator: it brings in the keys that are wanted of its partitions, and
//! takes credit for their hits.
//!
//! Hits outside the process wake nobody. A worker that has just taken credit looks for more after
//! [`HOT_HARVEST_MS`], also if it has nothing else to do. If it finds none, it does not look again
//! until something else wakes it.

use std::time::Duration;

use glimmer_base::Keyhash;
use glimmer_base::Moment;
use glimmer_base::limits::{HOT_HARVEST_MS, HOT_PRICED_REQUESTS_MIN};
use glimmer_base::sync::Arc;
use glimmer_engine::Engine;
use glimmer_hotset::{Credit, Offer};

use super::Popular;
use super::accelerator::Accelerator;
use crate::admin::stats::Counts;
use crate::shared::Shared;

/// One worker's part in the accelerator.
pub(crate) struct Tender {
    pub accelerator: Arc<Accelerator>,
    me: usize,
    /// When hits were last harvested, in milliseconds since the epoch.
    harvested_ms: u64,
    /// Whether there was something to harvest the last time.
    is_hit: bool,
    /// Hits that were counted as requests of the worker although it has not seen them.
    unseen: u64,
    /// Requests that the worker has executed and CPU time that it has used, when that was last
    /// told.
    told: Option<Used>,
    pub offers: Vec<Offer>,
    credits: Vec<Credit>,
}

/// What a worker has done, and what it took.
#[derive(Clone, Copy)]
struct Used {
    requests: u64,
    cpu_ns: u64,
}

impl Tender {
    pub fn new(accelerator: Arc<Accelerator>, me: usize) -> Tender {
        Tender {
            accelerator,
            me,
            harvested_ms: 0,
            is_hit: false,
            unseen: 0,
            told: None,
            offers: Vec::new(),
            credits: Vec::new(),
        }
    }

    /// Does what is due at the end of a turn.
    #[cold]
    pub fn tend(
        &mut self,
        now: Moment,
        engine: &mut dyn Engine,
        shared: &Shared,
        tally: &mut Counts,
    ) {
        self.accelerator.take_wanted(self.me, &mut self.offers);
        self.bring_in(now, engine, shared);
        if now.ms.saturating_sub(self.harvested_ms) >= HOT_HARVEST_MS {
            self.harvested_ms = now.ms;
            self.is_hit = false;
            if self.accelerator.has_uncredited() {
                self.harvest(now, engine, shared.observers().popular(), tally);
            }
            self.tell_used(shared, tally.requests - self.unseen);
        }
    }

    /// How long the worker may sleep before it looks for hits again; `None` means without a limit.
    pub fn timer(&self) -> Option<Duration> {
        let looks_again = self.is_hit && !self.accelerator.is_read_by_workers();
        looks_again.then_some(Duration::from_millis(HOT_HARVEST_MS))
    }

    /// Brings in the keys of `offers`, or leaves them for the owners of their partitions, who may
    /// have nothing else to do.
    pub fn bring_in(&mut self, now: Moment, engine: &mut dyn Engine, shared: &Shared) {
        for offer in self.offers.drain(..) {
            let fill = &mut |epoch, item: Option<glimmer_engine::Item<'_>>| {
                self.accelerator.fill(&offer, epoch, item.as_ref(), now);
            };
            if !engine.look(now, offer.keyhash, &offer.key, fill) {
                let owner = engine.layout().map.owner(offer.keyhash);
                self.accelerator.leave(owner, offer);
                shared.doorbells[owner].wake();
            }
        }
    }

    /// Tells the accelerator what the worker's requests took: a hit saves one of them.
    fn tell_used(&mut self, shared: &Shared, requests: u64) {
        let is_enough = |told: Used| requests - told.requests >= HOT_PRICED_REQUESTS_MIN;
        if !self.told.is_none_or(is_enough) {
            return;
        }
        let work = shared.plans.work(self.me);
        let Some(cpu_ns) = work.cpu_ns(self.me, &*shared.config.clock) else {
            return;
        };
        if let Some(told) = self.told.replace(Used { requests, cpu_ns }) {
            let used_ns = cpu_ns.saturating_sub(told.cpu_ns);
            (self.accelerator).executed(used_ns, requests - told.requests);
        }
    }

    fn harvest(
        &mut self,
        now: Moment,
        engine: &mut dyn Engine,
        popular: &Popular,
        tally: &mut Counts,
    ) {
        let layout = engine.layout();
        let is_mine = |keyhash: Keyhash| layout.may_run(self.me, keyhash, false);
        self.accelerator.harvest(now, is_mine, &mut self.credits);
        self.is_hit = !self.credits.is_empty();
        let is_outside = !self.accelerator.is_read_by_workers();
        for credit in self.credits.drain(..) {
            popular.credit(&credit, now);
            // A slot that is dead at the moment does not say what its key is.
            if let Some(key) = &credit.key {
                engine.credit(now, credit.keyhash, key);
            }
            self.accelerator.note_credited(credit.hits);
            if is_outside {
                // Workers have neither parsed nor sent these. What is known of them is how long
                // the values are.
                tally.requests += credit.hits;
                self.unseen += credit.hits;
                tally.bytes_written += credit.hits * credit.value_bytes as u64;
            }
        }
    }
}
