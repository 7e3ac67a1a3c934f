//! Stores a thousand items and reads them again and again, many at a time.
//!
//! Run it: `cargo run --release -p glimmer-client --example reads 127.0.0.1:11300 1000000`
//! The server needs a native port: `glimmer serve --native-port 11300`

use glimmer_client::Client;
use std::error::Error;

const KEYS: usize = 1_000;
/// Keys that are asked for at a time.
const TOGETHER: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:11300".to_owned());
    let reads: usize = arguments.next().as_deref().unwrap_or("1000000").parse()?;
    let mut client = Client::connect(server)?;

    let keys: Vec<String> = (0..KEYS)
        .map(|number| format!("key:{number:012}"))
        .collect();
    for key in &keys {
        client.put(key.as_bytes(), &[b'x'; 64], 0, 0)?;
    }
    let mut found = 0;
    for round in 0..reads / TOGETHER {
        // Every 7th key, so that neighbours in a datagram are no neighbours in memory.
        let key = |nth: usize| keys[7 * (round * TOGETHER + nth) % KEYS].as_bytes();
        let asked: Vec<&[u8]> = (0..TOGETHER).map(key).collect();
        for answer in client.get_many(&asked)? {
            found += usize::from(answer?.is_some());
        }
    }
    println!("found {found} of {} items", reads / TOGETHER * TOGETHER);
    Ok(())
}
