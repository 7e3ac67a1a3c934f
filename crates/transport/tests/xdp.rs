//! Datagrams past the kernel's stack, over a pair of interfaces in namespaces of their own.
#![cfg(feature = "xdp")]

#[path = "support/veth.rs"]
mod veth;
#[path = "support/wire.rs"]
mod wire_at;

use glimmer_transport::Interface;
use glimmer_transport::bypass::wire::{self, Ends};
use glimmer_transport::packet::{
    Bypass, Message, PacketDevice, PacketSender as _, PacketTransport, RxBatch,
};
use glimmer_transport::udp::UdpDevice;
use glimmer_transport::xdp::Xdp;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::{Duration, Instant};
use veth::{End, INTERFACE, Veth, ip};
use wire_at::{Wire, interface};

const PATIENCE: Duration = Duration::from_secs(20);

/// Answers what arrives until there have been this many datagrams, each in its own frame.
fn echo(device: &mut dyn PacketDevice, datagrams: u64) {
    let mut batch = RxBatch::default();
    let deadline = Instant::now() + PATIENCE;
    let mut sent = 0;
    while sent < datagrams {
        device.receive(&mut batch);
        sent += device.send_back(&mut batch).datagrams;
        assert!(Instant::now() < deadline, "{sent} of {datagrams}");
    }
}

/// Receives this many datagrams.
fn receive(device: &mut dyn PacketDevice, datagrams: usize) -> Vec<Vec<u8>> {
    let mut batch = RxBatch::default();
    let deadline = Instant::now() + PATIENCE;
    let mut received = Vec::new();
    while received.len() < datagrams {
        device.receive(&mut batch);
        for index in 0..batch.count() {
            received.extend(batch.segments(index).map(<[u8]>::to_vec));
        }
        assert!(
            Instant::now() < deadline,
            "{} of {datagrams}",
            received.len()
        );
    }
    received
}

fn figures(end: &End) -> Bypass {
    end.transport().figures().unwrap()
}

/// What this results in as soon as it succeeds. The process that another test starts has this one's
/// descriptors for a moment, so what was closed here may still be open.
fn at_last<T, E: std::fmt::Display>(mut act: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match act() {
            Ok(result) => return result,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A socket of the kernel at this end.
fn plain(end: &End, is_v4: bool) -> UdpDevice {
    end.run(|| UdpDevice::bind(end.address(is_v4)).unwrap())
}

/// A client with a socket of the kernel's has all its datagrams answered in the frames in which
/// they came, and what is longer than a frame goes through the kernel in both directions.
#[test]
fn requests_are_answered_in_their_frames() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, there] = veth.ends();
    assert!(
        here.transport().figures().is_none(),
        "nothing is taken before it is used"
    );
    for is_v4 in [true, false] {
        let mut server = here.run(|| here.transport().open(here.address(is_v4)).unwrap());
        let mut client = plain(there, is_v4);
        let to = server.address().unwrap();
        let before = figures(here);
        for bytes in [0, 1, 2, 100, 1472, 2900] {
            let payload = vec![bytes as u8; bytes];
            client.send(&[Message::alone(to, &payload); 5]);
            if bytes > 0 {
                echo(&mut *server, 5);
                assert_eq!(receive(&mut client, 5), vec![payload; 5]);
            } else {
                receive(&mut *server, 5);
            }
        }
        let after = figures(here);
        assert_eq!(after.received - before.received, 30, "is_v4: {is_v4}");
        assert_eq!(after.sent - before.sent, 25);
        assert_eq!(after.kernel_sent, before.kernel_sent);
        // A reply that is made elsewhere leaves by the queue, too, if its receiver has sent
        // something of late.
        let from = client.address().unwrap();
        server.send(&[Message::framed(from, *b"a header", b" and more")]);
        assert_eq!(receive(&mut client, 1), [b"a header and more"]);
        assert_eq!(figures(here).sent - after.sent, 1);
        let long = vec![7; 20_000];
        client.send(&[Message::alone(to, &long)]);
        echo(&mut *server, 1);
        assert_eq!(receive(&mut client, 1), [long]);
        let last = figures(here);
        assert_eq!(last.kernel_received - after.kernel_received, 1);
        assert_eq!(last.kernel_sent - after.kernel_sent, 1);
        assert!(
            last.refused.iter().all(|(_, count)| *count == 0),
            "{:?}",
            last.refused
        );
    }
    let figures = figures(here);
    assert_eq!(
        (figures.mode.as_str(), figures.queues, figures.elsewhere),
        ("native", 1, 0)
    );
    assert!(figures.bursts.iter().sum::<u64>() > 0);
}

