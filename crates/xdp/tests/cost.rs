//! What the program alone costs, by `BPF_PROG_TEST_RUN`:
//!
//! ```console
//! $ cargo test --release -p glimmer-xdp --test cost -- --ignored --nocapture
//! ```
#![cfg(target_os = "linux")]

mod support;

use glimmer_base::Seed;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_hotset::Guard;
use glimmer_hotset::layout::Tally;
use glimmer_xdp::{Mode, Program};
use support::frames::{self, binary};
use support::{TAIL, item, load};

const REPEAT: u32 = 1_000_000;
const ROUNDS: usize = 7;

/// The lowest mean of several rounds, in nanoseconds.
fn cost(program: &Program, frame: &[u8]) -> u32 {
    let rounds = (0..ROUNDS).map(|_| program.test_run(frame, REPEAT).unwrap().ns);
    rounds.min().unwrap()
}

fn show(mode: Mode, what: &str, expected: Tally, frame: &[u8]) {
    let Some(program) = load(mode, TAIL) else {
        return;
    };
    let guard = Guard::new(program.memory().clone());
    for (key, value_bytes) in [(&b"0123456789abcdef"[..], 64), (&[b'k'; 250], 1000)] {
        let (value, keyhash) = (vec![b'v'; value_bytes], Seed(7).keyhash(key));
        guard.fill(guard.epoch(), keyhash, &item(key, &value), u32::MAX, |_| 0);
    }
    // A reply cannot be asked for again in the same place, so that every recheck fails and the
    // request is restored: a hit and a little more.
    program.memory().control().fail_rechecks(true);
    println!("{mode:?}, {what}: {} ns", cost(&program, frame));
    let memory = program.memory();
    let rows = (0..memory.readers()).map(|row| memory.tallies(row));
    let counted: u64 = rows.map(|row| row[expected as usize].load(Relaxed)).sum();
    assert_eq!(
        counted,
        ROUNDS as u64 * u64::from(REPEAT),
        "{what}: not {expected:?}"
    );
}

#[test]
#[ignore = "a measurement"]
fn costs() {
    let key = b"0123456789abcdef";
    let long = [b'k'; 250];
    let get = |key: &[u8]| [b"get ", key, b"\r\n"].concat();
    let mut foreign = frames::request(true, &get(key));
    foreign[37] ^= 1;
    let mut tcp = frames::request(true, &get(key));
    tcp[23] = 6;
    let arp = [&foreign[..12], &[8, 6], &[0; 46]].concat();
    let text = |is_v4, key| frames::request(is_v4, &get(key));
    let binary = frames::request(true, &binary(0, key, [1; 4]));
    let (short_miss, long_miss) = (b"0123456789abcdeg", &long[..249]);
    let frames = [
        (
            "hit, text, 16 and 64 bytes, restored",
            Tally::Torn,
            text(true, key),
        ),
        ("the same over IPv6", Tally::Torn, text(false, key)),
        (
            "hit, binary, 16 and 64 bytes, restored",
            Tally::Torn,
            binary,
        ),
        (
            "hit, text, 250 and 1,000 bytes, restored",
            Tally::Torn,
            text(true, &long),
        ),
        ("miss, 16 bytes", Tally::Miss, text(true, short_miss)),
        ("miss, 249 bytes", Tally::Miss, text(true, long_miss)),
        ("a datagram to another port", Tally::Foreign, foreign),
        ("TCP", Tally::Foreign, tcp),
        ("ARP", Tally::Foreign, arp),
    ];
    for mode in [Mode::Driver, Mode::Tcx] {
        for (what, expected, frame) in &frames {
            show(mode, what, *expected, frame);
        }
    }
}
