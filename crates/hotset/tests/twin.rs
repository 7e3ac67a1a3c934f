//! The twin of the packet program: which frames it answers, and with which bytes.
#![cfg(not(loom))]

#[path = "support/frames.rs"]
mod frames;
mod support;

use frames::{PORT, SERVER_MAC, binary, client, frame, of_the_paper, reply, request, server};
use glimmer_hotset::layout::{HotItem, NEVER_NS, Tally};
use glimmer_hotset::twin::{Interface, Prefix, Verdict, answer};
use glimmer_hotset::{Guard, Reader};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::net::IpAddr;
use support::{fill, guard_and_reader};

fn interface() -> Interface {
    let prefix = |address, bits| Prefix { address, bits };
    Interface {
        mac: SERVER_MAC,
        addresses: vec![server(true), server(false)],
        port: PORT,
        sources: vec![prefix(client(true), 24), prefix(client(false), 64)],
        not_hosts: vec![server(true), [10, 7, 0, 255].into(), server(false)],
        links: vec![prefix(client(true), 25), prefix(client(false), 65)],
        frame_bytes_max: 4096,
        growth_bytes_max: 4096,
        partial_checksums: false,
    }
}

fn bodies() -> (Guard, Reader) {
    let (guard, reader) = guard_and_reader(256);
    guard.memory().control().set_datagram_bytes_max(4096);
    (guard, reader)
}

fn hot<'a>(key: &'a [u8], value: &'a [u8]) -> HotItem<'a> {
    HotItem {
        key,
        value,
        flags: 0xDEAD_BEEF,
        cas: 0,
        deadline_ns: NEVER_NS,
    }
}

/// What is in the reply to a request.
fn ask(reader: &Reader, is_v4: bool, what: &[u8]) -> Result<Vec<u8>, Tally> {
    let mut frame = request(is_v4, what);
    let sent = frame.clone();
    match answer(reader, &interface(), 0, &mut frame) {
        Verdict::Reply => Ok(reply(&frame)),
        Verdict::Pass(tally) => {
            assert_eq!(frame, sent, "a frame that is passed is unchanged");
            Err(tally)
        }
    }
}

/// Figures 6 and 7 of the paper, byte for byte: a request and its reply behind memcached's frame.
#[test]
fn the_papers_frames() {
    let (guard, reader) = bodies();
    fill(&guard, &hot(b"key", b"value"));
    let [figure_6, figure_7] = of_the_paper();
    assert_eq!(ask(&reader, true, &figure_6).unwrap(), figure_7);
}

#[test]
fn every_form_has_its_reply() {
    let (guard, reader) = bodies();
    fill(
        &guard,
        &HotItem {
            flags: 7,
            cas: 0x0102,
            ..hot(b"key", b"value")
        },
    );
    for is_v4 in [true, false] {
        let text = |request| String::from_utf8(ask(&reader, is_v4, request).unwrap()).unwrap();
        assert_eq!(text(b"get key\r\n"), "VALUE key 7 5\r\nvalue\r\nEND\r\n");
        assert_eq!(
            text(b"gets key\r\n"),
            "VALUE key 7 5 258\r\nvalue\r\nEND\r\n"
        );
        for (opcode, key) in [(0, &b""[..]), (9, b""), (12, b"key"), (13, b"key")] {
            let expected = [
                &[
                    0x81,
                    opcode,
                    0,
                    key.len() as u8,
                    4,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    9 + key.len() as u8,
                ][..],
                b"opaq",
                &[0, 0, 0, 0, 0, 0, 1, 2],
                &[0, 0, 0, 7],
                key,
                b"value",
            ]
            .concat();
            let request = binary(opcode, b"key", *b"opaq");
            assert_eq!(ask(&reader, is_v4, &request).unwrap(), expected);
            let mut out = b"before".to_vec();
            let parsed = glimmer_hotset::Request::parse(&request).unwrap();
            let refused = reader.answer(&parsed, 0, expected.len() - 1, &mut out);
            assert_eq!((refused, &out[..]), (Err(Tally::TooLong), &b"before"[..]));
            reader.answer(&parsed, 0, expected.len(), &mut out).unwrap();
            assert_eq!(out, [&b"before"[..], &expected].concat());
        }
    }
}