/// An address at the other end that is not on the link, to which the kernel sends packets of 1,300
/// bytes at most, as if it had learned that of the path.
const FAR: [&str; 2] = ["10.8.0.2", "fd08::2"];
/// A second address at this end.
const SECOND: [&str; 2] = ["10.7.0.9", "fd00::9"];

fn ips(end: &End, arguments: &[&str]) {
    end.run(|| arguments.iter().try_for_each(|it| ip(it)).unwrap());
}

/// A client at the far address, of a server that has two addresses on the link.
fn far_client(veth: &Veth, is_v4: bool) -> UdpDevice {
    let [here, there] = veth.ends();
    ips(
        here,
        &[
            "address add 10.7.0.9/24 dev veth0 label veth0:vip",
            "address add fd00::9/64 dev veth0 nodad",
            "route add 10.8.0.2/32 via 10.7.0.2 mtu 1300",
            "route add fd08::2/128 via fd00::2 mtu 1300",
        ],
    );
    ips(
        there,
        &[
            "address add 10.8.0.2/32 dev veth0",
            "address add fd08::2/128 dev veth0 nodad",
        ],
    );
    let far = FAR[usize::from(!is_v4)].parse().unwrap();
    there.run(|| UdpDevice::bind(SocketAddr::new(far, 0)).unwrap())
}

/// The other end of a pair may hand frames over without their tags, and nothing shows whether it
/// does.
#[test]
fn a_pair_is_warned_of_for_its_tags() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, _] = veth.ends();
    let _server = here.run(|| here.transport().open(here.address(true)).unwrap());
    let warning = figures(here).warning.unwrap();
    assert!(warning.contains("at veth0 without their tags"), "{warning}");
    assert!(warning.contains("ethtool -K PEER txvlan off"), "{warning}");
}

/// What a client asks one address of a server that listens at all of them is answered from that
/// address, past the kernel's stack and by it.
#[test]
fn replies_come_from_the_address_that_was_asked() {
    for is_v4 in [true, false] {
        let Some(veth) = Veth::new(false) else { return };
        let [here, _] = veth.ends();
        let mut client = far_client(&veth, is_v4);
        let any: SocketAddr = if is_v4 { "0.0.0.0:0" } else { "[::]:0" }.parse().unwrap();
        let mut server = here.run(|| here.transport().open(any).unwrap());
        let port = server.address().unwrap().port();
        let to = SocketAddr::new(SECOND[usize::from(!is_v4)].parse().unwrap(), port);
        let mut batch = RxBatch::default();
        for (bytes, by_kernel) in [(100, 0), (1400, 1), (20_000, 2)] {
            let payload = vec![bytes as u8; bytes];
            client.send(&[Message::alone(to, &payload)]);
            echo(&mut *server, 1);
            let deadline = Instant::now() + PATIENCE;
            while client.receive(&mut batch) == 0 {
                assert!(Instant::now() < deadline, "nothing arrives");
            }
            assert_eq!((batch.bytes(0), batch.peer(0)), (&payload[..], to));
            assert_eq!(figures(here).kernel_sent, by_kernel, "{bytes}");
        }
    }
}

/// The kernel would deliver a reply to one of its own sockets.
#[test]
fn what_claims_to_come_from_another_address_of_the_host_is_refused() {
    for is_v4 in [true, false] {
        let Some(veth) = Veth::new(false) else { return };
        let [here, there] = veth.ends();
        let mut client = far_client(&veth, is_v4);
        let of_host = [
            "address add 10.8.0.2/32 dev lo",
            "address add fd08::2/128 dev lo",
        ];
        ips(here, &of_host);
        let mut server = here.run(|| here.transport().open(here.address(is_v4)).unwrap());
        let to = server.address().unwrap();
        // An honest datagram has the client's end learn the server's hardware address.
        plain(there, is_v4).send(&[Message::alone(to, b"honest")]);
        echo(&mut *server, 1);
        client.send(&[Message::alone(to, b"forged")]);
        let mut batch = RxBatch::default();
        let deadline = Instant::now() + PATIENCE;
        while !figures(here).refused.contains(&("source", 1)) {
            assert_eq!(server.receive(&mut batch), 0);
            assert!(Instant::now() < deadline, "nothing arrives");
        }
    }
}

