use super::*;
use crate::xdp::attached::KERNEL_BURST;
use crate::xdp::veth::{End, INTERFACE, Veth, ip};
use glimmer_base::limits::XDP_FRAMES_PER_QUEUE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A device at this end, as the only one.
fn device(end: &End) -> XdpDevice {
    end.run(|| {
        let port = Arc::new(Port::open(INTERFACE, None, false, None).unwrap());
        let kernel = UdpDevice::bind(end.address(true)).unwrap();
        let rules = port.rules(kernel.address().unwrap()).unwrap();
        let socket = port.queues[0].socket().unwrap();
        let number = port.program.lock().reserve(1).unwrap();
        let mut program = port.program.lock();
        program.set_socket(number, socket.as_fd()).unwrap();
        drop(program);
        let registration = Registration::new(&port, &rules, (number, 1, 1)).unwrap();
        let parts = Parts {
            sockets: vec![Attached::new(socket, 0)],
            kernel,
            rules,
            registration: Arc::new(registration),
            home: Some(0),
        };
        XdpDevice::new(&port, parts).unwrap()
    })
}

/// A server past the kernel's stack that has received a request of a client.
fn asked(veth: &Veth) -> (XdpDevice, UdpDevice, RxBatch) {
    let [here, there] = veth.ends();
    let mut server = device(here);
    let mut client = there.run(|| UdpDevice::bind(there.address(true)).unwrap());
    let to = server.address().unwrap();
    assert_eq!(client.send(&[Message::alone(to, b"request")]).datagrams, 1);
    let mut batch = RxBatch::default();
    next(&mut server, &mut batch);
    (server, client, batch)
}

/// Receives one datagram.
fn next(device: &mut dyn PacketDevice, batch: &mut RxBatch) -> Vec<u8> {
    let deadline = Instant::now() + PATIENCE;
    while device.receive(batch) == 0 {
        assert!(Instant::now() < deadline, "nothing arrives");
    }
    assert_eq!(batch.count(), 1);
    batch.bytes(0).to_vec()
}

/// Puts a datagram into the ring, but does not have it sent.
fn put(server: &XdpDevice, client: &UdpDevice, payload: &[u8]) {
    let to = client.address().unwrap();
    let mut state = server.0.state.lock();
    let message = Message::alone(to, payload);
    assert_eq!(server.0.put(&mut state, &message), Ok(()));
}

fn is_woken(device: &XdpDevice) -> bool {
    let mut watched = [PollFd::new(&device.0.waiting, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec::default())).unwrap() > 0
}

#[test]
fn what_stayed_in_the_ring_leaves_with_the_next_call() {
    let Some(veth) = Veth::new(false) else { return };
    let (mut server, mut client, mut batch) = asked(&veth);
    put(&server, &client, b"late");
    server.receive(&mut batch);
    assert_eq!(next(&mut client, &mut batch), b"late");
}

#[test]
fn a_worker_is_woken_for_what_stayed() {
    let Some(veth) = Veth::new(false) else { return };
    let (mut server, mut client, mut batch) = asked(&veth);
    assert!(!is_woken(&server));
    put(&server, &client, b"late");
    let mut state = server.0.state.lock();
    server.0.watch_room(&mut state.sockets[0], true);
    drop(state);
    assert!(is_woken(&server));
    server.receive(&mut batch);
    assert!(!is_woken(&server), "nothing is left");
    assert_eq!(next(&mut client, &mut batch), b"late");
}

/// More frames than the kernel sends with one call.
#[test]
fn a_long_burst_leaves_at_once() {
    let Some(veth) = Veth::new(false) else { return };
    let (server, mut client, mut batch) = asked(&veth);
    let count = 5 * KERNEL_BURST + 1;
    for number in 0..count {
        put(&server, &client, &number.to_le_bytes());
    }
    let mut state = server.0.state.lock();
    assert!(server.0.flush(&mut state));
    assert_eq!(state.sockets[0].socket.tx.waiting(), 0);
    drop(state);
    let mut received = 0;
    let deadline = Instant::now() + PATIENCE;
    while received < count {
        for index in 0..client.receive(&mut batch) {
            received += batch.datagrams(index) as u32;
        }
        assert!(Instant::now() < deadline, "{received} of {count}");
    }
}

/// Has the ring look full: it is that of another socket, from which nobody sends.
fn fill_ring(server: &XdpDevice) -> OwnedFd {
    let other = socket::open().unwrap();
    let mut full = socket::tx_ring(other.as_fd(), 1).unwrap();
    assert!(full.push(descriptor(0, 0)) && !full.push(descriptor(0, 0)));
    server.0.state.lock().sockets[0].socket.tx = full;
    other
}

