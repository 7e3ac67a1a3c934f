//! Connections over in-process streams with faults, held against another implementation's client.

mod support;

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use glimmer_tls::{ClientCertificates, Counters, Settings, Tls, TlsStream, Verify};
use glimmer_transport::Poller;
use glimmer_transport::stream::{
    ByteStream, Handshaking, LocalStream, Received, Sent, StreamFaults,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use rustls::{ClientConfig, HandshakeKind, SupportedProtocolVersion, version};
use support::{Authority, BYTES_MAX, Client, Issued, names, own_authority};

/// A server's end as a worker has it: woken by edges only.
struct Server {
    stream: Box<dyn ByteStream>,
    poller: Poller,
    is_readable: bool,
    /// Its poller does not report this again.
    has_hung_up: bool,
    is_writable: bool,
    has_ended: bool,
    has_failed: bool,
    received: Vec<u8>,
    to_send: Vec<u8>,
    sent: usize,
}

impl Server {
    fn new(tls: &Tls, stream: LocalStream, clients: ClientCertificates) -> Server {
        let (config, counters) = (tls.config(clients), tls.counters().clone());
        let stream = TlsStream::new(Box::new(stream), config, counters).unwrap();
        let poller = Poller::local(4);
        poller.watch_edges(stream.wakeup(), 0).unwrap();
        Server {
            stream: Box::new(stream),
            poller,
            is_readable: false,
            has_hung_up: false,
            is_writable: true,
            has_ended: false,
            has_failed: false,
            received: Vec::new(),
            to_send: Vec::new(),
            sent: 0,
        }
    }

    /// One turn. Receives into so much room, and sends slices of what is to be sent.
    fn turn(&mut self, room: usize, rng: &mut SmallRng) {
        self.poller.wait(Some(Duration::ZERO)).unwrap();
        let mut is_woken = false;
        for index in 0..self.poller.ready_count() {
            let ready = self.poller.ready(index);
            self.is_readable |= ready.readable;
            self.has_hung_up |= ready.hung_up;
            self.is_writable |= ready.writable;
            is_woken = true;
        }
        if self.stream.is_handshaking() {
            if is_woken || self.is_readable || self.has_hung_up {
                self.is_readable = true;
                match self.stream.handshake() {
                    Handshaking::Done | Handshaking::GoesOn => {}
                    Handshaking::Waits => self.is_readable = false,
                    Handshaking::Failed => (self.has_failed, self.has_ended) = (true, true),
                }
            }
            return;
        }
        if (self.is_readable || self.has_hung_up) && !self.has_ended {
            let mut buffer = Vec::with_capacity(room);
            match self.stream.receive_at_most(&mut buffer, usize::MAX) {
                Received::Full(bytes) => assert_eq!(bytes, buffer.len()),
                Received::Drained(bytes) => {
                    assert_eq!(bytes, buffer.len());
                    self.is_readable = false;
                }
                Received::Ended => self.has_ended = true,
            }
            self.received.extend(buffer);
        }
        if self.is_writable && self.sent < self.to_send.len() {
            let rest = &self.to_send[self.sent..];
            let rest = &rest[..rest.len().min(rng.random_range(1..60_000))];
            let (a, b) = rest.split_at(rng.random_range(0..=rest.len()));
            let (b, c) = b.split_at(rng.random_range(0..=b.len()));
            match self.stream.send_parts(&[a, b, c].map(IoSlice::new)) {
                Sent::All => self.sent += rest.len(),
                Sent::Part(bytes) => {
                    assert!(bytes < rest.len());
                    self.sent += bytes;
                    self.is_writable = false;
                }
                Sent::Failed => self.has_failed = true,
            }
        }
    }
}

static VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];

fn either(rng: &mut SmallRng) -> &'static [&'static SupportedProtocolVersion] {
    VERSIONS.chunks(1).nth(rng.random_range(0..2)).unwrap()
}

fn some_bytes(rng: &mut SmallRng, most: usize) -> Vec<u8> {
    let count = rng.random_range(0..most);
    (0..count).map(|_| rng.random()).collect()
}