/// A client asks the link-local address of a server from an address of another network.
#[test]
fn long_replies_leave_from_a_link_local_address() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, there] = veth.ends();
    let is_link_local = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let ours = at_last(|| {
        let addresses = interface(here).addresses;
        let mut ips = addresses.into_iter().map(|(ip, _)| ip);
        ips.find(is_link_local).ok_or("no link-local address")
    });
    let IpAddr::V6(ours) = ours else {
        unreachable!()
    };
    let any = "[::]:0".parse().unwrap();
    let mut server = at_last(|| here.run(|| here.transport().open(any)));
    let port = server.address().unwrap().port();
    let scope = interface(there).index;
    let to = SocketAddr::V6(SocketAddrV6::new(ours, port, 0, scope));
    let mut client = plain(there, false);
    let payload = vec![7; 20_000];
    client.send(&[Message::alone(to, &payload)]);
    echo(&mut *server, 1);
    assert_eq!(receive(&mut client, 1), [payload]);
}

/// Link-local addresses are those of an interface, and not all clients come by the one with the
/// queues.
#[test]
fn replies_leave_from_a_link_local_address_of_another_interface() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, _] = veth.ends();
    let other = [
        "link add veth8 type veth peer name veth9",
        "address add fe80::8/64 dev veth8 nodad",
        "link set veth9 up",
        "link set veth8 up",
    ];
    ips(here, &other);
    // Another host may have the address on the link of the first interface.
    let ip = "fe80::8".parse().unwrap();
    assert!(!interface(here).of_host.contains(&IpAddr::V6(ip)));
    let mut server = here.run(|| here.transport().open("[::]:0".parse().unwrap()).unwrap());
    let port = server.address().unwrap().port();
    let other = here.run(|| Interface::named("veth8")).unwrap().unwrap();
    let at = |port| SocketAddr::V6(SocketAddrV6::new(ip, port, 0, other.index));
    for from in [at(0), here.address(false)] {
        let mut client = here.run(|| UdpDevice::bind(from).unwrap());
        client.send(&[Message::alone(at(port), b"request")]);
        echo(&mut *server, 1);
        assert_eq!(receive(&mut client, 1), [b"request"]);
    }
}

/// Replies that a path may not take whole go through the kernel, which knows the path.
#[test]
fn long_replies_to_hosts_behind_routers_are_not_lost() {
    for is_v4 in [true, false] {
        let Some(veth) = Veth::new(false) else { return };
        let [here, _] = veth.ends();
        let mut client = far_client(&veth, is_v4);
        let from = client.address().unwrap();
        let mut server = here.run(|| here.transport().open(here.address(is_v4)).unwrap());
        let to = server.address().unwrap();
        let longest = 1280 - 8 - if is_v4 { 20 } else { 40 };
        for (bytes, by_kernel) in [(longest, 0), (longest + 1, 2), (1400, 4)] {
            let payload = vec![7; bytes];
            client.send(&[Message::alone(to, &payload)]);
            echo(&mut *server, 1);
            server.send(&[Message::alone(from, &payload)]);
            assert_eq!(receive(&mut client, 2), vec![payload; 2]);
            assert_eq!(figures(here).kernel_sent, by_kernel, "{bytes}");
        }
    }
}

/// All frames come back, however often they go round.
#[test]
fn frames_are_never_lost() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, there] = veth.ends();
    let mut server = here.run(|| here.transport().open(here.address(true)).unwrap());
    let mut client = plain(there, true);
    let to = server.address().unwrap();
    let free = |figures: Bypass| figures.frames_free + figures.fill_waiting;
    let before = free(figures(here));
    for round in 0..600 {
        client.send(&[Message::alone(to, b"request"); 32]);
        match round % 3 {
            0 => echo(&mut *server, 32),
            1 => drop(receive(&mut *server, 32)),
            _ => {
                let peer = client.address().unwrap();
                receive(&mut *server, 32);
                server.send(&[Message::alone(peer, b"reply"); 32]);
            }
        }
        if round % 3 != 1 {
            receive(&mut client, 32);
        }
    }
    // What was sent last is collected with the next frames.
    client.send(&[Message::alone(to, b"last")]);
    receive(&mut *server, 1);
    assert_eq!(free(figures(here)), before);
}

/// Frames that carry replies back are filled again, if nothing but such replies is sent: there are
/// more than twice as many datagrams as frames.
#[test]
fn frames_of_replies_in_place_are_filled_again() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, there] = veth.ends();
    let mut server = here.run(|| here.transport().open(here.address(true)).unwrap());
    let mut client = plain(there, true);
    let to = server.address().unwrap();
    for _ in 0..10_000 / 32 + 1 {
        client.send(&[Message::alone(to, b"request"); 32]);
        echo(&mut *server, 32);
        receive(&mut client, 32);
    }
}

