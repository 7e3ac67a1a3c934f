//! The hammer on the accelerator's model: all clients are on this machine.

use crate::hammer::{SWITCHES, hammer};
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
