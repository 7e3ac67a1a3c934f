#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| glimmer_transport::bypass::wire::fuzzing::frame(data));
