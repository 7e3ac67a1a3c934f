//! The program in the kernel beside its twin, with the same items in the memory of both.
#![allow(dead_code)]

#[path = "../../../hotset/tests/support/frames.rs"]
pub mod frames;
pub mod mutate;
pub mod veth;

use frames::{PORT, SERVER_MAC, client, server};
use glimmer_base::Seed;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_hotset::layout::{HotItem, NEVER_NS, TALLIES, Tally};
use glimmer_hotset::twin::{self, Interface, Prefix};
use glimmer_hotset::{Filled, Guard, Memory, Reader};
use glimmer_xdp::{Error, Growth, Limits, Mode, Program, Settings, Sources, Verdict};
use std::net::IpAddr;
use std::sync::Arc;

pub const SLOTS: usize = 256;
pub const HASH_SEED: u64 = 0x1234_5678_9abc_def0;
/// The longest datagram that tests ask for.
pub const DATAGRAM_BYTES_MAX: usize = 3000;
pub const FRAME_BYTES_MAX: u32 = 3200;

pub const TAIL: Growth = Growth {
    tail: true,
    head: true,
    hand_over: false,
};
pub const HEAD: Growth = Growth {
    tail: false,
    ..TAIL
};
pub const NONE: Growth = Growth {
    head: false,
    ..HEAD
};

/// Networks of the client, as the program and its twin are told.
pub fn sources() -> Vec<(IpAddr, u8)> {
    vec![(client(true), 24), (client(false), 64)]
}

/// Networks on the server's links, as the program and its twin are told: half of the clients'.
pub fn links() -> Vec<(IpAddr, u8)> {
    vec![(client(true), 25), (client(false), 65)]
}

/// The server and all hosts on its link, as the program and its twin are told.
pub fn not_hosts() -> Vec<IpAddr> {
    vec![server(true), [10, 7, 0, 255].into(), server(false)]
}

pub fn settings(mode: Mode) -> Settings {
    Settings {
        ifindex: 1,
        mode,
        slots: SLOTS,
        seed: HASH_SEED,
        port: PORT,
        mac: SERVER_MAC,
        addresses: vec![server(true), server(false)],
        sources: Sources::Networks(sources()),
        not_hosts: not_hosts(),
        links: links(),
        redirection: None,
    }
}

/// Whether a test is left out because the machine cannot run packet programs. Continuous
/// integration can.
///
/// # Panics
///
/// In continuous integration.
pub fn is_left_out(error: &Error) -> bool {
    let cannot = matches!(
        error,
        Error::NoRights | Error::KernelTooOld(_) | Error::Architecture
    );
    if cannot {
        println!("SKIPPED: {error}");
        assert!(std::env::var_os("CI").is_none(), "{error}");
    }
    cannot
}

/// Loads the program. `None` where that is not possible.
pub fn load(mode: Mode, growth: Growth) -> Option<Program> {
    let limits = Limits {
        frame_bytes_max: FRAME_BYTES_MAX,
        growth,
    };
    match Program::load(&settings(mode), &limits) {
        Ok(program) => {
            let control = program.memory().control();
            control.set_datagram_bytes_max(DATAGRAM_BYTES_MAX);
            Some(program)
        }
        Err(error) if is_left_out(&error) => None,
        Err(error) => panic!("{error}"),
    }
}

pub fn item<'a>(key: &'a [u8], value: &'a [u8]) -> HotItem<'a> {
    HotItem {
        key,
        value,
        flags: 0xDEAD_BEEF,
        cas: 0x0102_0304_0506_0708,
        deadline_ns: NEVER_NS,
    }
}

/// CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists, and the structure is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The program and its twin.
pub struct Pair {
    pub program: Program,
    pub guard: Guard,
    twin: Reader,
    twins_guard: Guard,
    interface: Interface,
}

/// What both of them have done with a frame.
pub struct Ran {
    pub sent: Vec<u8>,
    pub frame: Vec<u8>,
    pub verdict: twin::Verdict,
}

