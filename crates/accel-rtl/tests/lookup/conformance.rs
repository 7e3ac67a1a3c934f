//! What every body of the accelerator is held to.

use glimmer_accel_device::conformance;
use glimmer_accel_rtl::lookup::{Circuit, Pressure, Shape};
use glimmer_accel_rtl::random::each_seed;
use glimmer_accel_rtl::tools::Tools;

const STEPS: u32 = 3_000;

fn conforms(shape: Shape, pressure: Pressure) {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    each_seed(&[], |seed| {
        let mut make = || {
            let mut circuit = Circuit::new(&tools, shape, seed);
            circuit.pressure = pressure;
            Box::new(circuit) as Box<_>
        };
        conformance::all(&mut make, seed, STEPS);
    });
}

#[test]
fn the_narrow_one() {
    conforms(Shape::small(1), Pressure::NONE);
}

#[test]
fn the_narrow_one_of_the_papers_size() {
    conforms(Shape::of_the_paper(1), Pressure::NONE);
}

#[test]
fn the_wide_one_under_pressure() {
    conforms(Shape::small(8), Pressure::of(0.1));
}
