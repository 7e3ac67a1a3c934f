//! Real packets: a client in one network namespace, the simulated circuit, and a real server behind
//! it in another namespace.
//!
//! `GLIMMER_COSIM_READS` says how many reads are tried (2,000 unless told).

mod requests;
#[path = "../../../../tests/support/server_program.rs"]
mod server_program;
mod setup;

use requests::{Reads, Writer, binary_get, value};
use setup::Setup;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

/// Keys that are read. All of them are hot, so all are in the circuit before long.
const KEYS: usize = 8;

fn reads() -> u64 {
    let told = std::env::var("GLIMMER_COSIM_READS").ok();
    told.map_or(2000, |count| count.parse().expect("a number"))
}

fn is_served_from_the_circuit_and_never_stale(width: &str) {
    let Some(setup) = Setup::new(width) else {
        return;
    };
    let mut server = setup.server();
    let mut writer = Writer::new(&setup);
    for key in 0..KEYS {
        writer.set(key, 0);
    }
    // The last value of each key whose change was acknowledged, and the last that was sent.
    let acknowledged: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let sent: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let is_done = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Half of the keys change. Those that do not are answered from the circuit.
            for version in 1.. {
                if is_done.load(SeqCst) == 1 {
                    break;
                }
                let key = version as usize % (KEYS / 2);
                sent[key].store(version, SeqCst);
                writer.set(key, version);
                acknowledged[key].store(version, SeqCst);
                thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        let mut client = Reads::new(&setup);
        for read in 0..reads() {
            let key = read as usize % KEYS;
            let oldest = acknowledged[key].load(SeqCst);
            let reply = client.get(key);
            let newest = sent[key].load(SeqCst);
            let version = reply.version(key);
            assert!(
                (oldest..=newest).contains(&version),
                "read {read} of key {key}: {version} is not from {oldest} to {newest}"
            );
        }
        // A key that nobody has stored.
        assert!(client.get(KEYS + 1).is_miss());
        is_done.store(1, SeqCst);
    });
    let mut writer = Writer::new(&setup);
    let figure = |name: &str, writer: &mut Writer| writer.statistic(name).parse::<u64>().unwrap();
    let hits = figure("hits", &mut writer);
    println!(
        "width {width}: {} reads, {hits} answered by the circuit",
        reads()
    );
    assert!(hits > reads() / 10, "{hits}");
    assert!(figure("misses", &mut writer) > 0);
    assert!(figure("cycles", &mut writer) > 0);
    assert!(figure("retracts", &mut writer) > 0);

    // A server that is killed leaves nothing in the circuit that a client could read.
    server.kill();
    let mut client = Reads::new(&setup);
    assert!(client.try_get(KEYS - 1).is_none());
    let _server = setup.server();
    assert!(client.get(KEYS - 1).is_miss());
}

#[test]
fn narrow() {
    is_served_from_the_circuit_and_never_stale("1");
}

#[test]
fn wide() {
    is_served_from_the_circuit_and_never_stale("8");
}

#[test]
fn requests_are_what_they_should_be() {
    assert_eq!(&value(3, 7)[..], b"3:7:xxxxxxxxxxxx");
    assert_eq!(binary_get(0x0102, 3).len(), 8 + 24 + 4);
}
