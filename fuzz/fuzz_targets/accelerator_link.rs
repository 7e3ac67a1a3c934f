#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| glimmer_accel_device::link::fuzz(data));
