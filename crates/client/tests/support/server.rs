//! A server, run as a task, for clients for tasks.
#![allow(dead_code, reason = "each test program uses its own part")]

#[path = "directory.rs"]
mod directory;

use std::cell::Cell;
use std::rc::Rc;

use glimmer_client::nonblocking::Client;
use glimmer_client::{GetError, Member, Reply, Settings, Status};
use glimmer_proto::native::{Kind, Record, RequestHeader};
use tokio::net::UdpSocket;
use tokio::task::spawn_local;

pub const SETTINGS: Settings = Settings {
    resend_first_us: 10_000,
    resend_longest_us: 50_000,
    deadline_us: 2_000_000,
    resends: true,
    requests_per_datagram: 1,
    round_robin: false,
    away_after: 3,
    retry_us: 60_000_000,
    eject: false,
};

/// A server that has every key, with its own port as the value.
pub struct Server {
    pub port: u16,
    pub is_silent: Rc<Cell<bool>>,
    /// Whether another socket, at a different port, answers for it.
    pub is_replaced: Rc<Cell<bool>>,
    /// Datagrams with requests that it received.
    pub heard: Rc<Cell<u32>>,
}

impl Server {
    pub async fn start() -> Server {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            port: socket.local_addr().unwrap().port(),
            is_silent: Rc::default(),
            is_replaced: Rc::default(),
            heard: Rc::default(),
        };
        let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (port, is_silent, heard) =
            (server.port, server.is_silent.clone(), server.heard.clone());
        let is_replaced = server.is_replaced.clone();
        spawn_local(async move {
            let mut datagram = [0; 2048];
            loop {
                let (bytes, from) = socket.recv_from(&mut datagram).await.unwrap();
                let header = RequestHeader::read(&datagram[..bytes]).unwrap();
                heard.set(heard.get() + u32::from(header.kind == Kind::Requests));
                if !is_silent.get() {
                    let reply = reply(&header, &datagram[RequestHeader::BYTES..bytes], port);
                    let socket = if is_replaced.get() { &other } else { &socket };
                    socket.send_to(&reply, from).await.unwrap();
                }
            }
        });
        server
    }

    pub fn member(&self) -> Member {
        Member {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            native_port: self.port,
            weight: 1,
        }
    }

    pub fn be_silent(&self, is_silent: bool) {
        self.is_silent.set(is_silent);
    }
}

fn reply(header: &RequestHeader, rest: &[u8], port: u16) -> Vec<u8> {
    let (mut reply, is_complete) = directory::begin_reply(header, port, 1);
    if !is_complete {
        Record::read(rest).unwrap();
        let found = Reply {
            value: &port.to_le_bytes(),
            ..Reply::bare(Status::Found)
        };
        found.write(&mut reply);
    }
    reply
}

/// The port of the server that answered for the key.
pub async fn ask(client: &Client, key: &[u8]) -> Result<u16, GetError> {
    let item = client.get(key).await?.unwrap();
    Ok(u16::from_le_bytes(item.value.try_into().unwrap()))
}
