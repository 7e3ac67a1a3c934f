//! A client that reads one key after the other over memcached's UDP protocol.

use std::net::{SocketAddr, UdpSocket};

use crate::server::{PATIENCE, Server, Text};

pub struct Reader(UdpSocket);

impl Reader {
    pub fn connect(server: SocketAddr) -> Reader {
        let here = if server.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let socket = UdpSocket::bind(here).unwrap();
        socket.connect(server).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Reader(socket)
    }

    /// Reads a key.
    pub fn get(&self, key: &str) -> String {
        let request = [
            &[7, 7, 0, 0, 0, 1, 0, 0],
            format!("get {key}\r\n").as_bytes(),
        ]
        .concat();
        self.0.send(&request).unwrap();
        let mut reply = [0; 2048];
        let bytes = self.0.recv(&mut reply).unwrap();
        assert_eq!(
            reply[..8],
            request[..8],
            "the header of a reply in one datagram"
        );
        String::from_utf8(reply[8..bytes].to_vec()).unwrap()
    }

    /// Reads a key that has this value, or none.
    pub fn expect(&self, key: &str, value: Option<&str>) {
        let expected = match value {
            Some(value) => format!("VALUE {key} 0 {}\r\n{value}\r\nEND\r\n", value.len()),
            None => "END\r\n".to_owned(),
        };
        assert_eq!(self.get(key), expected);
    }
}

/// Stores a key, and reads it until the accelerator answers.
pub fn make_hot(server: &Server, key: &str, value: &str) {
    let store = format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
    assert_eq!(Text::connect(server).say(&store, &[]), "STORED\r\n");
    let hits = || server.figure("stats accelerator", "hits");
    let before = hits();
    for &address in &server.udp {
        let reader = Reader::connect(address);
        (0..200).for_each(|_| reader.expect(key, Some(value)));
    }
    let gained = hits() - before;
    assert!(gained > 100, "only {gained} hits: {:?}", server.lines());
}