#[test]
fn every_length_of_key_and_value_with_valid_checksums() {
    let (guard, reader) = bodies();
    let mut rng = SmallRng::seed_from_u64(1);
    let values: Vec<u8> = (0..1400).map(|_| rng.random()).collect();
    let keys = [b'k'; 250];
    for key_bytes in 1..=250 {
        let step = if key_bytes % 83 == 0 { 1 } else { 113 };
        for value_bytes in (1..=1400).step_by(step).chain([1399, 1400]) {
            let (key, value) = (&keys[..key_bytes], &values[..value_bytes]);
            fill(&guard, &hot(key, value));
            for is_v4 in [true, false] {
                let text = ask(&reader, is_v4, &[b"get ", key, b"\r\n"].concat()).unwrap();
                let head = format!(" 3735928559 {value_bytes}\r\n");
                let parts = [b"VALUE ", key, head.as_bytes(), value, b"\r\nEND\r\n"];
                assert_eq!(text, parts.concat());
                let binary = ask(&reader, is_v4, &binary(12, key, [9; 4])).unwrap();
                assert_eq!(binary[28..], [key, value].concat());
                assert_eq!(binary[..4], [0x81, 12, 0, key_bytes as u8]);
            }
        }
    }
}

#[test]
fn any_doubt_is_a_pass() {
    let (guard, reader) = bodies();
    fill(&guard, &hot(b"key", b"value"));
    type Change = fn(&mut Vec<u8>);
    let doubts: [(bool, Tally, Change); 27] = [
        (true, Tally::Foreign, |frame| frame[5] ^= 1),
        (true, Tally::Foreign, |frame| {
            frame[12..14].copy_from_slice(&[0x81, 0x00])
        }),
        (true, Tally::Malformed, |frame| frame[14] = 0x46),
        (true, Tally::Malformed, |frame| frame[20] |= 0x20),
        (true, Tally::Malformed, |frame| frame[21] = 1),
        (true, Tally::Foreign, |frame| frame[23] = 6),
        (true, Tally::Foreign, |frame| frame[33] = 9),
        (true, Tally::Foreign, |frame| frame[37] ^= 1),
        (true, Tally::Malformed, |frame| frame[17] += 1),
        (true, Tally::Malformed, |frame| frame[39] -= 1),
        (true, Tally::Malformed, |frame| frame.extend([0, 0])),
        (true, Tally::Malformed, |frame| frame.truncate(40)),
        (true, Tally::Source, |frame| frame[28] = 9),
        (true, Tally::Source, |frame| frame[26] = 224),
        (true, Tally::Source, |frame| frame[29] = 2),
        (true, Tally::Source, |frame| frame[29] = 255),
        (true, Tally::Source, |frame| frame[6] |= 1),
        (true, Tally::Source, |frame| frame[34..36].fill(0)),
        (true, Tally::Request, |frame| frame[45] = 1),
        (true, Tally::Request, |frame| frame[47] = 2),
        (true, Tally::Request, |frame| frame[50] = b'G'),
        (true, Tally::Miss, |frame| frame[54] ^= 1),
        (false, Tally::Malformed, |frame| frame[14] = 0x45),
        (false, Tally::Foreign, |frame| frame[20] = 44),
        (false, Tally::Source, |frame| frame[22] = 0xFF),
        (false, Tally::Source, |frame| frame[37] = 2),
        (false, Tally::Malformed, |frame| frame[19] ^= 1),
    ];
    for (place, (is_v4, expected, change)) in doubts.into_iter().enumerate() {
        let mut frame = request(is_v4, b"get key\r\n");
        change(&mut frame);
        let sent = frame.clone();
        let verdict = answer(&reader, &interface(), 0, &mut frame);
        assert_eq!(verdict, Verdict::Pass(expected), "{place}");
        assert_eq!(frame, sent, "{place}");
    }
    for doubt in [
        &b"get key"[..],
        b"get key\n",
        b"get  key\r\n",
        b"get key \r\n",
        b"get key key\r\n",
        b"get key\r\nget key\r\n",
        b"GET key\r\n",
        b"gat key\r\n",
        b"get \r\n",
        b"\r\n",
        b"",
    ] {
        assert_eq!(ask(&reader, true, doubt), Err(Tally::Request), "{doubt:?}");
    }
    for place in [0, 1, 3, 4, 5, 7, 11, 16, 23] {
        let mut doubt = binary(0, b"key", [0; 4]);
        doubt[place] ^= 2;
        assert_eq!(ask(&reader, true, &doubt), Err(Tally::Request), "{place}");
    }
    let quit = [binary(0, b"key", [0; 4]), binary(7, b"", [0; 4])].concat();
    assert_eq!(ask(&reader, true, &quit), Err(Tally::Request));
}

