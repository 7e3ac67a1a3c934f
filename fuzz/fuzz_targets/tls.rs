//! From bytes of a client to the replies of an encrypted connection.
#![no_main]

#[path = "../../crates/tls/tests/support/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::talk(data));
