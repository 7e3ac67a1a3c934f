//! Stores, reads and counts with the native client.
//!
//! Run it: `cargo run -p glimmer-client --example greeting 127.0.0.1:11300`
//! The server needs a native port: `glimmer serve --native-port 11300`

use glimmer_client::Client;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1);
    let server = server.unwrap_or_else(|| "127.0.0.1:11300".to_owned());
    let mut client = Client::connect(server)?;

    client.put(b"greeting", b"hello", 0, 60)?;
    let greeting = client.get(b"greeting")?.ok_or("the greeting is gone")?;
    println!("greeting: {}", String::from_utf8_lossy(&greeting.value));

    client.put(b"visits", b"41", 0, 0)?;
    let visits = client.increment(b"visits", 1)?.ok_or("the count is gone")?;
    println!("visits: {visits}");

    let mut both = Vec::new();
    for answer in client.get_many(&[b"greeting", b"visits"])? {
        let item = answer?.ok_or("an item is gone")?;
        both.push(String::from_utf8_lossy(&item.value).into_owned());
    }
    println!("together: {}", both.join(" "));
    Ok(())
}
