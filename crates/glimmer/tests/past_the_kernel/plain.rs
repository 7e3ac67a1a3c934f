//! A client of memcached's UDP protocol, with an ordinary socket.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// A client of memcached's UDP protocol.
pub struct Plain {
    socket: UdpSocket,
    /// The number of the latest request.
    latest: Cell<u16>,
}

impl Plain {
    pub fn of(server: SocketAddr) -> Plain {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0; 16], 0).into(),
        };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(server).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        Plain {
            socket,
            latest: Cell::new(0),
        }
    }

    /// The reply to a request. A datagram may be lost, so each try has a number of its own.
    pub fn ask(&self, request: &[u8]) -> String {
        for _ in 0..10 {
            self.latest.set(self.latest.get() + 1);
            let [high, low] = self.latest.get().to_be_bytes();
            let datagram = [&[high, low, 0, 0, 0, 1, 0, 0], request].concat();
            self.socket.send(&datagram).unwrap();
            if let Some(reply) = self.reply_to([high, low]) {
                return String::from_utf8(reply).unwrap();
            }
        }
        panic!("no reply to {}", request.escape_ascii());
    }

    /// The reply to the request of this number, of all its datagrams.
    fn reply_to(&self, id: [u8; 2]) -> Option<Vec<u8>> {
        let (mut parts, mut buffer) = (BTreeMap::new(), [0; 65_536]);
        while let Ok(bytes) = self.socket.recv(&mut buffer) {
            if buffer[..2] != id {
                continue;
            }
            let (number, all) = (buffer[3], usize::from(buffer[5]));
            parts.insert(number, buffer[8..bytes].to_vec());
            if parts.len() == all {
                return Some(parts.into_values().flatten().collect());
            }
        }
        None
    }
}
