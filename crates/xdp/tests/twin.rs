//! The program equals its twin: `BPF_PROG_TEST_RUN` with frames by hand.
#![cfg(target_os = "linux")]

mod support;

use glimmer_hotset::layout::{HotItem, Tally};
use glimmer_hotset::twin::Verdict;
use glimmer_xdp::Mode;
use std::net::IpAddr;
use support::frames::{binary, client, frame, of_the_paper, server};
use support::{HEAD, NONE, Pair, TAIL, item, not_hosts, now_ns};

const MODES: [Mode; 3] = [Mode::Driver, Mode::Generic, Mode::Tcx];

/// Figures 6 and 7 of the paper, byte for byte: a request and its reply behind memcached's frame.
#[test]
fn the_papers_frames() {
    for mode in MODES {
        let Some(pair) = Pair::new(mode, TAIL) else {
            return;
        };
        pair.fill(&HotItem {
            cas: 0,
            ..item(b"key", b"value")
        });
        let [figure_6, figure_7] = of_the_paper();
        assert_eq!(pair.ask(true, &figure_6).unwrap(), figure_7);
    }
}

#[test]
fn every_form_has_its_reply() {
    for mode in MODES {
        let Some(pair) = Pair::new(mode, TAIL) else {
            return;
        };
        pair.fill(&HotItem {
            flags: 7,
            cas: 0x0102,
            ..item(b"key", b"value")
        });
        for is_v4 in [true, false] {
            let text = |what| String::from_utf8(pair.ask(is_v4, what).unwrap()).unwrap();
            assert_eq!(text(b"get key\r\n"), "VALUE key 7 5\r\nvalue\r\nEND\r\n");
            assert_eq!(
                text(b"gets key\r\n"),
                "VALUE key 7 5 258\r\nvalue\r\nEND\r\n"
            );
            for opcode in [0, 9, 12, 13] {
                let reply = pair.ask(is_v4, &binary(opcode, b"key", *b"opaq")).unwrap();
                assert_eq!((reply[1], &reply[12..16]), (opcode, &b"opaq"[..]));
                assert!(reply.ends_with(if opcode < 12 {
                    b"\0\0\0\x07value"
                } else {
                    b"keyvalue"
                }));
            }
            let miss = pair.ask(is_v4, b"get other\r\n");
            assert_eq!(miss, Err(Tally::Miss));
        }
    }
}

/// Our own addresses, and that of all hosts on the link.
#[test]
fn what_cannot_be_a_source_is_passed() {
    for mode in MODES {
        let Some(pair) = Pair::new(mode, TAIL) else {
            return;
        };
        pair.fill(&item(b"key", b"value"));
        for source in not_hosts() {
            let datagram = b"\x12\x34\0\0\0\x01\0\0get key\r\n";
            let frame = frame(source, server(source.is_ipv4()), datagram);
            let passed = Verdict::Pass(Tally::Source);
            assert_eq!(pair.run(&frame).verdict, passed, "{source}");
        }
    }
}

/// A long reply to a host that is not on a link is the server's, whose kernel knows the path.
#[test]
fn a_reply_that_a_path_may_not_take_is_the_servers() {
    let far: [IpAddr; 2] = ["10.7.0.200", "fd00::8000:0:0:1"].map(|ip| ip.parse().unwrap());
    for mode in MODES {
        let Some(pair) = Pair::new(mode, TAIL) else {
            return;
        };
        for (far, longest) in far.into_iter().zip([1212, 1192]) {
            for (bytes, of_far) in [
                (longest, Verdict::Reply),
                (longest + 1, Verdict::Pass(Tally::TooLong)),
            ] {
                pair.fill(&item(b"k", &vec![b'v'; bytes]));
                for (from, expected) in [(far, of_far), (client(far.is_ipv4()), Verdict::Reply)] {
                    let datagram = b"\x12\x34\0\0\0\x01\0\0get k\r\n";
                    let frame = frame(from, server(from.is_ipv4()), datagram);
                    assert_eq!(pair.run(&frame).verdict, expected, "{from}: {bytes}");
                }
            }
        }
    }
}

