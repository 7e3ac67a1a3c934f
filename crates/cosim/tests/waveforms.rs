//! The pictures in the documentation are those of the circuit as it is.

use glimmer_accel_rtl::tools::Tools;
use std::path::Path;

#[test]
fn the_pictures_are_those_of_the_circuit() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures");
    for (name, picture) in glimmer_cosim::waves::draw(&tools) {
        let committed = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(
            committed == picture,
            "{name} is outdated: cargo run -p glimmer-cosim -- draw"
        );
    }
}
