//! A worker's part in the accelerator: it brings in the keys that are wanted of its partitions, and
//! takes credit for their hits.

use glimmer_base::Keyhash;
use glimmer_base::Moment;
use glimmer_base::limits::HOT_HARVEST_MS;
use glimmer_base::sync::Arc;
use glimmer_engine::Engine;
use glimmer_hotset::{Credit, Offer};

use super::Popular;
use super::accelerator::Accelerator;
use crate::shared::Shared;

/// See the module's text.
pub(crate) struct Tender {
    pub accelerator: Arc<Accelerator>,
    me: usize,
    /// When hits were last harvested, in milliseconds since the epoch.
    harvested_ms: u64,
    pub offers: Vec<Offer>,
    credits: Vec<Credit>,
}

impl Tender {
    pub fn new(accelerator: Arc<Accelerator>, me: usize) -> Tender {
        Tender {
            accelerator,
            me,
            harvested_ms: 0,
            offers: Vec::new(),
            credits: Vec::new(),
        }
    }

    /// Does what is due at the end of a turn.
    #[cold]
    pub fn tend(&mut self, now: Moment, engine: &mut dyn Engine, shared: &Shared) {
        self.accelerator.take_wanted(self.me, &mut self.offers);
        self.bring_in(now, engine, shared);
        if now.ms.saturating_sub(self.harvested_ms) >= HOT_HARVEST_MS {
            self.harvested_ms = now.ms;
            if self.accelerator.has_uncredited() {
                self.harvest(now, engine, shared.observers().popular());
            }
        }
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

    fn harvest(&mut self, now: Moment, engine: &mut dyn Engine, popular: &Popular) {
        let layout = engine.layout();
        let is_mine = |keyhash: Keyhash| layout.may_run(self.me, keyhash, false);
        self.accelerator.harvest(now, is_mine, &mut self.credits);
        for credit in self.credits.drain(..) {
            // A slot that is dead at the moment does not say what its key is. Its hits count.
            let key = credit.key.as_deref().unwrap_or_default();
            popular.credit(credit.keyhash, key, credit.value_bytes, credit.hits, now);
            engine.credit(now, credit.keyhash, key, credit.hits);
            self.accelerator.note_credited(credit.hits);
        }
    }
}
