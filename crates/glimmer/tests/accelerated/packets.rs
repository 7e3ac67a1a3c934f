//! The hammer on packet programs: the clients are at the other end of a link.
//!
//! Each run takes one access mode and one table for each hook, by the seed. A long run takes all.

use crate::hammer::{self, Random, SWITCHES, hammer};
use crate::link::{Driver, Link, has};
use crate::server::Server;

const TABLES: [&[&str]; 3] = [&[], &["--mode", "store"], &["--table", "memc3"]];
const ACCESSES: [&str; 3] = ["erew", "crew", "crcw"];

/// Hammers a server with this hook, and looks that its program is attached in this mode.
fn hammer_packets(driver: Driver, body: &str, mode: &str) {
    let mut random = Random(glimmer_seeds::seed());
    let chosen = random.below(9) as usize;
    for (nth, table) in TABLES.iter().enumerate() {
        for (mth, access) in ACCESSES.iter().enumerate() {
            if !hammer::is_long() && 3 * nth + mth != chosen {
                continue;
            }
            let Some(link) = Link::make(driver) else {
                return;
            };
            let arguments = [table, &["--access", access][..]].concat();
            let started = Server::at(&link, body, &arguments);
            let Some(server) = has(started) else { return };
            let is = server.text_figure("stats accelerator", "mode");
            assert_eq!(is, mode);
            println!("{body} in mode {mode} with {arguments:?}");
            hammer(&server, &[], 0);
        }
    }
}

#[test]
fn nobody_reads_what_is_outdated_from_the_driver() {
    hammer_packets(Driver::Xdp, "xdp-native", "driver");
}

#[test]
fn nobody_reads_what_is_outdated_from_the_generic_mode() {
    hammer_packets(Driver::Plain, "xdp", "generic");
}

#[test]
fn nobody_reads_what_is_outdated_from_tcx() {
    hammer_packets(Driver::Xdp, "tcx", "tcx");
}

#[test]
fn nobody_reads_what_is_outdated_from_the_driver_while_access_modes_change() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let Some(server) = has(Server::at(&link, "xdp", &[])) else {
        return;
    };
    hammer(&server, SWITCHES, 0);
}
