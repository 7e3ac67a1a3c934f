//! Servers that are not running: their hosts refuse datagrams, and no client waits for a deadline.
//! The deadline in these tests is longer than any test may take.

#[path = "support/directory.rs"]
mod directory;

use glimmer_client::{Client, ConnectError, GetError, Member, Placement, Reply, Settings, Status};
use glimmer_proto::native::RequestHeader;
use std::net::{SocketAddr, UdpSocket};
use std::thread;

const SETTINGS: Settings = Settings {
    resend_first_us: 10_000,
    resend_longest_us: 50_000,
    deadline_us: 24 * 3600 * 1_000_000,
    resends: true,
    requests_per_datagram: 32,
    round_robin: false,
    away_after: 3,
    retry_us: 60_000_000,
    eject: false,
};

fn bound() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// An address at which nothing listens.
fn closed() -> SocketAddr {
    bound().1
}

/// A server without items. When it is stopped, its port is closed.
struct Server {
    address: SocketAddr,
    thread: thread::JoinHandle<()>,
}

impl Server {
    /// Its directory has this version and names `core` as the port of its only core.
    fn start(socket: UdpSocket, core: u16, version: u32) -> Server {
        let address = socket.local_addr().unwrap();
        let thread = thread::spawn(move || {
            let mut datagram = [0; 2048];
            loop {
                let (bytes, from) = socket.recv_from(&mut datagram).unwrap();
                let Some(header) = RequestHeader::read(&datagram[..bytes]) else {
                    return;
                };
                let (mut reply, is_complete) = directory::begin_reply(&header, core, version);
                if !is_complete {
                    Reply::bare(Status::NotFound).write(&mut reply);
                }
                socket.send_to(&reply, from).unwrap();
            }
        });
        Server { address, thread }
    }

    fn stop(self) {
        let (socket, _) = bound();
        socket.send_to(b"stop", self.address).unwrap();
        self.thread.join().unwrap();
    }
}

fn member(address: SocketAddr) -> Member {
    Member {
        host: address.ip().to_string(),
        port: address.port(),
        native_port: address.port(),
        weight: 1,
    }
}

#[test]
fn connecting_to_a_closed_port_fails_at_once_and_names_it() {
    let address = closed();
    let Err(error) = Client::connect_with(address, SETTINGS) else {
        panic!("nothing listens there");
    };
    assert!(matches!(error, ConnectError::Refused(refuser) if refuser == address));
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[test]
fn requests_to_a_server_that_has_stopped_fail_at_once() {
    let (socket, address) = bound();
    let server = Server::start(socket, address.port(), 1);
    let mut client = Client::connect_with(address, SETTINGS).unwrap();
    assert_eq!(client.get(b"key").unwrap(), None);
    server.stop();
    for _ in 0..10 {
        let error = client.get(b"key").unwrap_err();
        assert!(matches!(error, GetError::Refused(refuser) if refuser == address));
    }
    let keys: Vec<[u8; 2]> = (0..200u16).map(u16::to_le_bytes).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let found = client.get_many(&keys).unwrap();
    assert!(found.iter().all(|found| found.is_err()));
    // The client finds the server again when it is back.
    let server = Server::start(UdpSocket::bind(address).unwrap(), address.port(), 1);
    assert_eq!(client.get(b"key").unwrap(), None);
    server.stop();
}

#[test]
fn a_closed_core_port_makes_the_client_ask_where_the_server_is() {
    let (known, address) = bound();
    let first = Server::start(known.try_clone().unwrap(), closed().port(), 1);
    let mut client = Client::connect_with(address, SETTINGS).unwrap();
    first.stop();
    let second = Server::start(known, address.port(), 2);
    assert_eq!(client.get(b"key").unwrap(), None);
    second.stop();
}

#[test]
fn one_closed_port_among_several_servers_costs_no_time() {
    let (socket, address) = bound();
    let server = Server::start(socket, address.port(), 1);
    let members = [member(closed()), member(address)];
    let placement = Placement::Rendezvous;
    let mut client = Client::connect_to_all(&members, placement, SETTINGS).unwrap();
    let (mut refused, mut answered) = (0, 0);
    for number in 0u8..100 {
        match client.get(&[number]) {
            Ok(None) => answered += 1,
            Err(GetError::Refused(refuser)) => {
                assert_eq!(refuser.port(), members[0].native_port);
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(refused > 0 && answered > 0);
    // With `eject`, keys are placed elsewhere after enough refused requests.
    let settings = Settings {
        eject: true,
        ..SETTINGS
    };
    let mut client = Client::connect_to_all(&members, placement, settings).unwrap();
    let lost = (0u8..100).filter(|&number| client.get(&[number]).is_err());
    assert_eq!(lost.count(), SETTINGS.away_after as usize);
    server.stop();
    let all_closed = [member(closed()), member(closed())];
    let connected = Client::connect_to_all(&all_closed, placement, SETTINGS);
    assert!(matches!(connected, Err(ConnectError::Refused(_))));
}

#[test]
fn a_name_without_an_address_is_told_with_the_name() {
    let Err(error) = Client::connect(("no-such-host.invalid", 11300)) else {
        panic!("no client has this name");
    };
    assert!(matches!(error, ConnectError::NoAddress { .. }));
    let story = format!("{error:?}");
    assert!(story.contains("no-such-host.invalid"), "{story}");
}

#[cfg(feature = "tokio")]
#[test]
fn tasks_are_told_of_a_closed_port_at_once() {
    use glimmer_client::nonblocking;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let address = closed();
        let connected = nonblocking::Client::connect_with(address, SETTINGS).await;
        assert!(matches!(connected, Err(ConnectError::Refused(refuser)) if refuser == address));
        let unknown = nonblocking::Client::connect(("no-such-host.invalid", 1)).await;
        assert!(matches!(unknown, Err(ConnectError::NoAddress { .. })));

        let (socket, address) = bound();
        let server = Server::start(socket, address.port(), 1);
        let client = nonblocking::Client::connect_with(address, SETTINGS)
            .await
            .unwrap();
        assert_eq!(client.get(b"key").await.unwrap(), None);
        server.stop();
        for _ in 0..10 {
            let found = client.get(b"key").await;
            assert!(matches!(found, Err(GetError::Refused(refuser)) if refuser == address));
        }
    });
}
