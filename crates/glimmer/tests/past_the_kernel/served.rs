//! What the tests of every transport past the kernel's stack do with a server.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use glimmer_client::{Client, PacketTransport, Settings, transports};

use crate::link::Link;
use crate::plain::Plain;
use crate::server::{PORT, Server, Text, command};

/// A server at the far end, whose datagrams come to these addresses by this transport.
pub fn start(
    link: &Link,
    transport: &str,
    udp: [IpAddr; 2],
    arguments: &[&str],
) -> Result<Server, String> {
    let own = format!("-p {PORT} -U {PORT} -m 64 -t 2 --packet-transport");
    let own = own.split(' ').chain([transport]);
    let command = command(&own.chain(arguments.iter().copied()).collect::<Vec<_>>());
    let udp = udp.map(|ip| SocketAddr::new(ip, PORT));
    let mut server = link.beyond(|| Server::spawn(command, udp.to_vec()));
    server.address = SocketAddr::new(Link::SERVER_ADDRESSES[0], PORT);
    server.wait().map(|()| server)
}

/// A line of `stats packets`.
pub fn packets(server: &Server, name: &str) -> u64 {
    server.figure("stats packets", name)
}

/// Stores this many items by the native protocol, one in ten of them long, and reads them.
pub fn store_natively(server: SocketAddr, items: usize) {
    store_over(transports::default(), server, items);
}

/// The same by a client over this transport.
pub fn store_over(transport: Arc<dyn PacketTransport>, server: SocketAddr, items: usize) {
    let mut client = Client::connect_over(transport, server, Settings::default()).unwrap();
    let long = [b'v'; 20_000];
    for number in 0..items {
        let key = format!("native {number}");
        let key = key.as_bytes();
        let value = if number % 10 == 0 { &long[..] } else { key };
        client.put(key, value, 0, 0).unwrap();
        let item = client.get(key).unwrap().expect("it was stored");
        assert!(item.value == value, "native {number}");
    }
}

/// Reads a value whose reply has many datagrams.
pub fn read_long(server: &Server) {
    let long = "x".repeat(30_000);
    let stored = Text::connect(server).say(&format!("set l 0 0 30000\r\n{long}\r\n"), &[]);
    assert_eq!(stored, "STORED\r\n");
    let reply = Plain::of(server.udp[0]).ask(b"get l\r\n");
    assert_eq!(reply, format!("VALUE l 0 30000\r\n{long}\r\nEND\r\n"));
}