impl Pair {
    /// `None` where programs cannot be loaded.
    pub fn new(mode: Mode, growth: Growth) -> Option<Pair> {
        let program = load(mode, growth)?;
        let memory = Arc::new(Memory::new(SLOTS, 1, HASH_SEED));
        memory.control().set_datagram_bytes_max(DATAGRAM_BYTES_MAX);
        let prefix = |(address, bits)| Prefix { address, bits };
        Some(Pair {
            guard: Guard::new(program.memory().clone()),
            program,
            twins_guard: Guard::new(memory.clone()),
            twin: Reader::new(memory, 0),
            interface: Interface {
                mac: SERVER_MAC,
                addresses: vec![server(true), server(false)],
                port: PORT,
                sources: sources().into_iter().map(prefix).collect(),
                not_hosts: not_hosts(),
                links: links().into_iter().map(prefix).collect(),
                frame_bytes_max: FRAME_BYTES_MAX as usize,
                growth_bytes_max: match growth {
                    Growth { tail: true, .. } => usize::MAX / 2,
                    Growth { head: true, .. } => 192,
                    _ if mode == Mode::Tcx => usize::MAX / 2,
                    _ => 0,
                },
                partial_checksums: mode == Mode::Driver,
            },
        })
    }

    /// Both guards, for what is done to both memories.
    pub fn guards(&self) -> [&Guard; 2] {
        [&self.guard, &self.twins_guard]
    }

    /// Brings an item into both memories.
    pub fn fill(&self, item: &HotItem<'_>) {
        for guard in self.guards() {
            let keyhash = Seed(7).keyhash(item.key);
            let filled = guard.fill(guard.epoch(), keyhash, item, u32::MAX, |_| 0);
            assert!(matches!(filled, Filled::Live(_)), "{filled:?}");
        }
    }

    /// Whether an item can be brought in without another one going.
    pub fn has_room(&self, key: &[u8]) -> bool {
        let memory = self.guard.memory();
        let places = glimmer_hotset::places(glimmer_hotset::hash(HASH_SEED, key), SLOTS);
        places
            .into_iter()
            .any(|place| !memory.slots()[place].is_taken())
    }

    fn tallies(&self) -> [u64; TALLIES] {
        let memory = self.program.memory();
        std::array::from_fn(|tally| {
            let rows = 0..memory.readers();
            rows.map(|row| memory.tallies(row)[tally].load(Relaxed))
                .sum()
        })
    }

    /// Has both look at a frame, and compares what they do: verdict, reason and bytes.
    pub fn run(&self, sent: &[u8]) -> Ran {
        let mut expected = sent.to_vec();
        let before = self.tallies();
        let ran = self.program.test_run(sent, 1).unwrap();
        let after = self.tallies();
        let verdict = twin::answer(&self.twin, &self.interface, now_ns(), &mut expected);
        let counted: Vec<Tally> = Tally::all()
            .iter()
            .copied()
            .filter(|&tally| after[tally as usize] != before[tally as usize])
            .collect();
        let context = || format!("twin {verdict:?}, program {ran:?} {counted:?}, frame {sent:x?}");
        match verdict {
            twin::Verdict::Reply => {
                assert_eq!(ran.verdict, Verdict::Reply, "{}", context());
                assert!(counted[0] <= Tally::HitBinary, "{}", context());
            }
            twin::Verdict::Pass(tally) => {
                assert_eq!(ran.verdict, Verdict::Pass, "{}", context());
                assert_eq!(counted, [tally], "{}", context());
                assert_eq!(expected, sent);
            }
        }
        assert!(
            ran.frame == expected,
            "expected {expected:x?}, {}",
            context()
        );
        Ran {
            sent: sent.to_vec(),
            frame: ran.frame,
            verdict,
        }
    }

    /// What is in the reply to a request, whose checksums are checked, too.
    pub fn ask(&self, is_v4: bool, what: &[u8]) -> Result<Vec<u8>, Tally> {
        let ran = self.run(&frames::request(is_v4, what));
        match ran.verdict {
            twin::Verdict::Reply => Ok(frames::reply(&ran.frame)),
            twin::Verdict::Pass(tally) => Err(tally),
        }
    }
}
