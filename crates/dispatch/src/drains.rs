//! From which RX queues a core takes requests where nothing moves them to a software queue.
//!
//! An RX queue that several cores can take from, such as a socket's queue in the kernel, is itself
//! the software queue of its requests: those that one core has not taken yet are there for all.

use crate::{Intake, Plan, Read};

/// Which RX queues a core takes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drains {
    /// In each turn, in this order.
    pub reads: Vec<Read>,
    /// Only while the core has nothing else to do, one request at a time.
    pub takes: Vec<usize>,
}

impl Drains {
    /// Whether the core ever takes from this RX queue.
    pub fn has(&self, rx: usize) -> bool {
        self.reads.iter().any(|read| read.rx == rx) || self.takes.contains(&rx)
    }
}

impl Plan {
    /// From which RX queues a core takes, if each can be taken from by several cores.
    ///
    /// - A core that hands on takes nothing. Who takes from its software queue takes what it would
    ///   have put there, one request at a time.
    /// - An RX queue that no role has is left to its own core.
    pub fn drains(&self, core: usize) -> Drains {
        let mut drains = self.by_role_of(core);
        let has_none =
            |core: usize| (0..self.roles().len()).all(|of| !self.by_role_of(of).has(core));
        if !drains.has(core) && has_none(core) {
            let budget = glimmer_base::limits::DISPATCH_BATCH;
            drains.reads.insert(0, Read { rx: core, budget });
        }
        drains
    }

    fn by_role_of(&self, core: usize) -> Drains {
        let role = self.role(core);
        let mut drains = Drains::default();
        if role.intake == Intake::HandOff {
            return drains;
        }
        drains.reads.extend(&role.reads);
        for &queue in &role.takes.queues {
            let of_queue = self.role(queue);
            if of_queue.intake == Intake::HandOff {
                let one = |read: &Read| Read { budget: 1, ..*read };
                drains.reads.extend(of_queue.reads.iter().map(one));
            }
        }
        let is_new = |rx: &&usize| drains.reads.iter().all(|read| read.rx != **rx);
        drains.takes = role.takes.rx.iter().filter(is_new).copied().collect();
        drains
    }
}