#[test]
fn time_and_epoch_are_respected() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    for mode in MODES {
        let Some(pair) = Pair::new(mode, TAIL) else {
            return;
        };
        pair.fill(&HotItem {
            deadline_ns: now_ns() + HOUR_NS,
            ..item(b"later", b"v")
        });
        pair.fill(&HotItem {
            deadline_ns: now_ns() - 1,
            ..item(b"gone", b"v")
        });
        assert!(pair.ask(true, b"get later\r\n").is_ok());
        assert_eq!(pair.ask(true, b"get gone\r\n"), Err(Tally::Expired));
        for guard in pair.guards() {
            guard.flush(Some(now_ns() + HOUR_NS), || ());
        }
        pair.fill(&item(b"never", b"v"));
        assert!(pair.ask(true, b"get never\r\n").is_ok());
        assert_eq!(pair.ask(true, b"get later\r\n"), Err(Tally::Flushed));
        for guard in pair.guards() {
            guard.flush(Some(now_ns()), || ());
        }
        pair.fill(&item(b"never", b"v"));
        assert_eq!(pair.ask(true, b"get never\r\n"), Err(Tally::Flushed));
    }
}

/// A frame grows at its end, or at its start by 192 bytes at most, or not at all.
#[test]
fn a_frame_grows_at_either_end() {
    let longest = |growth| {
        let pair = Pair::new(Mode::Driver, growth)?;
        let mut answered = 0;
        for value_bytes in 1..=1400 {
            pair.fill(&item(b"a key of some length", &vec![b'v'; value_bytes]));
            // A binary reply to a request with a long key is not longer than the request.
            let request = binary(0, b"a key of some length", [1; 4]);
            match pair.ask(value_bytes % 2 == 0, &request) {
                Ok(reply) => {
                    assert_eq!(reply.len(), 28 + value_bytes);
                    answered = value_bytes;
                }
                Err(tally) => assert_eq!(tally, Tally::TooLong),
            }
        }
        Some(answered)
    };
    let Some(at_tail) = longest(TAIL) else { return };
    assert_eq!(at_tail, 1400);
    // 24 bytes of header and 20 of the key become 28 and the value.
    assert_eq!(longest(HEAD), Some(16 + 192));
    assert_eq!(longest(NONE), Some(16));
}

#[test]
fn a_request_whose_recheck_fails_is_restored() {
    for mode in MODES {
        for growth in [TAIL, HEAD] {
            let Some(pair) = Pair::new(mode, growth) else {
                return;
            };
            pair.fill(&item(b"key", &[b'v'; 100]));
            pair.fill(&item(&[b'k'; 250], b"v"));
            for guard in pair.guards() {
                guard.memory().control().fail_rechecks(true);
            }
            for is_v4 in [true, false] {
                for what in [
                    b"get key\r\n".to_vec(),
                    b"gets key\r\n".to_vec(),
                    binary(12, b"key", [1; 4]),
                    // The reply is shorter than the request.
                    binary(0, &[b'k'; 250], [1; 4]),
                ] {
                    assert_eq!(pair.ask(is_v4, &what), Err(Tally::Torn));
                }
            }
        }
    }
}

/// Restoring gives a short frame its padding back.
#[test]
fn padding_is_restored() {
    for mode in MODES {
        let Some(pair) = Pair::new(mode, TAIL) else {
            return;
        };
        pair.fill(&item(b"k", b"v"));
        for guard in pair.guards() {
            guard.memory().control().fail_rechecks(true);
        }
        let mut short = support::frames::request(true, b"get k\r\n");
        short.resize(60, 0xA5);
        let ran = pair.run(&short);
        assert_eq!(ran.frame, short);
        for guard in pair.guards() {
            guard.memory().control().fail_rechecks(false);
        }
        let replied = pair.run(&short).frame;
        assert_eq!(
            support::frames::reply(&replied),
            b"VALUE k 3735928559 1\r\nv\r\nEND\r\n"
        );
    }
}