/// What both ends send arrives, in whatever pieces, with keys that change now and then. A server
/// that has been told that nothing more waits is not asked again before its poller says so.
#[test]
fn what_is_sent_arrives() {
    let authority = Authority::new();
    let tls = authority.server();
    glimmer_seeds::each_seed(&[], |seed| {
        let rng = &mut SmallRng::seed_from_u64(seed);
        let faults = StreamFaults {
            short_read: rng.random_range(0.0..0.5),
            short_write: rng.random_range(0.0..0.5),
            buffer_bytes: rng.random_range(1..100_000),
            ..StreamFaults::default()
        };
        let [near, far] = LocalStream::pair(faults, names(), seed);
        let config = authority.client(either(rng), None);
        let mut server = Server::new(&tls, near, ClientCertificates::AsSet);
        let mut client = Client::new(config, far);
        let most = if rng.random() { 200_000 } else { 300 };
        let to_send = some_bytes(rng, most);
        server.to_send = some_bytes(rng, most);
        let (mut sent, mut received) = (0, Vec::new());
        let mut turns = 0;
        while sent < to_send.len()
            || server.received.len() < to_send.len()
            || received.len() < server.to_send.len()
        {
            turns += 1;
            assert!(turns < 3_000_000, "it stalls: {sent} {}", received.len());
            if rng.random() && sent < to_send.len() {
                let next = rng.random_range(1..40_000).min(to_send.len() - sent);
                sent += client.write(&to_send[sent..][..next]);
            }
            let is_13 = client.tls.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3);
            if is_13 && !client.tls.is_handshaking() && rng.random_ratio(1, 20) {
                client.tls.refresh_traffic_keys().unwrap();
            }
            received.extend(client.pump(rng.random_range(1..50_000)).unwrap());
            server.turn(rng.random_range(1..40_000), rng);
            assert!(!server.has_failed, "{:?}", server.received.len());
            assert!(to_send.starts_with(&server.received));
        }
        assert_eq!(received, server.to_send);
        // One end says that it sends no more, and learns that the other one does not either.
        client.tls.send_close_notify();
        while !server.has_ended {
            client.pump(1_000).unwrap();
            server.turn(1, rng);
        }
        drop(server);
        while !client.has_ended {
            client.pump(1_000).unwrap();
        }
    });
    assert_eq!(tls.counters().protocol_errors(), 0);
    assert_eq!(tls.counters().handshake_errors(), 0);
    assert_eq!(
        tls.counters().bytes(),
        0,
        "nothing is counted when all are gone"
    );
}

/// Has a client and a server shake hands, until both are done or one has failed.
fn shake(client: &mut Client, server: &mut Server, rng: &mut SmallRng) -> bool {
    for _ in 0..100 {
        let pumped = client.pump(100_000);
        server.turn(1_000, rng);
        if pumped.is_err() || server.has_failed || client.has_ended {
            return false;
        }
        if !client.tls.is_handshaking() && !server.stream.is_handshaking() && client.is_idle() {
            return client.pump(100_000).is_ok();
        }
    }
    false
}

fn connected(tls: &Tls, config: &Arc<ClientConfig>, seed: u64) -> (Client, Server) {
    connected_to(tls, ClientCertificates::AsSet, config, seed)
}

/// The same at an address that asks for certificates in its own way.
fn connected_to(
    tls: &Tls,
    asks: ClientCertificates,
    config: &Arc<ClientConfig>,
    seed: u64,
) -> (Client, Server) {
    let [near, far] = LocalStream::pair(StreamFaults::default(), names(), seed);
    let server = Server::new(tls, near, asks);
    (Client::new(config.clone(), far), server)
}

/// A byte that is changed on the way ends the connection. What is handed on before that is what
/// was sent.
#[test]
fn a_changed_byte_is_noticed() {
    let authority = Authority::new();
    let tls = authority.server();
    glimmer_seeds::each_seed(&[], |seed| {
        let rng = &mut SmallRng::seed_from_u64(seed);
        let [near, mut carried] = LocalStream::pair(StreamFaults::default(), names(), seed);
        let [far_end, far] = LocalStream::pair(StreamFaults::default(), names(), seed);
        let mut far_end = far_end;
        let mut server = Server::new(&tls, near, ClientCertificates::AsSet);
        let mut client = Client::new(authority.client(either(rng), None), far);
        let sent = some_bytes(rng, 50_000);
        client.write(&sent);
        // The ends are two streams, and the test carries bytes between them.
        let (mut passed, change_at) = (0, rng.random_range(0..sent.len() + 600));
        for _ in 0..50 {
            let _ = client.pump(100_000);
            let mut up = Vec::with_capacity(100_000);
            far_end.receive_at_most(&mut up, 100_000);
            if (passed..passed + up.len()).contains(&change_at) {
                up[change_at - passed] ^= 1 << rng.random_range(0..8);
            }
            passed += up.len();
            carried.send(&up);
            server.turn(60_000, rng);
            let mut down = Vec::with_capacity(100_000);
            carried.receive_at_most(&mut down, 100_000);
            far_end.send(&down);
        }
        let arrived = server.received.len();
        assert!(
            sent.starts_with(&server.received),
            "what is not authentic is handed on"
        );
        if passed > change_at && arrived == sent.len() {
            // The version in a record's header is not looked at before TLS is spoken.
            assert!(server.has_ended || change_at < 10, "changed at {change_at}");
        }
    });
}

