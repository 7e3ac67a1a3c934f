//! The clients with a dummy server.

#[path = "support/enough.rs"]
mod enough;

use std::time::Duration;

use enough::enough;

use glimmer_comparisons::{
    client::{
        closed::{self, Burst},
        items,
        load::Pass,
        open::{self, Idle},
    },
    trivial::{Stall, Trivial},
};
use glimmer_loadgen::{
    load::{self, Tally},
    workload::Popularity,
};

/// Hits that show that the loop works.
const HITS_MIN: u64 = 1000;

/// A closed loop that runs until there are enough hits.
fn closed(server: &Trivial, burst: Burst) -> Tally {
    let measure = |measured| {
        let plan = closed::Plan {
            connections: 8,
            cores: Vec::new(),
            burst,
            popularity: Popularity::zipf(10_000, 0.99),
            warm_up: Duration::from_millis(50),
            measured,
            seed: 1,
        };
        server.closed(&plan).unwrap().tally
    };
    let tally = enough(Duration::from_millis(200), measure, |tally| {
        tally.hits > HITS_MIN
    });
    assert!(tally.hits > HITS_MIN, "{tally:?}");
    tally
}

#[test]
fn a_closed_loop_reads_and_writes_in_the_share_asked_for() {
    let server = Trivial::start(64, None, None).unwrap();
    let burst = Burst::Single {
        requests: 32,
        get_share: 0.95,
    };
    let tally = closed(&server, burst);
    assert_eq!(tally.misses, 0);
    let reads = tally.hits as f64 / tally.operations() as f64;
    let deviation = (0.95 * 0.05 / tally.operations() as f64).sqrt();
    assert!((reads - 0.95).abs() < 6.0 * deviation, "{reads}");
}

#[test]
fn datagrams_are_answered_many_at_a_time() {
    let server = Trivial::start_udp(64, None, false).unwrap();
    let burst = Burst::Single {
        requests: 32,
        get_share: 0.95,
    };
    let tally = closed(&server, burst);
    assert!(tally.writes > 10, "{tally:?}");
    assert_eq!((tally.misses, tally.refused), (0, 0));
    let server = Trivial::start_udp(8, None, true).unwrap();
    let tally = closed(&server, Burst::MultiGet { keys: 50 });
    assert_eq!(tally.misses, 0, "{tally:?}");
}

#[test]
fn multi_gets_count_their_keys() {
    let server = Trivial::start(32, None, None).unwrap();
    let tally = closed(&server, Burst::MultiGet { keys: 50 });
    assert_eq!((tally.misses, tally.writes), (0, 0));
}

#[test]
fn a_pass_touches_every_key_once() {
    let server = Trivial::start(64, None, None).unwrap();
    for (pass, hits, writes) in [(Pass::Write, 0, 5000), (Pass::Read, 5000, 0)] {
        let tally = load::pass(
            server.target(),
            &items(5000, 64),
            pass,
            0..5000,
            &mut |_| {},
        )
        .unwrap();
        assert_eq!((tally.hits, tally.misses, tally.writes), (hits, 0, writes));
    }
}

#[test]
fn an_open_loop_charges_a_stall_to_all_who_waited() {
    // One second of arrivals. Those of 200 ms are due during a stall and wait for 100 ms on
    // average, so the 90th percentile is exceeded by half of the arrivals in the stall. A closed
    // loop of eight connections would see eight slow replies.
    let stall = Stall {
        every: Duration::from_millis(1000),
        lasts: Duration::from_millis(200),
    };
    let server = Trivial::start(64, None, Some(stall)).unwrap();
    let plan = open::Plan {
        connections: 8,
        burst: Burst::Single {
            requests: 1,
            get_share: 0.95,
        },
        arrivals_per_s: 2000.0,
        popularity: Popularity::uniform(1000),
        idle: Idle::Sleep,
        warm_up: Duration::from_millis(100),
        measured: Duration::from_millis(2000),
        seed: 1,
    };
    let outcome = load::run(server.target(), &plan.with_values(64), None, &mut |_| {}).unwrap();
    let result = open::Latencies::from(outcome);
    let arrivals = result.latency_ns.len() as f64;
    assert!(
        (arrivals - 4000.0).abs() < 6.0 * 4000f64.sqrt(),
        "{arrivals} arrivals"
    );
    // Arrivals that waited for more than 50 ms were due in the first 150 ms of a stall. At least
    // one stall lies in the two seconds.
    let waited = arrivals - result.latency_ns.count_between(0, 50_000_000) as f64;
    assert!(waited > 300.0 * 0.7, "{waited} waited");
    assert!(result.latency_ns.max() > 150_000_000);
}
