#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| glimmer_engine::snapshot::fuzzing::file(data));
