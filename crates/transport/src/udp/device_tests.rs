use super::*;
use glimmer_base::limits::PACKET_BATCH_MAX;
use std::net::UdpSocket;
use std::time::Duration;

const ANY: &str = "127.0.0.1:0";

fn any() -> SocketAddr {
    ANY.parse().unwrap()
}

fn client(of: &UdpDevice) -> UdpSocket {
    let client = UdpSocket::bind(ANY).unwrap();
    client.connect(of.address().unwrap()).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    client
}

/// Receives this many segment batches.
fn receive(device: &mut UdpDevice, batch: &mut RxBatch, count: usize) -> Vec<(usize, Vec<u8>)> {
    let mut received = Vec::new();
    while received.len() < count {
        for index in 0..device.receive(batch) {
            received.push((batch.segment_bytes(index), batch.bytes(index).to_vec()));
        }
        std::thread::yield_now();
    }
    received
}

/// Each socket of a group would get it, and execute what it asks for.
#[test]
fn what_is_for_all_hosts_is_for_no_socket_of_a_group() {
    let mut devices = UdpDevice::bind_group(([0; 4], 0).into(), 3).unwrap();
    let port = devices[0].address().unwrap().port();
    let client = UdpSocket::bind(ANY).unwrap();
    client.set_broadcast(true).unwrap();
    let to = |ip: [u8; 4]| SocketAddr::from((ip, port));
    client.send_to(b"all", to([127, 255, 255, 255])).unwrap();
    client.send_to(b"one", to([127, 0, 0, 1])).unwrap();
    let mut batch = RxBatch::default();
    let mut received = Vec::new();
    while received.is_empty() {
        for device in &mut devices {
            for index in 0..device.receive(&mut batch) {
                received.push(batch.bytes(index).to_vec());
            }
        }
    }
    assert_eq!(received, [b"one"]);
}

/// Payload lengths at which segment batches begin and end: alike, one shorter at the end, longer
/// ones after shorter ones, and none.
const LENGTHS: [usize; 13] = [5, 5, 5, 3, 5, 5, 0, 0, 9, 9, 9, 1400, 1400];

fn is_sent_as_it_is(
    mut device: UdpDevice,
    message: for<'a> fn(SocketAddr, &'a [u8]) -> Message<'a>,
) {
    let one = UdpSocket::bind(ANY).unwrap();
    let other = UdpSocket::bind(ANY).unwrap();
    let to = [&one, &other].map(|socket| socket.local_addr().unwrap());
    let payloads = LENGTHS.map(|bytes| vec![bytes as u8; bytes]);
    let numbered = || payloads.iter().enumerate();
    // Two for the one, two for the other, so that segment batches end with their peers as well.
    let alternating = numbered().map(|(at, payload)| message(to[at / 2 % 2], payload));
    let to_one_alone = numbered().map(|(_, payload)| message(to[0], payload));
    for messages in [alternating.collect::<Vec<_>>(), to_one_alone.collect()] {
        assert_eq!(device.send(&messages).datagrams, messages.len() as u64);
        let mut buffer = [0; 2000];
        for sent in &messages {
            let socket = if sent.to == to[0] { &one } else { &other };
            let bytes = socket.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..bytes], [sent.header(), sent.payload].concat());
        }
    }
}

fn alone(to: SocketAddr, payload: &[u8]) -> Message<'_> {
    Message::alone(to, payload)
}

fn framed(to: SocketAddr, payload: &[u8]) -> Message<'_> {
    Message::framed(to, *b"header: ", payload)
}

#[test]
fn datagrams_arrive_apart_however_they_travel() {
    for message in [framed, alone] {
        is_sent_as_it_is(UdpDevice::bind(any()).unwrap(), message);
        let device = UdpDevice::bind_shared(any()).unwrap().without_coalescing();
        is_sent_as_it_is(device, message);
    }
}

/// A socket that sends without checksums is refused segmentation.
#[test]
fn datagrams_arrive_where_segment_batches_are_refused() {
    let mut device = UdpDevice::bind(any()).unwrap();
    crate::sys::udp::without_checksums(device.as_fd());
    let (mut peer, mut batch) = (UdpDevice::bind(any()).unwrap(), RxBatch::default());
    let to = peer.address().unwrap();
    let message = Message::segments(to, b"alike,alike,al", 6);
    let refused = device.try_send(&[message]).unwrap_err();
    assert!(crate::sys::headers::refuses_segments(&refused), "{refused}");
    assert_eq!(device.send(&[message]).datagrams, 3);
    let received = receive(&mut peer, &mut batch, 3);
    let expected = [&b"alike,"[..], b"alike,", b"al"].map(|one| (one.len(), one.to_vec()));
    assert_eq!(received, expected);
    is_sent_as_it_is(device, framed);
}

