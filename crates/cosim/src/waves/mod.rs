//! The lookup's ports over time, as pictures for `docs/accelerator-rtl.md`: a hit, a miss, and a
//! switch to write mode. They are drawn from the simulated circuit, one byte wide.

mod picture;

use glimmer_accel_device::device::{Device, Mode};
use glimmer_accel_rtl::lookup::{Circuit, Shape, device::operation};
use glimmer_accel_rtl::tools::Tools;
use picture::{Picture, Sample};

/// The item that is in the circuit, and a key that is not.
const KEY: &[u8] = b"hot";
const VALUE: &[u8] = b"value!";
const ABSENT: &[u8] = b"cold";
/// Cycles that are drawn before something happens, and after it.
const MARGIN: usize = 1;

/// All pictures: the name of each one's file, and its contents.
pub fn draw(tools: &Tools) -> Vec<(&'static str, String)> {
    vec![
        ("accel-wave-hit.svg", hit(tools)),
        ("accel-wave-miss.svg", miss(tools)),
        ("accel-wave-mode.svg", mode(tools)),
    ]
}

/// A circuit with one item, in read mode.
fn circuit(tools: &Tools) -> Circuit {
    let mut circuit = Circuit::new(tools, Shape::small(1), 1);
    circuit.switch_mode(Mode::Write);
    let slot = circuit.reserve(KEY, 8).expect("write mode");
    let slot = slot.expect("the circuit is empty");
    let stored = circuit
        .associate_address(slot, 0)
        .and_then(|()| circuit.associate_length(slot, VALUE.len()))
        .and_then(|()| circuit.write_value(slot, VALUE));
    stored.expect("it fits");
    circuit.switch_mode(Mode::Read);
    circuit
}

fn hit(tools: &Tools) -> String {
    let mut circuit = circuit(tools);
    let mut picture = Picture::new("A hit: a key of 3 bytes, a value of 6");
    circuit.offer(KEY);
    record(&mut circuit, &mut picture, |circuit| {
        circuit.outputs().val_valid & circuit.outputs().val_last == 1
    });
    picture.svg()
}

fn miss(tools: &Tools) -> String {
    let mut circuit = circuit(tools);
    let mut picture = Picture::new("A miss: no slot has a key of 4 bytes, and the length is 0");
    circuit.offer(ABSENT);
    record(&mut circuit, &mut picture, |circuit| {
        circuit.outputs().val_len_valid == 1
    });
    picture.svg()
}

fn mode(tools: &Tools) -> String {
    let mut circuit = circuit(tools);
    let mut picture = Picture::new("A switch to write mode during a hit; a second key has to wait");
    picture.has_commands();
    circuit.offer(KEY);
    step(&mut circuit, &mut picture);
    step(&mut circuit, &mut picture);
    circuit.begin(operation::SWITCH_MODE, 1, 0);
    circuit.offer(KEY);
    record(&mut circuit, &mut picture, |circuit| {
        circuit.outputs().rsp_valid == 1
    });
    picture.svg()
}

/// Records until something is the case, and a little longer.
fn record(circuit: &mut Circuit, picture: &mut Picture, is_over: impl Fn(&Circuit) -> bool) {
    loop {
        step(circuit, picture);
        if is_over(circuit) {
            break;
        }
    }
    for _ in 0..MARGIN {
        step(circuit, picture);
    }
}

fn step(circuit: &mut Circuit, picture: &mut Picture) {
    circuit.step();
    picture.sample(Sample::of(circuit.inputs(), circuit.outputs()));
}
