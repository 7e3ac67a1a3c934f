#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| glimmer_transport::xdp::wire::fuzzing::frame(data));
