//! Real packets: clients in one network namespace, the simulated circuit, and a real server behind
//! it in another namespace.
//!
//! `GLIMMER_COSIM_READS` says how many reads are tried (2,000 unless told), and `GLIMMER_RUNS` with
//! how many seeds of the circuit. `GLIMMER_SEED` repeats the circuit, but not the clients.

use glimmer_accel_rtl::tools::Tools;
use glimmer_cosim::bed::{Bed, Circuit};
use glimmer_cosim::clients::{Reads, Writer, hammer};
use glimmer_seeds::each_seed;
use std::path::Path;

fn reads() -> u64 {
    let told = std::env::var("GLIMMER_COSIM_READS").ok();
    told.map_or(2000, |count| count.parse().expect("a number"))
}

/// `None` with a note if something is missing. Where CI is true, that fails the test.
fn tools() -> Option<Tools> {
    match Bed::check() {
        Ok(tools) => Some(tools),
        Err(missing) => {
            let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!in_ci, "{missing:#}");
            println!("SKIPPED: {missing:#}");
            None
        }
    }
}

fn is_served_from_the_circuit_and_never_stale(width: usize) {
    if let Some(tools) = tools() {
        each_seed(&[], |seed| try_seed(&tools, width, seed));
    }
}

fn try_seed(tools: &Tools, width: usize, seed: u64) {
    let circuit = Circuit {
        seed,
        ..Circuit::of_width(width)
    };
    let bed = Bed::new(tools, circuit).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_glimmer-cosim"));
    let mut server = bed.glimmer(program).unwrap();
    let done = hammer(|done| done.reads < reads()).unwrap();
    let mut writer = Writer::new().unwrap();
    let mut figure = |name: &str| writer.figure(name).unwrap();
    let (hits, cycles) = (figure("hits"), figure("cycles"));
    println!("width {width}: {done:?}, {hits} answered by the circuit in {cycles} cycles");
    assert!(hits > reads() / 10, "{hits}");
    assert!(figure("misses") > 0);
    assert!(cycles > 0 && figure("retracts") > 0);
    assert!(figure("bypassed_write_mode") > 0 && figure("defer_high_water") > 0);

    // A server that is killed leaves nothing in the circuit that a client could read.
    server.kill();
    assert!(Reads::new().unwrap().is_without_answer(1).unwrap());
    let _server = bed.glimmer(program).unwrap();
    assert_eq!(Reads::new().unwrap().get(1).unwrap(), None);
}

#[test]
fn narrow() {
    is_served_from_the_circuit_and_never_stale(1);
}

#[test]
fn wide() {
    is_served_from_the_circuit_and_never_stale(8);
}
