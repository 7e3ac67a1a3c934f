//! The load generator, which verifies every byte of every value.

use crate::bed::{ADDRESS, PORT};
use anyhow::{Result, ensure};
use glimmer_loadgen::driver::{Address, Dialect, Target};
use glimmer_loadgen::load::{self, Pace, Pass, Plan, Requests, Tally, WarmUp};
use glimmer_loadgen::workload::{Law, Mix, Sizes, Ttl, Workload};
use std::time::Duration;

/// Keys, of which a part fits into the circuit.
const KEYS: u64 = 5000;
/// Requests in flight: sockets, and on each.
const SOCKETS: usize = 4;
const IN_FLIGHT: u32 = 4;
/// The simulation answers late, but it answers.
const REPLY_MAX: Duration = Duration::from_secs(20);
/// Requests are made for this long at a time.
const TURN: Duration = Duration::from_millis(500);

fn workload() -> Workload {
    Workload {
        keys: KEYS,
        law: Law::Zipf { exponent: 0.99 },
        key_bytes: 16,
        sizes: Sizes::Uniform(8, 200),
        mix: Mix {
            get: 0.98,
            set: 0.02,
            insert: 0.0,
            read_modify_write: 0.0,
            delete: 0.0,
            keys_per_get: 1,
            set_on_miss: false,
            ttl: Ttl::Never,
        },
    }
}

/// Makes at least this many requests over UDP, in the binary protocol.
///
/// # Errors
///
/// If an answer is wrong.
pub fn load(requests: u64, seed: u64, mut tell: impl FnMut(u64)) -> Result<Tally> {
    let workload = workload();
    let at = |address| Target::new(address, Dialect::Binary);
    let server = (ADDRESS, PORT).into();
    let fill = at(Address::Tcp(server));
    let filled = load::pass(&fill, &workload, Pass::Write, 0..KEYS, &mut |_| {})?;
    ensure!(filled.writes == KEYS, "the server refused items");
    let target = at(Address::Udp(server));
    let mut total = Tally::default();
    for turn in 0.. {
        let pace = Pace::Closed {
            in_flight: IN_FLIGHT,
        };
        let plan = Plan {
            connections: SOCKETS,
            warm_up: WarmUp::Fixed(Duration::ZERO),
            measured: Some(TURN),
            reply_max: REPLY_MAX,
            seed: seed + turn,
            ..Plan::new(Requests::Drawn(workload.clone()), pace)
        };
        let outcome = load::run(&target, &plan, None, &mut |_| {})?;
        total += outcome.tally;
        tell(total.operations());
        if total.operations() >= requests {
            break;
        }
    }
    Ok(total)
}