/// What a device has not received when it closes is free for others at the interface.
#[test]
fn a_device_that_closes_gives_its_frames_back() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, there] = veth.ends();
    let server = here.run(|| here.transport().open(here.address(true)).unwrap());
    let mut client = plain(there, true);
    let to = server.address().unwrap();
    let free = |figures: Bypass| figures.frames_free + figures.fill_waiting;
    let before = free(figures(here));
    client.send(&[Message::alone(to, b"request"); 20]);
    let deadline = Instant::now() + PATIENCE;
    while figures(here).rx_waiting < 20 {
        assert!(Instant::now() < deadline, "{}", figures(here).rx_waiting);
    }
    assert_eq!(free(figures(here)), before - 20);
    drop(server);
    assert_eq!(free(figures(here)), before);
}

/// Workers at one port have a socket each at the only queue.
#[test]
fn workers_share_a_queue() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, there] = veth.ends();
    let mut workers = here.run(|| here.transport().open_group(here.address(true), 3).unwrap());
    let to = workers[0].address().unwrap();
    let clients: Vec<UdpDevice> = (0..24).map(|_| plain(there, true)).collect();
    for mut client in clients.clone() {
        client.send(&[Message::alone(to, b"request"); 2]);
    }
    let mut batch = RxBatch::default();
    let mut peers: Vec<Vec<SocketAddr>> = vec![Vec::new(); 3];
    let deadline = Instant::now() + PATIENCE;
    while peers.iter().map(Vec::len).sum::<usize>() < 48 {
        for (worker, peers) in workers.iter_mut().zip(&mut peers) {
            worker.receive(&mut batch);
            peers.extend((0..batch.count()).map(|index| batch.peer(index)));
            worker.send_back(&mut batch);
        }
        assert!(Instant::now() < deadline, "{peers:?}");
    }
    for (number, of_one) in peers.iter().enumerate() {
        assert!(!of_one.is_empty(), "worker {number} has no peer of 24");
        let others = peers
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != number);
        for peer in others.flat_map(|(_, peers)| peers) {
            assert!(!of_one.contains(peer), "{peer} reaches two workers");
        }
    }
    for mut client in clients {
        assert_eq!(receive(&mut client, 2), [b"request"; 2]);
    }
    assert_eq!(figures(here).received, 48);
}

/// Workers that share a port have queues of their own, and none is another one's. A worker that has
/// a port for itself is asked at all of them, of which one is its own.
#[test]
fn only_who_has_a_port_alone_has_datagrams_elsewhere() {
    let Some(veth) = Veth::with_queues(4) else {
        return;
    };
    let [here, there] = veth.ends();
    let mut workers = here.run(|| here.transport().open_group(here.address(true), 2).unwrap());
    let mut alone = here.run(|| here.transport().open(here.address(true)).unwrap());
    let clients: Vec<UdpDevice> = (0..24).map(|_| plain(there, true)).collect();
    let ask = |to: SocketAddr| {
        for client in &clients {
            client.clone().send(&[Message::alone(to, b"request")]);
        }
    };
    let mut batch = RxBatch::default();
    let deadline = Instant::now() + PATIENCE;
    ask(workers[0].address().unwrap());
    while figures(here).received < 24 {
        for worker in &mut workers {
            worker.receive(&mut batch);
        }
        assert!(Instant::now() < deadline, "{}", figures(here).received);
    }
    let shared = figures(here);
    assert_eq!((shared.queues, shared.elsewhere), (4, 0));
    assert_eq!(shared.steering, None);
    ask(alone.address().unwrap());
    assert_eq!(receive(&mut *alone, 24).len(), 24);
    let figures = figures(here);
    let elsewhere = figures.elsewhere;
    assert!((1..=24).contains(&elsewhere), "{elsewhere} of 24");
    assert!(figures.steering.is_some());
}

/// Frames that lie are counted and not answered, and what is the kernel's reaches it.
#[test]
fn hostile_frames_are_counted_and_not_answered() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, there] = veth.ends();
    let (ours, theirs) = (interface(here), interface(there));
    let mut server = here.run(|| here.transport().open(here.address(true)).unwrap());
    Wire::at(there).put_hostile(&theirs, &ours, server.address().unwrap());
    // The last frame is one of the four, so those before it have been looked at.
    assert_eq!(receive(&mut *server, 4), [[5; 40]; 4]);
    let counts = figures(here);
    let expected = [
        ("short", 0),
        ("not_ours", 0),
        ("length", 1),
        ("checksum", 3),
        ("address", 0),
        ("source", 5),
    ];
    assert_eq!(counts.refused, expected);
    assert_eq!((counts.received, counts.kernel_received), (3, 1));
}