#[test]
fn single_datagrams_of_one_length_travel_as_one_segment_batch_if_they_may() {
    let mut server = UdpDevice::bind(any()).unwrap();
    let mut batch = RxBatch::default();
    let message = Message::framed(server.address().unwrap(), *b"header: ", b"payload");
    let mut client = UdpDevice::bind_shared(any()).unwrap();
    client.send(&[message; 8]);
    let whole = b"header: payload".repeat(8);
    assert_eq!(receive(&mut server, &mut batch, 1), [(15, whole)]);
    let mut client = client.without_coalescing();
    client.send(&[message; 8]);
    let apart = vec![(15, b"header: payload".to_vec()); 8];
    assert_eq!(receive(&mut server, &mut batch, 8), apart);
}

#[test]
fn a_connected_socket_talks_to_its_peer_alone() {
    let mut server = UdpDevice::bind_shared(any()).unwrap();
    let mut device = UdpDevice::connect(server.address().unwrap()).unwrap();
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let payloads: Vec<Vec<u8>> = (0..PACKET_BATCH_MAX).map(|n| vec![n as u8; n]).collect();
    let messages = payloads
        .iter()
        .map(|payload| Message::framed(nowhere, *b"to whom?", payload));
    let messages: Vec<Message<'_>> = messages.collect();
    assert_eq!(device.send(&messages).datagrams, messages.len() as u64);
    let mut batch = RxBatch::default();
    let received = receive(&mut server, &mut batch, payloads.len());
    let expected = payloads.iter().map(|p| [b"to whom?", &p[..]].concat());
    assert!(expected.eq(received.into_iter().map(|(_, bytes)| bytes)));

    // Another sender is not heard; a peer that has gone is an error.
    let other = UdpSocket::bind(ANY).unwrap();
    other.send_to(b"hello", device.address().unwrap()).unwrap();
    assert_eq!(device.try_receive(&mut batch).unwrap(), 0);
    drop(server);
    let _ = device.try_send(&[Message::alone(nowhere, b"gone")]);
    let refused = device.try_receive(&mut batch).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_peer_that_is_gone_is_not_the_end() {
    let mut device = UdpDevice::bind_shared(any()).unwrap();
    let mut batch = RxBatch::default();
    client(&device).send(b"who").unwrap();
    receive(&mut device, &mut batch, 1);
    for _ in 0..3 {
        device.send_back(&mut batch);
    }
    client(&device).send(b"still there").unwrap();
    assert_eq!(
        receive(&mut device, &mut batch, 1),
        [(11, b"still there".to_vec())]
    );
}

#[test]
fn the_kernel_tells_how_many_datagrams_it_dropped() {
    for bind in [UdpDevice::bind, UdpDevice::bind_shared] {
        let mut device = bind(any()).unwrap();
        let client = client(&device);
        let mut batch = RxBatch::default();
        client.send(b"first").unwrap();
        assert_eq!((device.receive(&mut batch), batch.drops()), (1, None));
        // More than any receive buffer holds.
        for _ in 0..20_000 {
            client.send(&[7; 1400]).unwrap();
        }
        while device.receive(&mut batch) > 0 {}
        // What comes after a loss brings the news of it.
        client.send(b"last").unwrap();
        assert_eq!(device.receive(&mut batch), 1);
        let drops = batch.drops();
        assert!((1..20_000).contains(&drops.unwrap()), "{drops:?}");
    }
}

#[test]
fn a_closed_port_is_reported_with_its_address_and_what_was_sent() {
    for any in [ANY, "[::1]:0"] {
        let Ok(closed) = UdpDevice::bind(any.parse().unwrap()) else {
            println!("SKIPPED {any}: no such address here");
            continue;
        };
        let address = closed.address().unwrap();
        drop(closed);
        let mut device = UdpDevice::bind(any.parse().unwrap()).unwrap();
        device.report_refusals().unwrap();
        let bytes: Vec<u8> = (0..200).collect();
        device.send(&[Message::segments(address, &bytes, 100)]);
        let mut quoted = [0; 64];
        let (refuser, length) = loop {
            if let Some(refusal) = device.take_refusal(&mut quoted) {
                break refusal;
            }
            std::thread::yield_now();
        };
        assert_eq!(refuser.port(), address.port());
        assert_eq!(quoted[..length], bytes[..64]);
    }
}

#[test]
fn an_address_is_bound_alone_unless_it_is_shared() {
    let first = UdpDevice::bind(any()).unwrap();
    let second = UdpDevice::bind(first.address().unwrap());
    assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    let group = UdpDevice::bind_group(any(), 3).unwrap();
    let address = group[0].address().unwrap();
    assert!(group.iter().all(|one| one.address().unwrap() == address));
    let other = UdpDevice::bind_group(address, 1);
    assert_eq!(other.unwrap_err().kind(), io::ErrorKind::AddrInUse);
}