#[test]
fn a_reply_that_finds_no_room_in_the_ring_goes_through_the_kernel() {
    let Some(veth) = Veth::new(false) else { return };
    let (mut server, mut client, mut batch) = asked(&veth);
    let _other = fill_ring(&server);
    batch.bytes_mut(0).copy_from_slice(b"replied");
    let transmitted = server.send_back(&mut batch);
    assert_eq!((transmitted.datagrams, transmitted.bytes), (1, 7));
    assert_eq!(transmitted.lost, 0);
    assert_eq!(next(&mut client, &mut batch), b"replied");
    let figures = server.0.port.figures();
    assert_eq!((figures.sent, figures.kernel_sent), (0, 1));
    let frames = figures.frames_free + figures.fill_waiting;
    assert_eq!(frames, u64::from(XDP_FRAMES_PER_QUEUE));
}

/// The kernel takes the options for the sockets at queues and for its own, and the device goes on.
#[test]
fn a_device_polls_busily() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, there] = veth.ends();
    let mut server = device(here);
    server.poll_busily(50).unwrap();
    let state = server.0.state.lock();
    for socket in [state.sockets[0].socket.as_fd(), server.0.kernel.as_fd()] {
        assert_eq!(options::busy_polling(socket).unwrap(), (true, 50));
    }
    drop(state);
    let mut batch = RxBatch::default();
    assert_eq!(server.receive(&mut batch), 0);
    let mut client = there.run(|| UdpDevice::bind(there.address(true)).unwrap());
    client.send(&[Message::alone(server.address().unwrap(), b"request")]);
    assert_eq!(next(&mut server, &mut batch), b"request");
}

/// What a peer is sent goes where its latest request came from. So nothing is put into a queue for
/// a peer that is reached by another interface now.
#[test]
fn replies_take_the_way_of_the_latest_request() {
    let Some(veth) = Veth::new(false) else { return };
    let (mut server, mut client, mut batch) = asked(&veth);
    let to = client.address().unwrap();
    let address = server.0.address;
    let requests = [vec![1; 100], vec![2; 20_000], vec![3; 100]];
    for (request, expected) in requests.iter().zip([(1, 0), (1, 1), (2, 1)]) {
        client.send(&[Message::alone(address, request)]);
        assert_eq!(next(&mut server, &mut batch), *request);
        server.send(&[Message::alone(to, b"reply")]);
        assert_eq!(next(&mut client, &mut batch), b"reply");
        let figures = server.0.port.figures();
        assert_eq!((figures.sent, figures.kernel_sent), expected);
    }
}

/// What was put into the ring of an interface that is down or gone counts as lost, and nothing more
/// is put there until the interface is back.
#[test]
fn what_an_interface_does_not_send_is_lost() {
    let Some(veth) = Veth::new(false) else { return };
    let (mut server, mut client, mut batch) = asked(&veth);
    let [here, _] = veth.ends();
    let to = client.address().unwrap();
    let replies = [Message::alone(to, b"reply"); 3];
    let lost = |server: &mut XdpDevice| {
        let transmitted = server.send(&replies);
        let expected = Transmitted {
            lost: 3,
            ..Transmitted::default()
        };
        assert_eq!(transmitted, expected);
        let figures = server.0.port.figures();
        assert!(figures.is_away);
        assert_eq!((figures.sent, figures.kernel_sent), (0, 0));
        figures.tx_waiting
    };
    here.run(|| ip("link set veth0 down")).unwrap();
    assert_eq!(lost(&mut server), 3);
    // The kernel has no way either.
    assert_eq!(lost(&mut server), 3);
    here.run(|| ip("link set veth0 up")).unwrap();
    let address = server.0.address;
    let deadline = Instant::now() + PATIENCE;
    while server.receive(&mut batch) == 0 {
        client.send(&[Message::alone(address, b"request")]);
        std::thread::sleep(Duration::from_millis(1));
        assert!(Instant::now() < deadline, "nothing arrives");
    }
    let transmitted = server.send(&replies);
    assert_eq!((transmitted.datagrams, transmitted.lost), (3, 0));
    assert!(!server.0.port.figures().is_away);
    here.run(|| ip("link delete veth0")).unwrap();
    let transmitted = server.send(&replies);
    assert_eq!((transmitted.datagrams, transmitted.lost), (0, 3));
    assert!(server.0.port.figures().is_away);
}
