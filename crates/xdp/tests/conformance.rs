//! The packet program is held to what every body of the accelerator is held to.
#![cfg(target_os = "linux")]

mod support;

use glimmer_accel_device::conformance::{all, coherence};
use glimmer_accel_device::device::{Capabilities, Device, DeviceError, Mode};
use glimmer_accel_device::models::{LookUp, Model};
use glimmer_hotset::Guard;
use glimmer_xdp::{Program, Verdict};
use std::rc::Rc;
use support::{TAIL, frames, now_ns};

const STEPS: u32 = 10_000;

/// The value of a key as the program answers a binary GET.
fn look_up(program: &Program, key: &[u8]) -> Option<Vec<u8>> {
    let request = frames::request(true, &frames::binary(0, key, [7; 4]));
    let ran = program.test_run(&request, 1).unwrap();
    match ran.verdict {
        Verdict::Reply => Some(frames::reply(&ran.frame)[28..].to_vec()),
        Verdict::Pass => {
            assert_eq!(ran.frame, request);
            None
        }
    }
}

/// The paper's operations on the program's memory.
#[derive(Debug)]
struct Mapped {
    model: Model,
    program: Rc<Program>,
}

impl Device for Mapped {
    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }

    fn switch_mode(&mut self, mode: Mode) {
        self.model.switch_mode(mode);
    }

    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, DeviceError> {
        self.model.delete(key)
    }

    fn reserve(&mut self, key: &[u8], weight: u8) -> Result<Option<usize>, DeviceError> {
        self.model.reserve(key, weight)
    }

    fn associate_address(&mut self, slot: usize, address: usize) -> Result<(), DeviceError> {
        self.model.associate_address(slot, address)
    }

    fn associate_length(&mut self, slot: usize, bytes: usize) -> Result<(), DeviceError> {
        self.model.associate_length(slot, bytes)
    }

    fn associate_length_and_flags(
        &mut self,
        slot: usize,
        bytes: usize,
        flags: u32,
    ) -> Result<(), DeviceError> {
        self.model.associate_length_and_flags(slot, bytes, flags)
    }

    fn associate_cas(&mut self, slot: usize, cas: u64) -> Result<(), DeviceError> {
        self.model.associate_cas(slot, cas)
    }

    fn write_value(&mut self, slot: usize, memory: &[u8]) -> Result<(), DeviceError> {
        self.model.write_value(slot, memory)
    }

    fn reset_counts(&mut self) -> Result<(), DeviceError> {
        self.model.reset_counts()
    }

    fn count(&self, slot: usize) -> Option<u8> {
        self.model.count(slot)
    }
}

impl LookUp for Mapped {
    fn look_up(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        look_up(&self.program, key)
    }

    fn places(&self, key: &[u8]) -> [usize; 2] {
        self.model.places(key)
    }
}

fn load() -> Option<Rc<Program>> {
    support::load(glimmer_xdp::Mode::Driver, TAIL).map(Rc::new)
}

#[test]
fn the_packet_program_conforms() {
    if load().is_none() {
        return;
    }
    let seed = glimmer_seeds::seed();
    let mut make = || -> Box<dyn LookUp> {
        let program = load().expect("it has been loaded before");
        let model = Model::over(program.memory().clone());
        Box::new(Mapped { model, program })
    };
    all(&mut make, seed, STEPS);
}

struct Coherent {
    guard: Guard,
    program: Rc<Program>,
}

impl coherence::Coherent for Coherent {
    fn guard(&self) -> &Guard {
        &self.guard
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn set_clock(&mut self, _now_ns: u64) -> bool {
        false
    }

    fn look_up(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        look_up(&self.program, key)
    }
}

#[test]
fn the_packet_program_is_coherent() {
    if load().is_none() {
        return;
    }
    coherence::all(&mut || {
        let program = load().expect("it has been loaded before");
        let guard = Guard::new(program.memory().clone());
        Box::new(Coherent { guard, program })
    });
}
