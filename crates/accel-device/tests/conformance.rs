//! Every body in software conforms. Bodies elsewhere are held to the same.
#![cfg(not(loom))]

#[path = "../../hotset/tests/support/mod.rs"]
mod support;

use glimmer_accel_device::conformance::{all, coherence};
use glimmer_accel_device::models::{Circuit, Model};
use glimmer_hotset::{Guard, Reader};
use glimmer_seeds::seed;

const STEPS: u32 = 40_000;

#[test]
fn the_model_of_the_circuit() {
    let seed = seed();
    all(&mut || Box::new(Circuit::new(64, 64 << 10)), seed, STEPS);
    all(&mut || Box::new(Circuit::of_the_paper()), seed, STEPS);
}

#[test]
fn the_coherent_model() {
    let seed = seed();
    all(&mut || Box::new(Model::new(100, seed)), seed, STEPS);
}

struct Clocked {
    guard: Guard,
    reader: Reader,
    now_ns: u64,
}

impl coherence::Coherent for Clocked {
    fn guard(&self) -> &Guard {
        &self.guard
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn set_clock(&mut self, now_ns: u64) -> bool {
        self.now_ns = now_ns;
        true
    }

    fn look_up(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        support::value_at(&self.reader, key, self.now_ns).ok()
    }
}

#[test]
fn the_coherent_model_is_coherent() {
    coherence::all(&mut || {
        let (guard, reader) = support::guard_and_reader(256);
        Box::new(Clocked {
            guard,
            reader,
            now_ns: 1_000_000,
        })
    });
}
