//! The circuit's lookup in simulation.

use glimmer_accel_rtl::lookup::{In, LookupPorts};
use glimmer_accel_rtl::model::Model;
use glimmer_accel_rtl::tools::Tools;
use glimmer_accel_rtl::tops::LOOKUP;
use glimmer_accel_rtl::verilate::Variant;

#[test]
fn it_can_be_clocked() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    let variant = Variant::new(LOOKUP).with("SLOTS", 64);
    let mut model = Model::<LookupPorts>::new(&tools, &variant, 1);
    model.settle(&In {
        rst: 1,
        ..In::default()
    });
    model.rise();
}
