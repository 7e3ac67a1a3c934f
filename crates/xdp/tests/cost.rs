//! What the program alone costs, by `BPF_PROG_TEST_RUN`:
//!
//! ```console
//! $ cargo test --release -p glimmer-xdp --test cost -- --ignored --nocapture
//! ```
#![cfg(target_os = "linux")]

mod support;

use glimmer_base::Seed;
use glimmer_hotset::Guard;
use glimmer_xdp::{Growth, Mode, Program};
use support::frames::{self, binary, client, server};
use support::{TAIL, item, load};

const REPEAT: u32 = 1_000_000;
const ROUNDS: usize = 7;

/// The lowest mean of several rounds, in nanoseconds.
fn cost(program: &Program, frame: &[u8]) -> u32 {
    let rounds = (0..ROUNDS).map(|_| program.test_run(frame, REPEAT).unwrap().ns);
    rounds.min().unwrap()
}

fn show(mode: Mode, growth: Growth, what: &str, frame: &[u8]) {
    let Some(program) = load(mode, growth) else {
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
    let nobody = frames::frame(client(true), server(true), b"");
    let frames = [
        (
            "hit, text, 16 and 64 bytes, restored",
            frames::request(true, &get(key)),
        ),
        ("the same over IPv6", frames::request(false, &get(key))),
        (
            "hit, binary, 16 and 64 bytes, restored",
            frames::request(true, &binary(0, key, [1; 4])),
        ),
        (
            "hit, text, 250 and 1,000 bytes, restored",
            frames::request(true, &get(&long)),
        ),
        (
            "miss, 16 bytes",
            frames::request(true, &get(b"0123456789abcdeg")),
        ),
        ("miss, 250 bytes", frames::request(true, &get(&long[..249]))),
        ("a datagram to another port", foreign),
        ("TCP", tcp),
        ("ARP", arp),
        ("an empty datagram", nobody),
    ];
    for mode in [Mode::Driver, Mode::Tcx] {
        for (what, frame) in &frames {
            show(mode, TAIL, what, frame);
        }
    }
}
