//! A server whose workers have neither threads nor sockets, and whose clock and random numbers are
//! passed in: what a simulator runs.

use crate::config::Config;
use crate::memory_plan::{MemoryPlan, Needs};
use crate::serve::{Hashing, ServeError, Surroundings, build, node_config};
use glimmer_engine::Figures;
use glimmer_node::{AdminHandler, Clock, Devices, DrivenNode};
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
}

impl DrivenServer {
    /// Assembles a server. Its workers take requests from the devices, one set for each worker; the
    /// addresses of the configuration are not bound, but native clients are served only if it has
    /// one for them. `random` is asked for what keys are hashed by, and for the keys of the
    /// native protocol.
    ///
    /// # Errors
    ///
    /// As [`serve`](crate::serve()): the settings make no sense, or there is not enough memory.
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
        let hashing = Hashing::new(config, random);
        let mut surroundings = Surroundings {
            hashing,
            clock,
            random,
            file: None,
        };
        let store = build(config, &plan, None, &mut surroundings)?;
        let tables = store.engines.iter().map(|engine| engine.figures());
        let tables = tables.collect();
        let node = node_config(config, &plan, &store, surroundings);
        Ok(DrivenServer {
            node: DrivenNode::new(node, devices, store.engines, admin)?,
            plan,
            tables,
        })
    }
}