/// Random bytes, and what memcached's clients would say, are no handshake.
#[test]
fn what_is_not_tls_is_refused() {
    let authority = Authority::new();
    let tls = authority.server();
    let rng = &mut SmallRng::seed_from_u64(glimmer_seeds::seed());
    let mut said: Vec<Vec<u8>> = vec![b"get a\r\n".to_vec(), b"\x80\0\0\0\0\0\0\0".to_vec()];
    said.push(b"\x16\x03\x01\xff\xff".to_vec());
    said.extend((0..200).map(|_| [&[rng.random()], &some_bytes(rng, 2_000)[..]].concat()));
    for (count, bytes) in said.iter().enumerate() {
        let [near, mut far] = LocalStream::pair(StreamFaults::default(), names(), 1);
        let mut server = Server::new(&tls, near, ClientCertificates::AsSet);
        far.send(bytes);
        far.finish();
        for _ in 0..10 {
            server.turn(1_000, rng);
        }
        assert!(server.has_failed && server.received.is_empty(), "{bytes:?}");
        assert_eq!(tls.counters().handshake_errors(), count as u64 + 1);
    }
}

/// A session is resumed, across a renewal too, and not where clients show certificates that may not
/// be good any more.
#[test]
fn sessions_are_resumed() {
    let authority = Authority::new();
    let rng = &mut SmallRng::seed_from_u64(1);
    for versions in [&[&version::TLS13], &[&version::TLS12]] {
        let tls = authority.server();
        let config = authority.client(versions, None);
        let mut kinds = Vec::new();
        for time in 0..3 {
            let (mut client, mut server) = connected(&tls, &config, time);
            assert!(shake(&mut client, &mut server, rng));
            kinds.extend(client.tls.handshake_kind());
            if time == 1 {
                tls.renew().unwrap();
            }
        }
        let expected = [
            HandshakeKind::Full,
            HandshakeKind::Resumed,
            HandshakeKind::Resumed,
        ];
        assert_eq!(kinds, expected);
        let counters = tls.counters();
        assert_eq!((counters.new_sessions(), counters.resumed()), (1, 2));
    }
}

#[test]
fn clients_show_certificates_as_they_are_asked_to() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let rng = &mut SmallRng::seed_from_u64(1);
    let good = authority.issue("web-1", |_| {});
    let foreign = stranger.issue("web-2", |_| {});
    let versions = [&version::TLS13, &version::TLS12];
    let shown = [None, Some(&good), Some(&foreign)];
    for (verify, accepted) in [
        (Verify::None, [true, true, true]),
        (Verify::Request, [true, true, false]),
        (Verify::Require, [false, true, false]),
    ] {
        let settings = Settings {
            verify,
            roots: Some(authority.write("root.pem", &authority.root_pem)),
            ..authority.settings()
        };
        let tls = Tls::load(settings, BYTES_MAX).unwrap();
        for version in versions {
            for (shows, accepted) in shown.iter().zip(accepted) {
                let config = authority.client(&[version], *shows);
                let (mut client, mut server) = connected(&tls, &config, 1);
                let is_accepted = shake(&mut client, &mut server, rng);
                assert_eq!(is_accepted, accepted, "{verify:?} {version:?}");
                let name =
                    (verify != Verify::None && accepted && shows.is_some()).then_some("web-1");
                assert_eq!(server.stream.client_name(), name, "{verify:?}");
            }
        }
    }
}

/// The server accepts it if it is one of the roots, if it is valid now, and if the client has its
/// key.
#[test]
fn a_certificate_that_is_its_own_authority_may_be_shown() {
    let authority = Authority::new();
    let rng = &mut SmallRng::seed_from_u64(1);
    let [good, foreign] = [(); 2].map(|()| own_authority(|_| {}));
    let expired = own_authority(|params| {
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    });
    let early = own_authority(|params| params.not_before = rcgen::date_time_ymd(4000, 1, 1));
    let stolen = Issued {
        key: foreign.key.clone_key(),
        ..own_authority(|_| {})
    };
    let roots = [&good, &expired, &early, &stolen].map(|root| &*root.pem);
    let settings = Settings {
        verify: Verify::Require,
        roots: Some(authority.write("roots.pem", roots.concat())),
        ..authority.settings()
    };
    let tls = Tls::load(settings, BYTES_MAX).unwrap();
    for version in [&version::TLS13, &version::TLS12] {
        for (kind, shows, accepted) in [
            ("good", &good, true),
            ("foreign", &foreign, false),
            ("expired", &expired, false),
            ("early", &early, false),
            ("stolen", &stolen, false),
        ] {
            let config = authority.showing(version, shows);
            let (mut client, mut server) = connected(&tls, &config, 1);
            let is_accepted = shake(&mut client, &mut server, rng);
            assert_eq!(is_accepted, accepted, "{kind} {version:?}");
            let name = accepted.then_some("web-3");
            assert_eq!(server.stream.client_name(), name, "{kind}");
        }
    }
}

