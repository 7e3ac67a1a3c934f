//! The hammer on the accelerator's model: all clients are on this machine.

use crate::hammer::{Random, SWITCHES, hammer};
use crate::reader::Reader;
use crate::server::{Server, Text};

fn hammer_model(arguments: &[&str], switches: &[&str], evictions: u64) -> u64 {
    let server = Server::on_loopback(arguments);
    hammer(&server, switches, evictions)
}

#[test]
fn nobody_reads_what_is_outdated_in_cache_mode() {
    for access in ["erew", "crew", "crcw"] {
        hammer_model(&["--access", access], &[], 0);
    }
    // Also items that are read are evicted.
    let evicted = hammer_model(&["--evict", "fifo"], &[], 3);
    assert!(evicted >= 3, "{evicted} slots lost their item");
}

#[test]
fn nobody_reads_what_is_outdated_in_store_mode() {
    for access in ["erew", "crew", "crcw"] {
        hammer_model(&["--mode", "store", "--access", access], &[], 0);
    }
}

#[test]
fn nobody_reads_what_is_outdated_in_memc3() {
    for access in ["erew", "crew", "crcw"] {
        hammer_model(&["--table", "memc3", "--access", access], &[], 0);
    }
}

/// Each key is changed fifty times in a row, with thirteen reads to a change on the average. That
/// is worth it whatever the server measures: no change is held to cost more than eight hits.
#[test]
fn keys_that_change_in_bursts_are_answered() {
    const BURST: u64 = 200;
    const READS: u64 = 13 * BURST;
    const ROUNDS: u64 = 4;
    let server = Server::on_loopback(&[]);
    let mut text = Text::connect(&server);
    let reader = Reader::connect(server.udp[0]);
    let mut random = Random(glimmer_seeds::seed());
    let mut before = 0;
    for round in 0..ROUNDS {
        let mut store = |_| {
            let key = random.below(4);
            format!("set hot:{key} 0 0 5 noreply\r\nvalue\r\n")
        };
        let stores: String = (0..BURST).map(&mut store).collect();
        text.say(&format!("{stores}mn\r\n"), &["MN"]);
        if round == 1 {
            before = server.figure("stats accelerator", "hits");
        }
        (0..READS).for_each(|_| {
            let key = format!("hot:{}", random.below(4));
            reader.expect(&key, Some("value"));
        });
    }
    let hits = server.figure("stats accelerator", "hits") - before;
    let reads = (ROUNDS - 1) * READS;
    println!("{hits} hits of {reads} reads");
    assert!(hits >= reads / 2, "{hits} hits of {reads} reads");
}

/// The paper's policy offers keys when a hundred distinct ones have been sampled.
#[test]
fn the_papers_policy_answers_too() {
    let server = Server::on_loopback(&["--accelerate-policy", "paper"]);
    let mut text = Text::connect(&server);
    let keys: Vec<String> = (0..400).map(|nth| format!("paper:{nth}")).collect();
    for key in &keys {
        text.say(&format!("set {key} 0 0 3\r\nold\r\n"), &[]);
    }
    let reader = Reader::connect(server.udp[0]);
    let mut rounds = 0;
    while server.figure("stats accelerator", "hits") == 0 {
        keys.iter().for_each(|key| reader.expect(key, Some("old")));
        rounds += 1;
        assert!(rounds < 100, "no key came in");
    }
    for key in &keys {
        text.say(&format!("set {key} 0 0 3\r\nnew\r\n"), &[]);
        reader.expect(key, Some("new"));
    }
}

#[test]
fn nobody_reads_what_is_outdated_while_access_modes_change() {
    for table in [&[][..], &["--mode", "store"], &["--table", "memc3"]] {
        hammer_model(table, SWITCHES, 0);
    }
}
