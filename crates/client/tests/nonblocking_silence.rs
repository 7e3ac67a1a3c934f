//! Servers that fall silent, before a client for tasks, in a runtime whose clock moves on by itself whenever all tasks wait.
#![cfg(feature = "tokio")]

use std::cell::Cell;
use std::rc::Rc;

use glimmer_base::Seed;
use glimmer_client::nonblocking::Client;
use glimmer_client::{Direction, Directory, GetError, Member, Placement, Reply, Settings, Status};
use glimmer_proto::native::directory::{Access, Mode};
use glimmer_proto::native::{Kind, Record, ReplyHeader, RequestHeader};
use tokio::net::UdpSocket;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Duration, Instant, sleep};

const SETTINGS: Settings = Settings {
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

/// A server that has every key, with its own port for a value.
struct Server {
    port: u16,
    is_silent: Rc<Cell<bool>>,
    /// Whether somebody answers in its stead, from another port.
    is_replaced: Rc<Cell<bool>>,
    /// Datagrams with requests that it was sent.
    heard: Rc<Cell<u32>>,
}

impl Server {
    async fn start() -> Server {
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

    fn member(&self) -> Member {
        Member {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            native_port: self.port,
            weight: 1,
        }
    }

    fn be_silent(&self, is_silent: bool) {
        self.is_silent.set(is_silent);
    }
}

fn reply(header: &RequestHeader, rest: &[u8], port: u16) -> Vec<u8> {
    let kind = match header.kind {
        Kind::Directory => Kind::DirectoryReply,
        _ => Kind::Replies,
    };
    let mut reply = ReplyHeader::to(header, kind, header.count, 1)
        .bytes()
        .to_vec();
    if kind == Kind::DirectoryReply {
        let directory = Directory {
            token: 99,
            token_s: 3600,
            seed: Seed(5),
            item_bytes_max: 1 << 20,
            partitions: 1,
            mode: Mode::Cache,
            access: Access::Erew,
            direction: Direction::Client,
            mutation_window: 1024,
            ports: vec![port],
        };
        directory.write(&mut reply);
    } else {
        Record::read(rest).unwrap();
        let found = Reply {
            value: &port.to_le_bytes(),
            ..Reply::bare(Status::Found)
        };
        found.write(&mut reply);
    }
    reply
}

/// The server that answered for the key.
async fn ask(client: &Client, key: &[u8]) -> Result<u16, GetError> {
    let item = client.get(key).await?.unwrap();
    Ok(u16::from_le_bytes(item.value.try_into().unwrap()))
}

/// Waits for as many deadlines as make a server away.
async fn wait_in_vain(client: &Client, key: &[u8]) {
    // What is heard in the moment of asking counts as heard since.
    sleep(Duration::from_millis(1)).await;
    for _ in 0..SETTINGS.away_after {
        let asked = Instant::now();
        assert!(matches!(ask(client, key).await, Err(GetError::Silent)));
        assert!(asked.elapsed() >= Duration::from_micros(SETTINGS.deadline_us));
    }
}

#[tokio::test(start_paused = true)]
async fn after_three_deadlines_nobody_waits_until_it_is_heard_again() {
    let test = async {
        let server = Server::start().await;
        let address = ("127.0.0.1", server.port);
        let client = Client::connect_with(address, SETTINGS).await.unwrap();
        assert_eq!(ask(&client, b"key").await.unwrap(), server.port);
        server.be_silent(true);
        wait_in_vain(&client, b"key").await;
        let before = (Instant::now(), server.heard.get());
        for _ in 0..100 {
            assert!(matches!(ask(&client, b"key").await, Err(GetError::Away)));
        }
        assert_eq!((Instant::now(), server.heard.get()), before);
        server.be_silent(false);
        sleep(Duration::from_micros(SETTINGS.retry_us)).await;
        assert_eq!(ask(&client, b"key").await.unwrap(), server.port);
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_server_that_is_away_move_and_come_back() {
    let test = async {
        let servers = [Server::start().await, Server::start().await];
        let members = servers.each_ref().map(Server::member);
        let settings = Settings {
            eject: true,
            ..SETTINGS
        };
        let client = Client::connect_to_all(&members, Placement::Rendezvous, settings).await;
        let client = client.unwrap();
        let mut keys = [None, None];
        for number in 0..64u8 {
            let port = ask(&client, &[number]).await.unwrap();
            let owner = usize::from(port == servers[1].port);
            keys[owner] = Some([number]);
        }
        let [Some(moves), Some(stays)] = keys else {
            panic!("all keys are one server's: {keys:?}");
        };
        servers[0].be_silent(true);
        wait_in_vain(&client, &moves).await;
        for key in [moves, stays] {
            assert_eq!(ask(&client, &key).await.unwrap(), servers[1].port);
        }
        servers[0].be_silent(false);
        sleep(Duration::from_micros(SETTINGS.retry_us)).await;
        for (key, server) in [(moves, &servers[0]), (stays, &servers[1])] {
            assert_eq!(ask(&client, &key).await.unwrap(), server.port);
        }
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn what_comes_from_no_port_of_the_servers_is_no_answer() {
    let test = async {
        let server = Server::start().await;
        let address = ("127.0.0.1", server.port);
        let client = Client::connect_with(address, SETTINGS).await.unwrap();
        server.is_replaced.set(true);
        assert!(matches!(ask(&client, b"key").await, Err(GetError::Silent)));
        server.is_replaced.set(false);
        assert_eq!(ask(&client, b"key").await.unwrap(), server.port);
    };
    LocalSet::new().run_until(test).await;
}
