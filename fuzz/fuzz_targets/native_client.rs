#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| glimmer_client::fuzzing::hostile_server(data));
