//! The clients with the real servers, if they are installed.

#[path = "support/enough.rs"]
mod enough;

use std::time::Duration;

use enough::enough;
use glimmer_comparisons::{
    client::{
        closed::{self, Burst},
        load::Pass,
        open::{self, Idle},
    },
    servers::{CONNECTIONS_MAX, Contender, Encryption, Kind, Launch, Server},
};
use glimmer_loadgen::workload::Popularity;

const KEYS: u32 = 20_000;
const IN_FLIGHT: u32 = 32;

/// Starts the server, unless it is not installed.
fn start(contender: impl Into<Contender>, threads: usize) -> Option<Server> {
    let contender = contender.into();
    if let Err(missing) = contender.version() {
        eprintln!("SKIPPED: {missing:#}");
        return None;
    }
    let (cores, arguments) = (vec![0, 1], contender.arguments_for(IN_FLIGHT));
    let launch = Launch {
        contender,
        threads,
        cores,
        memory_mib: 64,
        value_bytes: 64,
        udp: false,
        connections_max: CONNECTIONS_MAX,
        arguments,
    };
    Some(launch.start().unwrap())
}

fn drive(contender: impl Into<Contender>) {
    let Some(server) = start(contender, 1) else {
        return;
    };
    let encrypts = server.contender().encryption().is_some();
    if server.contender().kind() == Kind::Memcached {
        assert_eq!(server.settings()["reqs_per_event"], IN_FLIGHT.to_string());
    }
    let misses = server.pass(Pass::Read, 0..1000, |_| {}).unwrap().misses;
    assert_eq!(misses, 1000, "a new server is empty");
    let loaded = server.pass(Pass::Write, 0..KEYS, |_| {}).unwrap();
    assert_eq!(loaded.writes, u64::from(KEYS));
    let read = server.pass(Pass::Read, 0..KEYS, |_| {}).unwrap();
    assert_eq!((read.hits, read.misses), (u64::from(KEYS), 0));

    let single = Burst::Single {
        requests: IN_FLIGHT,
        get_share: 0.5,
    };
    for burst in [single, Burst::MultiGet { keys: 50 }] {
        let measure = |measured| {
            let plan = closed::Plan {
                connections: 10,
                cores: Vec::new(),
                burst,
                popularity: Popularity::zipf(u64::from(KEYS), 0.99),
                warm_up: Duration::from_millis(20),
                measured,
                seed: 7,
            };
            server.closed(&plan).unwrap()
        };
        let outcome = enough(Duration::from_millis(200), measure, |outcome| {
            outcome.tally.hits > 0 && outcome.server_cpu_s > 0.0
        });
        assert!(
            outcome.tally.hits > 0 && outcome.tally.misses == 0,
            "{:?}",
            outcome.tally
        );
        assert!(outcome.server_cpu_s > 0.0 && outcome.client_busy() > 0.0);
    }
    let plan = open::Plan {
        connections: 10,
        burst: Burst::Single {
            requests: 1,
            get_share: 0.95,
        },
        arrivals_per_s: 2000.0,
        popularity: Popularity::uniform(u64::from(KEYS)),
        idle: Idle::Sleep,
        warm_up: Duration::from_millis(20),
        measured: Duration::from_millis(300),
        seed: 7,
    };
    let result = server.open(&plan).unwrap();
    let suite = "TLS 1.3, TLS_AES_128_GCM_SHA256";
    assert_eq!(server.encrypted(), encrypts.then_some(suite));
    assert!(
        (400..800).contains(&result.latency_ns.len()),
        "{} arrivals",
        result.latency_ns.len()
    );
}

#[test]
fn memcached_answers_right() {
    drive(Kind::Memcached);
}

#[test]
fn redis_answers_right() {
    drive(Kind::Redis);
}

#[test]
fn redis_answers_right_over_tls() {
    let encryption = Encryption::new().unwrap();
    match Contender::from(Kind::Redis).over_tls(&encryption) {
        Ok(redis) => drive(redis),
        Err(why) => eprintln!("SKIPPED: {why}"),
    }
}

#[test]
fn what_cannot_be_driven_over_tls_is_left_out() {
    let encryption = Encryption::new().unwrap();
    let left_out = Contender::from(Kind::Pogocache).over_tls(&encryption);
    let why = left_out.unwrap_err();
    assert!(why.contains("pogocache is left out"), "{why}");
}

#[test]
fn a_server_ends_with_its_handle() {
    let Some(server) = start(Kind::Memcached, 1) else {
        return;
    };
    let process = format!("/proc/{}", server.pid());
    assert!(std::path::Path::new(&process).exists());
    drop(server);
    assert!(!std::path::Path::new(&process).exists());
}

#[test]
fn a_lost_item_is_a_miss_and_not_an_error() {
    // More than memcached keeps with its smallest memory limit.
    let Some(server) = start(Kind::Memcached, 1) else {
        return;
    };
    // memcached refuses a store when its own eviction lags, which ends a pass. A few attempts make
    // room.
    let stored = (0..5).any(|_| server.pass(Pass::Write, 0..800_000, |_| {}).is_ok());
    assert!(stored, "every try was refused");
    let read = server.pass(Pass::Read, 0..800_000, |_| {}).unwrap();
    assert!(read.misses > 0 && read.hits > 0, "{read:?}");
    assert_eq!(read.operations(), 800_000);
}
