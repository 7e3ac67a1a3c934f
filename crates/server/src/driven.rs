//! A server whose workers have neither threads nor sockets, and whose clock and random numbers are
//! passed in: what a simulator runs.

use crate::config::Config;
use crate::memory_file;
use crate::memory_plan::{MemoryPlan, Needs};
use crate::serve::{Hashing, ServeError, Surroundings, build, node_config};
use crate::store_clock::StoreClock;
use glimmer_base::Moment;
use glimmer_engine::Figures;
use glimmer_hotset::Timeline;
use glimmer_node::{AdminHandler, Clock, Devices, DrivenNode};
use glimmer_store::memory::MemoryFile;
use std::sync::Arc;

/// A server that does nothing until its workers are told to take turns. Tables, engines, access
/// mode and memory plan are those that [`serve`](crate::serve()) would assemble.
pub struct DrivenServer {
    /// The workers.
    pub node: DrivenNode,
    /// How the memory is spent.
    pub plan: MemoryPlan,
    /// Each worker's figures of its tables.
    pub tables: Vec<Arc<dyn Figures>>,
    /// The file that the store lies in.
    file: Option<Arc<MemoryFile>>,
}

impl DrivenServer {
    /// Assembles a server. Its workers take requests from the devices, one set for each worker; the
    /// addresses of the configuration are not bound, but native clients are served only if it has
    /// one for them. `random` is asked for what keys are hashed by, and for the keys of the
    /// native protocol. A store that is to lie in a memory file is attached as it is found there.
    ///
    /// # Errors
    ///
    /// As [`serve`](crate::serve()): the settings make no sense, there is not enough memory, or the
    /// memory file cannot be used.
    ///
    /// # Panics
    ///
    /// As [`DrivenNode::new`].
    pub fn assemble(
        config: &Config,
        devices: Vec<Devices>,
        clock: Arc<dyn Clock>,
        admin: Arc<dyn AdminHandler>,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<DrivenServer, ServeError> {
        config.check()?;
        let plan = MemoryPlan::make(Needs::of(config))?;
        let file = memory_file::open(config, &plan)?;
        let store_clock = file.as_ref().map(|file| of_store(file, &clock));
        let clock: Arc<dyn Clock> = match &store_clock {
            Some(clock) => clock.clone(),
            None => clock,
        };
        let hashing = Hashing::new(config, &mut memory_file::numbers(file.as_deref(), random));
        let mut surroundings = Surroundings {
            hashing,
            clock,
            random,
            file: file.clone(),
        };
        let store = build(config, &plan, None, &mut surroundings)?;
        let tables = store.engines.iter().map(|engine| engine.figures());
        let tables = tables.collect();
        if let Some(clock) = &store_clock {
            clock.begin();
        }
        let node = node_config(config, &plan, &store, surroundings);
        Ok(DrivenServer {
            node: DrivenNode::new(node, devices, store.engines, admin)?,
            plan,
            tables,
            file,
        })
    }

    /// Closes the memory file, if there is one, when all workers have ended. The next server goes
    /// on with it.
    pub fn close(self) {
        let now = self.node.figures().now();
        let mut engines = self.node.into_engines();
        if let Some(file) = &self.file {
            engines.iter_mut().for_each(|engine| engine.save(now));
            file.close();
        }
    }
}

/// The clock of the store in a file, by one that is passed in.
fn of_store(file: &Arc<MemoryFile>, clock: &Arc<dyn Clock>) -> Arc<StoreClock<Shifted>> {
    let now = clock.now();
    let shifted = |epoch_unix_ms, ms: u64| Shifted {
        clock: clock.clone(),
        by_ms: ms.wrapping_sub(now.ms),
        epoch_unix_ms,
    };
    let fresh = shifted(now.epoch_unix_ms, now.ms);
    Arc::new(StoreClock::over(file, fresh, shifted))
}

/// A clock that counts from another epoch.
#[derive(Debug)]
struct Shifted {
    clock: Arc<dyn Clock>,
    /// It shows this much more, modulo 2⁶⁴.
    by_ms: u64,
    epoch_unix_ms: u64,
}

impl Clock for Shifted {
    fn now(&self) -> Moment {
        Moment {
            ms: self.clock.now().ms.wrapping_add(self.by_ms),
            epoch_unix_ms: self.epoch_unix_ms,
        }
    }

    fn unix_us(&self) -> u128 {
        self.clock.unix_us()
    }

    fn ns(&self) -> u64 {
        self.clock.ns()
    }

    fn timeline(&self) -> Timeline {
        self.clock.timeline()
    }
}