/// A frame whose checksum is left to hardware may be several datagrams in the generic mode, so the
/// kernel takes it there; a checksum that was computed goes past the kernel.
#[test]
fn the_generic_mode_leaves_what_is_not_finished_to_the_kernel() {
    let Some(veth) = Veth::new(true) else { return };
    let [here, there] = veth.ends();
    let mut server = here.run(|| here.transport().open(here.address(true)).unwrap());
    let mut client = plain(there, true);
    let to = server.address().unwrap();
    let segments = [8; 400];
    client.send(&[Message::segments(to, &segments, 50)]);
    assert_eq!(receive(&mut *server, 8), [[8; 50]; 8]);
    assert_eq!(figures(here).received, 0);
    let (ours, theirs) = (interface(here), interface(there));
    let ends = Ends {
        our_mac: theirs.mac,
        their_mac: ours.mac,
        ours: client.address().unwrap(),
        theirs: to,
    };
    let mut frame = vec![0; 100];
    let bytes = wire::fill(&mut frame, &ends, b"finished", b"").unwrap();
    Wire::at(there).put(theirs.index as i32, &frame[..bytes]);
    echo(&mut *server, 1);
    assert_eq!(receive(&mut client, 1), [b"finished"]);
    let figures = figures(here);
    assert_eq!(
        (figures.mode.as_str(), figures.received, figures.sent),
        ("generic", 1, 1)
    );
}

/// A server at all addresses starts at an interface with addresses of one family only.
#[test]
fn a_family_that_the_interface_lacks_is_served_by_the_kernel() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, _] = veth.ends();
    here.run(|| ip("-6 address flush dev veth0")).unwrap();
    let mut workers = here.run(|| {
        let any: SocketAddr = "[::]:0".parse().unwrap();
        let mut workers = here.transport().open_group(any, 2).unwrap();
        workers.push(here.transport().open(any).unwrap());
        workers
    });
    let mut client = here.run(|| UdpDevice::bind("[::1]:0".parse().unwrap()).unwrap());
    let mut batch = RxBatch::default();
    for of_port in [0..2, 2..3] {
        let port = workers[of_port.start].address().unwrap().port();
        let to = SocketAddr::new("::1".parse().unwrap(), port);
        client.send(&[Message::alone(to, b"request")]);
        let deadline = Instant::now() + PATIENCE;
        let mut sent = 0;
        while sent == 0 {
            for worker in &mut workers[of_port.clone()] {
                worker.receive(&mut batch);
                sent += worker.send_back(&mut batch).datagrams;
            }
            assert!(Instant::now() < deadline, "nothing arrives");
        }
        assert_eq!(receive(&mut client, 1), [b"request"]);
    }
    let figures = figures(here);
    assert_eq!((figures.received, figures.kernel_received), (0, 2));
}

/// Two servers never share an interface, the second learns why, and nothing is left behind.
#[test]
fn an_interface_is_taken_once_and_given_back() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, _] = veth.ends();
    let address = here.address(true);
    here.run(|| {
        let refused = |named: &Xdp, at| named.open(at).err().expect("it is refused").to_string();
        let (first, second) = (
            Xdp::new(INTERFACE, None, false),
            Xdp::new(INTERFACE, None, false),
        );
        let device = first.open(address).unwrap();
        let sockets = 2 * 2;
        let rings = 4096 * (2 * 8 + 16) + sockets * 2 * 1024 * 16;
        assert_eq!(first.memory_bytes(1), 4096 * 4096 + rings);
        let line = refused(&second, address);
        assert!(
            line.contains("another XDP program") && line.contains("xdp off"),
            "{line}"
        );
        let line = refused(&first, ([127, 0, 0, 1], 0).into());
        assert!(
            line.contains("10.7.0.1") && line.contains("with -l"),
            "{line}"
        );
        drop(device);
        drop(first);
        drop(at_last(|| second.open(address)));
    });
    drop(
        here.transport()
            .open(([10, 7, 0, 1], 0).into())
            .err()
            .expect("not in this namespace"),
    );
    here.run(|| at_last(|| ip("link set veth0 xdp off")));
}
