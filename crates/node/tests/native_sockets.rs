//! A node serves native clients over real sockets: directory, direction to several workers, trains, fragments.

#[path = "support/native.rs"]
mod native;
mod support;

use std::sync::Arc;

use glimmer_client::Client;
use glimmer_node::native::NativeConfig;
use glimmer_node::{Error, Node};
use glimmer_proto::native::directory::Access;
use native::Server;
use support::{Desk, config};

fn start(access: Access, workers: usize, busy_poll: bool) -> Node {
    let server = Server::new(access, workers);
    let mut config = config();
    config.seed = native::SEED;
    config.busy_poll = busy_poll;
    config.native = Some(NativeConfig {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        rules: server.rules,
    });
    Node::start(config, server.engines, Arc::new(Desk)).unwrap()
}

fn address(node: &Node) -> String {
    let (ip, ports) = &node.native_ports()[0];
    format!("{ip}:{}", ports[0])
}

#[test]
fn clients_read_what_they_wrote_in_every_access_mode() {
    for (access, workers, busy_poll) in [
        (Access::Erew, 3, false),
        (Access::Crew, 2, false),
        (Access::Crcw, 2, false),
        (Access::Erew, 1, true),
    ] {
        let node = start(access, workers, busy_poll);
        let mut client = Client::connect(address(&node)).unwrap();
        assert_eq!(client.get(b"none").unwrap(), None);
        for bytes in [0, 1, 1_000, 1_352, 1_400, 43_264, 60_000] {
            let value: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8).collect();
            let key = format!("of {bytes}");
            client.put(key.as_bytes(), &value, 9, 0).unwrap();
            let found = client.get(key.as_bytes()).unwrap().unwrap();
            assert!(found.value == value && found.flags == 9, "{bytes} bytes");
        }
        let names: Vec<Vec<u8>> = (0..500).map(|n| format!("{n:016}").into_bytes()).collect();
        for name in names.iter().step_by(2) {
            client.put(name, &name[8..], 0, 0).unwrap();
        }
        let keys: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let found = client.get_many(&keys).unwrap();
        for (n, (name, found)) in names.iter().zip(found).enumerate() {
            let value = found.unwrap().map(|item| item.value);
            assert_eq!(value, n.is_multiple_of(2).then(|| name[8..].to_vec()));
        }
        assert_eq!(client.increment(b"none", 1).unwrap(), None);
        assert!(client.delete(b"of 0").unwrap() && !client.delete(b"of 0").unwrap());
        // Another client sees the same.
        let mut other = Client::connect(address(&node)).unwrap();
        assert_eq!(other.get(b"of 1").unwrap().unwrap().value, [0]);
        let tallies = node.figures().tallies();
        let misdirected: u64 = tallies.iter().map(|tally| tally.native_misdirected).sum();
        assert_eq!(misdirected, 0, "{access:?}");
    }
}

#[test]
fn a_client_finds_a_node_that_was_started_anew() {
    let first = start(Access::Erew, 2, false);
    let ports = first.native_ports()[0].1.clone();
    let mut client = Client::connect(address(&first)).unwrap();
    client.put(b"key", b"value", 0, 0).unwrap();
    drop(first);
    let server = Server::new(Access::Crew, 1);
    let mut config = config();
    config.native = Some(NativeConfig {
        listen: vec![([127, 0, 0, 1], ports[0]).into()],
        rules: glimmer_node::native::Rules {
            directory_version: native::VERSION + 1,
            ..server.rules
        },
    });
    let _second = Node::start(config, server.engines, Arc::new(Desk)).unwrap();
    assert_eq!(client.get(b"key").unwrap(), None);
    client.put(b"key", b"another", 0, 0).unwrap();
    assert_eq!(client.get(b"key").unwrap().unwrap().value, b"another");
}

#[test]
fn a_native_port_in_use_is_an_error() {
    let node = start(Access::Erew, 1, false);
    let port = node.native_ports()[0].1[0];
    let server = Server::new(Access::Erew, 1);
    let mut config = config();
    config.native = Some(NativeConfig {
        listen: vec![([127, 0, 0, 1], port).into()],
        rules: server.rules,
    });
    match Node::start(config, server.engines, Arc::new(Desk)) {
        Err(Error::Udp { address, source }) => {
            assert_eq!(address.port(), port);
            assert_eq!(source.kind(), std::io::ErrorKind::AddrInUse);
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("two servers on one port"),
    }
}