/// A damaged request is not answered: its key may be another one.
#[test]
fn checksums_are_verified() {
    let (guard, reader) = bodies();
    fill(&guard, &hot(b"key", b"value"));
    let ask = |frame: &[u8], partial_checksums| {
        let interface = Interface {
            partial_checksums,
            ..interface()
        };
        answer(&reader, &interface, 0, &mut frame.to_vec())
    };
    let damaged = Verdict::Pass(Tally::Malformed);
    for (is_v4, udp_at) in [(true, 34), (false, 54)] {
        let sent = request(is_v4, b"get key\r\n");
        for partial in [true, false] {
            assert_eq!(ask(&sent, partial), Verdict::Reply);
            // The client's port, the reserved bytes of memcached's header, and the field itself.
            for at in [udp_at, udp_at + 14, udp_at + 6] {
                let mut frame = sent.clone();
                frame[at] ^= 1;
                assert_eq!(ask(&frame, partial), damaged, "{at}");
            }
            let mut none = sent.clone();
            none[udp_at + 6..udp_at + 8].fill(0);
            let expected = if is_v4 { Verdict::Reply } else { damaged };
            assert_eq!(ask(&none, partial), expected);
        }
        let mut partial = sent.clone();
        let sum = frames::pseudo_sum(client(is_v4), server(is_v4), sent.len() - udp_at);
        partial[udp_at + 6..udp_at + 8].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(ask(&partial, false), damaged);
        assert_eq!(ask(&partial, true), Verdict::Reply);
    }
    let mut frame = request(true, b"get key\r\n");
    frame[22] -= 1;
    assert_eq!(ask(&frame, true), damaged, "the checksum of the IP header");
}

/// A datagram that is shorter than its header, and whose header lies in the padding.
#[test]
fn a_header_in_the_padding_is_none() {
    let (_, reader) = bodies();
    let mut frame = request(true, b"get k\r\n");
    frame.resize(60, 0);
    frame[16..18].copy_from_slice(&[0, 24]);
    frame[38..40].copy_from_slice(&[0, 4]);
    let verdict = answer(&reader, &interface(), 0, &mut frame);
    assert_eq!(verdict, Verdict::Pass(Tally::Malformed));
}

#[test]
fn a_short_frame_is_padded() {
    let (guard, reader) = bodies();
    fill(&guard, &hot(b"k", b"v"));
    let mut short = request(true, b"get k\r\n");
    assert!(short.len() < 60);
    short.resize(60, 0);
    assert_eq!(answer(&reader, &interface(), 0, &mut short), Verdict::Reply);
    assert_eq!(reply(&short), b"VALUE k 3735928559 1\r\nv\r\nEND\r\n");
}

#[test]
fn a_reply_that_does_not_fit_is_the_servers() {
    let (guard, reader) = bodies();
    fill(&guard, &hot(b"k", &[b'v'; 1000]));
    let bytes = request(true, b"get k\r\n").len();
    let long = request(true, &[0; 8 + 1000 + 23]).len() - 8 - 2;
    let ask = |interface: &Interface| {
        let mut frame = request(true, b"get k\r\n");
        answer(&reader, interface, 0, &mut frame)
    };
    let at = |frame_bytes_max, growth_bytes_max| Interface {
        frame_bytes_max,
        growth_bytes_max,
        ..interface()
    };
    let mut fits = long;
    while ask(&at(fits, 4096)) != Verdict::Reply {
        fits += 1;
    }
    assert!(fits > 1000 && fits < 1100);
    assert_eq!(ask(&at(fits - 1, 4096)), Verdict::Pass(Tally::TooLong));
    assert_eq!(ask(&at(fits, fits - bytes)), Verdict::Reply);
    assert_eq!(
        ask(&at(fits, fits - bytes - 1)),
        Verdict::Pass(Tally::TooLong)
    );
    let datagram_bytes = fits - 14 - 20 - 8;
    guard
        .memory()
        .control()
        .set_datagram_bytes_max(datagram_bytes);
    assert_eq!(ask(&interface()), Verdict::Reply);
    guard
        .memory()
        .control()
        .set_datagram_bytes_max(datagram_bytes - 1);
    assert_eq!(ask(&interface()), Verdict::Pass(Tally::TooLong));
}

