//! A server from a seed.

use super::{LOCKS, ServerPlan, TIGHT_MIB};
use glimmer_base::limits::{SLICE_BYTES, WATCH_BYTES_MAX};
use glimmer_dispatch::{Layout, POLICIES, Plan, Policy, Role};
use glimmer_server::evict::RULES;
use glimmer_server::{AccessMode, Mode, TableKind};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

/// Values of this many bytes and more are handed to the last workers where requests are spread by
/// size.
const LARGE_FROM: u32 = 20;
/// Those of this many bytes go to the last worker, and the others to the one in front of it.
const LARGEST_FROM: u32 = 600;

/// Spreads requests by the size of their values, in ranges that never change.
#[derive(Debug)]
pub struct BySize;

impl Policy for BySize {
    fn name(&self) -> &'static str {
        "size"
    }

    fn summary(&self) -> &'static str {
        "the workers whose sizes they are execute requests for large values"
    }

    fn check(&self, access: AccessMode) -> Result<(), &'static str> {
        match access {
            AccessMode::Crcw => Ok(()),
            _ => Err("any worker has to execute any request"),
        }
    }

    fn plan(&self, layout: Layout) -> Plan {
        let cores = layout.map.cores();
        let mut roles = vec![Role::default(); cores];
        roles[cores.saturating_sub(2)].sizes = LARGE_FROM..LARGEST_FROM;
        if cores > 1 {
            roles[cores - 1].sizes = LARGEST_FROM..u32::MAX;
        }
        Plan::by_size(layout, LARGE_FROM, roles)
    }
}

/// Draws a server.
pub fn draw(rng: &mut SmallRng) -> ServerPlan {
    let mode = *[Mode::Cache, Mode::Store].choose(rng).expect("not empty");
    let table = match mode {
        Mode::Cache if rng.random_bool(0.3) => TableKind::Memc3,
        _ => TableKind::Mica,
    };
    let is_tight = rng.random_bool(0.3);
    let access = access(rng);
    let workers = *[1, 2, 3, 4, 4].choose(rng).expect("not empty");
    ServerPlan {
        workers,
        mode,
        table,
        access,
        dispatch: dispatch(rng, access, workers),
        evict: *RULES.choose(rng).expect("not empty"),
        memory_mib: if is_tight { TIGHT_MIB } else { 16 },
        item_bytes_max: if is_tight { 64 << 10 } else { 48 << 10 },
        turn_requests: if rng.random_bool(0.3) { 2 } else { 20 },
        slice_bytes: match rng.random_range(0..3) {
            0 => SLICE_BYTES,
            1 => 100,
            _ => 30,
        },
        watch_bytes: WATCH_BYTES_MAX,
        watches_idlers: false,
        is_locked: false,
        directs_native: rng.random_bool(0.3),
        in_memory_file: false,
        is_accelerated: false,
    }
}

/// Draws how much watchers may leave unread, whether clients have to log in, and whether idle ones
/// are looked for.
pub fn draw_limits(rng: &mut SmallRng, server: &mut ServerPlan) {
    let bytes = [WATCH_BYTES_MAX, 2_000, 300];
    server.watch_bytes = *bytes.choose(rng).expect("not empty");
    server.is_locked = rng.random_bool(LOCKS);
    server.watches_idlers = rng.random_bool(0.5);
}

/// An access mode.
pub fn access(rng: &mut SmallRng) -> AccessMode {
    *AccessMode::ALL.choose(rng).expect("not empty")
}

/// A policy that works with the access mode and this many workers.
pub fn dispatch(rng: &mut SmallRng, access: AccessMode, workers: usize) -> &'static dyn Policy {
    let policies: [&'static dyn Policy; 1] = [&BySize];
    let policies = policies.iter().chain(POLICIES);
    let fit = policies.filter(|policy| policy.check(access).is_ok());
    let fit = fit.filter(|policy| policy.check_workers(workers).is_ok());
    let fit: Vec<&'static dyn Policy> = fit.copied().collect();
    *fit.choose(rng).expect("the default works with every mode")
}
