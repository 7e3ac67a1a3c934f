use super::*;
use crate::Poller;

fn names() -> [SocketAddr; 2] {
    [([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into()]
}

/// Sends bytes through a connection, and returns the length of every send and receive.
fn run(faults: StreamFaults, seed: u64) -> (Vec<Sent>, Vec<Received>) {
    let [mut one, mut other] = LocalStream::pair(faults, names(), seed);
    let bytes: Vec<u8> = (0..20_000u32).map(|at| (at % 251) as u8).collect();
    let (mut from, mut all) = (0, Vec::new());
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    while all.len() < bytes.len() {
        let sent = one.send(&bytes[from..bytes.len().min(from + 500)]);
        sends.push(sent);
        from += match sent {
            Sent::All => bytes.len().min(from + 500) - from,
            Sent::Part(count) => count,
            Sent::Failed => break,
        };
        let mut buffer = Vec::with_capacity(300);
        let received = other.receive(&mut buffer);
        all.extend(buffer);
        receives.push(received);
        if received == Received::Ended {
            break;
        }
    }
    assert!(bytes.starts_with(&all));
    (sends, receives)
}

#[test]
fn a_seed_decides_everything() {
    let faults = StreamFaults {
        short_read: 0.3,
        short_write: 0.3,
        reset: 0.01,
        buffer_bytes: 1000,
    };
    assert_eq!(run(faults, 1), run(faults, 1));
    assert_ne!(run(faults, 1), run(faults, 2));
}

#[test]
fn reads_and_writes_are_short_as_often_as_asked_for() {
    let faults = StreamFaults {
        short_read: 0.5,
        short_write: 0.5,
        ..StreamFaults::default()
    };
    let (sends, receives) = run(faults, 1);
    let is_short = |sent: &&Sent| matches!(sent, Sent::Part(1..));
    assert!(sends.iter().filter(is_short).count() > 10);
    let drained = |received: &&Received| matches!(received, Received::Drained(1..));
    assert!(receives.iter().filter(drained).count() > 10);
    let (sends, receives) = run(StreamFaults::default(), 1);
    assert!(
        sends
            .iter()
            .all(|sent| *sent == Sent::All || *sent == Sent::Part(0))
    );
    let full = |received: &&Received| matches!(received, Received::Full(300));
    assert!(receives.iter().filter(full).count() > receives.len() / 2);
}

#[test]
fn connections_are_reset_as_often_as_asked_for() {
    let faults = StreamFaults {
        reset: 0.01,
        ..StreamFaults::default()
    };
    let ends_early = |seed: &u64| {
        let (sends, receives) = run(faults, *seed);
        let is_reset = sends.last() == Some(&Sent::Failed);
        is_reset || receives.last() == Some(&Received::Ended)
    };
    // With about 130 calls each, three out of four.
    let resets = (0..100).filter(ends_early).count();
    assert!((60..90).contains(&resets), "{resets} of 100");
}

#[test]
fn what_is_sent_to_a_closed_end_fails_after_its_bytes_were_received() {
    let [mut one, mut other] = LocalStream::pair(StreamFaults::default(), names(), 1);
    assert_eq!(other.send(b"last words"), Sent::All);
    drop(other);
    assert!(one.ready().hung_up);
    let mut buffer = Vec::with_capacity(100);
    assert_eq!(one.receive(&mut buffer), Received::Drained(10));
    assert_eq!(one.receive(&mut buffer), Received::Ended);
    assert_eq!(one.send(b"hello?"), Sent::Failed);
    assert_eq!(one.peer(), None);
}

#[test]
fn an_end_that_is_closed_with_bytes_unread_resets_the_connection() {
    let [mut one, mut other] = LocalStream::pair(StreamFaults::default(), names(), 1);
    one.send(b"a request");
    other.send(b"a reply");
    drop(other);
    let mut buffer = Vec::with_capacity(100);
    assert_eq!(one.receive(&mut buffer), Received::Ended);
}

/// What a poller reports, and everything that can be received then.
fn received(poller: &mut Poller, stream: &mut LocalStream) -> (usize, Vec<u8>) {
    let mut bytes = Vec::with_capacity(100);
    let mut reports = 0;
    loop {
        poller.wait(None).unwrap();
        if poller.ready_count() == 0 {
            return (reports, bytes);
        }
        reports += 1;
        if poller.ready(0).readable {
            stream.receive(&mut bytes);
        }
    }
}

#[test]
fn a_poller_is_told_of_every_change_once() {
    let [mut one, mut other] = LocalStream::pair(StreamFaults::default(), names(), 1);
    let mut poller = Poller::local(8);
    poller.watch_edges(one.wakeup(), 7).unwrap();
    poller.wait(None).unwrap();
    let first = poller.ready(0);
    assert_eq!(
        (first.token, first.readable, first.writable),
        (7, false, true)
    );
    assert!(!poller.has_signals());

    for text in [&b"some"[..], b"more"] {
        other.send(text);
        assert!(poller.has_signals());
        assert_eq!(received(&mut poller, &mut one), (1, text.to_vec()));
    }
    drop(other);
    poller.wait(None).unwrap();
    assert!(poller.ready(0).hung_up);
    drop(one);
    assert!(!poller.has_signals());
}

#[test]
fn what_a_short_read_leaves_is_reported_again() {
    let faults = StreamFaults {
        short_read: 1.0,
        ..StreamFaults::default()
    };
    let [mut one, mut other] = LocalStream::pair(faults, names(), 1);
    let mut poller = Poller::local(8);
    poller.watch_edges(one.wakeup(), 7).unwrap();
    other.send(b"a text that arrives bit by bit");
    let (reports, bytes) = received(&mut poller, &mut one);
    assert!(reports > 2);
    assert_eq!(bytes, b"a text that arrives bit by bit");
}

#[test]
fn a_listener_is_reported_for_as_long_as_a_connection_waits() {
    let mut listener = LocalListener::new(names()[1]);
    let mut poller = Poller::local(8);
    poller.watch_level(listener.wakeup(), 3).unwrap();
    let _clients = [1, 2].map(|seed| listener.connect(names()[0], StreamFaults::default(), seed));
    for _ in 0..2 {
        poller.wait(None).unwrap();
        assert_eq!(poller.ready_count(), 1);
        listener.accept().unwrap().unwrap();
    }
    poller.wait(None).unwrap();
    assert_eq!(poller.ready_count(), 0);
}

/// As where a process is killed: what it has sent is still received.
#[test]
fn what_was_accepted_sends_nothing_after_a_cut() {
    let mut listener = LocalListener::new(names()[1]);
    let mut client = listener.connect(names()[0], StreamFaults::default(), 1);
    let mut server = listener.accept().unwrap().unwrap();
    assert_eq!(server.send(b"before"), Sent::All);
    listener.cut();
    assert_eq!(server.send(b"after"), Sent::Failed);
    let mut received = Vec::with_capacity(100);
    assert_eq!(client.receive(&mut received), Received::Drained(6));
    assert_eq!(received, b"before");
    assert_eq!(client.receive(&mut received), Received::Ended);
    assert_eq!(client.send(b"to nobody"), Sent::Failed);
    let mut later = listener.connect(names()[0], StreamFaults::default(), 1);
    assert_eq!(later.send(b"to somebody"), Sent::All);
}

#[test]
fn a_flood_goes_on_until_it_has_been_received_as_often_as_it_may() {
    let [one, mut other] = LocalStream::pair(StreamFaults::default(), names(), 1);
    let mut poller = Poller::local(8);
    poller.watch_edges(other.wakeup(), 1).unwrap();
    poller.wait(None).unwrap();
    let mut one = one;
    assert_eq!(one.send(b"first"), Sent::All);
    one.flood(b"abc", 2);
    poller.wait(None).unwrap();
    assert!(poller.ready(0).readable);
    let mut receive = |most| {
        let mut buffer = Vec::with_capacity(100);
        (other.receive_at_most(&mut buffer, most), buffer)
    };
    assert_eq!(receive(5), (Received::Full(5), b"first".to_vec()));
    assert_eq!(one.flooded(), 0);
    assert_eq!(receive(4), (Received::Full(4), b"abca".to_vec()));
    assert_eq!(receive(4), (Received::Full(4), b"bcab".to_vec()));
    assert_eq!(one.flooded(), 2);
    assert_eq!(receive(4), (Received::Drained(0), Vec::new()));
    one.flood(b"abc", 2);
    drop(one);
    assert_eq!(
        receive(4).0,
        Received::Ended,
        "whoever is gone sends no more"
    );
}