/// A long reply to a host that is not on a link is the server's, whose kernel knows the path.
#[test]
fn a_reply_that_a_path_may_not_take_is_the_servers() {
    let (guard, reader) = bodies();
    let far: [IpAddr; 2] = ["10.7.0.200", "fd00::8000:0:0:1"].map(|ip| ip.parse().unwrap());
    for (far, longest) in far.into_iter().zip([1212, 1192]) {
        for (bytes, of_far) in [
            (longest, Verdict::Reply),
            (longest + 1, Verdict::Pass(Tally::TooLong)),
        ] {
            fill(&guard, &hot(b"k", &vec![b'v'; bytes]));
            for (from, expected) in [(far, of_far), (client(far.is_ipv4()), Verdict::Reply)] {
                let datagram = b"\x12\x34\0\0\0\x01\0\0get k\r\n";
                let mut frame = frame(from, server(from.is_ipv4()), datagram);
                let verdict = answer(&reader, &interface(), 0, &mut frame);
                assert_eq!(verdict, expected, "{from}: {bytes}");
            }
        }
    }
}

#[test]
fn a_request_whose_recheck_fails_is_restored() {
    let (guard, reader) = bodies();
    fill(&guard, &hot(b"key", b"value"));
    guard.memory().control().fail_rechecks(true);
    for is_v4 in [true, false] {
        assert_eq!(ask(&reader, is_v4, b"get key\r\n"), Err(Tally::Torn));
        assert_eq!(
            ask(&reader, is_v4, &binary(0, b"key", [1; 4])),
            Err(Tally::Torn)
        );
    }
}

/// Mutated and random frames are passed as they are, or answered with valid headers.
#[test]
fn no_frame_is_damaged() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let (guard, reader) = bodies();
    fill(&guard, &hot(b"key", b"value"));
    let requests = [
        b"get key\r\n".to_vec(),
        b"gets key\r\n".to_vec(),
        binary(12, b"key", [3; 4]),
    ];
    let mut replies = 0;
    for _ in 0..200_000 {
        let mut frame = request(rng.random(), &requests[rng.random_range(0..3)]);
        for _ in 0..rng.random_range(0..3) {
            let at = rng.random_range(0..frame.len());
            match rng.random_range(0..4) {
                0 => frame[at] ^= 1 << rng.random_range(0..8),
                1 => frame[at] = rng.random(),
                2 => frame.truncate(at.max(1)),
                _ => frame.insert(at, rng.random()),
            }
        }
        if rng.random_bool(0.05) {
            rng.fill(&mut frame[..]);
        }
        let sent = frame.clone();
        match answer(&reader, &interface(), 0, &mut frame) {
            Verdict::Pass(_) => assert_eq!(frame, sent),
            Verdict::Reply => {
                replies += 1;
                assert_eq!(frame[..6], sent[6..12]);
                let ip_bytes = if frame[12..14] == [0x08, 0x00] {
                    20
                } else {
                    40
                };
                let swapped = &frame[14 + ip_bytes..][..4];
                let ports = &sent[14 + ip_bytes..][..4];
                assert_eq!(*swapped, [&ports[2..], &ports[..2]].concat());
            }
        }
    }
    assert!(replies > 50_000, "{replies}");
}

/// A forged frame in which server and client are one host is not answered to ourselves for ever: a
/// reply is no request.
#[test]
fn a_reply_is_no_request() {
    let (guard, reader) = bodies();
    fill(&guard, &hot(b"key", b"value"));
    for what in [b"get key\r\n".to_vec(), binary(0, b"key", [0; 4])] {
        let answered = ask(&reader, true, &what).unwrap();
        assert_eq!(ask(&reader, true, &answered), Err(Tally::Request));
    }
    let mut forged = frame(
        frames::any_v4(),
        server(true),
        b"\0\0\0\0\0\x01\0\0get key\r\n",
    );
    let verdict = answer(&reader, &interface(), 0, &mut forged);
    assert_eq!(verdict, Verdict::Pass(Tally::Source));
}

/// What the fuzz target starts from is passed or answered, too.
#[test]
fn the_corpus_of_the_fuzz_target() {
    let corpus = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/accelerator_frame"
    );
    let mut files = 0;
    for file in std::fs::read_dir(corpus).unwrap() {
        glimmer_hotset::fuzzing::frame(&std::fs::read(file.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 7);
}