/// A session that was begun without a certificate opens no address that asks for one.
#[test]
fn a_session_is_resumed_only_where_as_much_is_asked() {
    use ClientCertificates::{Always, AsSet, Never};
    let authority = Authority::new();
    let rng = &mut SmallRng::seed_from_u64(1);
    let settings = Settings {
        verify: Verify::Require,
        roots: Some(authority.write("root.pem", &authority.root_pem)),
        ..authority.settings()
    };
    let tls = Tls::load(settings, BYTES_MAX).unwrap();
    for versions in [&[&version::TLS13], &[&version::TLS12]] {
        let config = authority.client(versions, None);
        let mut enters = |asks| {
            let (mut client, mut server) = connected_to(&tls, asks, &config, 1);
            let is_accepted = shake(&mut client, &mut server, rng);
            is_accepted.then(|| client.tls.handshake_kind()).flatten()
        };
        assert_eq!(enters(Never), Some(HandshakeKind::Full));
        assert_eq!(enters(Never), Some(HandshakeKind::Resumed));
        for asks in [Always, AsSet] {
            assert_eq!(enters(asks), None, "{asks:?} {versions:?}");
            assert!(enters(Never).is_some());
        }
    }
}

/// A record of which a part is missing is kept, and counted, until it is complete or the end comes.
#[test]
fn a_part_of_a_record_is_kept() {
    let authority = Authority::new();
    let tls = authority.server();
    let rng = &mut SmallRng::seed_from_u64(1);
    let (mut client, mut server) = connected(&tls, &authority.client(&[&version::TLS13], None), 1);
    assert!(shake(&mut client, &mut server, rng));
    let idle = tls.counters().bytes();
    client.write(&[7; 10_000]);
    let mut record = Vec::new();
    client.tls.write_tls(&mut record).unwrap();
    client.stream.send(&record[..9_000]);
    server.turn(16_384, rng);
    assert!(server.received.is_empty() && server.stream.held_bytes() >= 9_000);
    assert_eq!(tls.counters().bytes(), idle + server.stream.held_bytes());
    client.stream.send(&record[9_000..]);
    server.turn(16_384, rng);
    assert_eq!(server.received, [7; 10_000]);
    assert_eq!(tls.counters().bytes(), idle);
    client.stream.send(&record[..100]);
    client.stream.finish();
    while !server.has_ended {
        server.turn(16_384, rng);
    }
    assert_eq!(Counters::protocol_errors(tls.counters()), 1);
}

/// Connections that hold parts of records beyond what all of them may are closed. Others go on.
#[test]
fn connections_hold_no_more_than_they_may() {
    let authority = Authority::new();
    let tls = Tls::load(authority.settings(), 150_000).unwrap();
    let rng = &mut SmallRng::seed_from_u64(1);
    let config = authority.client(&[&version::TLS13], None);
    let mut ends: Vec<_> = (0..20).map(|seed| connected(&tls, &config, seed)).collect();
    for (client, server) in &mut ends {
        assert!(shake(client, server, rng));
    }
    for (client, server) in &mut ends[1..] {
        client.write(&[7; 16_000]);
        let mut record = Vec::new();
        client.tls.write_tls(&mut record).unwrap();
        client.stream.send(&record[..15_000]);
        server.turn(16_384, rng);
    }
    let closed = ends.iter().filter(|(_, server)| server.has_ended).count();
    assert!((10..19).contains(&closed), "{closed}");
    assert_eq!(tls.counters().refusals(), closed as u64);
    ends.retain(|(_, server)| !server.has_ended);
    assert!(
        tls.counters().bytes() <= 150_000,
        "{}",
        tls.counters().bytes()
    );
    let (client, server) = &mut ends[0];
    client.write(b"small");
    for _ in 0..3 {
        client.pump(1_000).unwrap();
        server.turn(16_384, rng);
    }
    assert_eq!(server.received, b"small");
}

/// A client changes its key now and then, and not all the time.
#[test]
fn a_client_that_only_changes_its_key_is_closed() {
    let authority = Authority::new();
    let tls = authority.server();
    let rng = &mut SmallRng::seed_from_u64(1);
    let (mut client, mut server) = connected(&tls, &authority.client(&[&version::TLS13], None), 1);
    assert!(shake(&mut client, &mut server, rng));
    for time in 0..200 {
        let _ = client.tls.refresh_traffic_keys();
        if time < 100 {
            client.write(b"x");
        }
        let _ = client.pump(10_000);
        server.turn(100, rng);
        assert_eq!(server.has_ended, time >= 100 + 32, "{time}");
    }
    assert_eq!(
        (server.received.len(), tls.counters().protocol_errors()),
        (100, 1)
    );
}
