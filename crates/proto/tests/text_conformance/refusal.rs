//! Values that are refused.

use crate::*;

#[test]
fn a_value_over_the_limit_is_refused_and_swallowed() {
    // With a key of one byte, memcached's default item limit leaves 1,048,516 bytes, and 4 fewer if
    // there are flags.
    let stream = |command: &str, length: usize, noreply: &str| {
        let mut bytes = format!("{command} {length}{noreply}\r\n").into_bytes();
        bytes.resize(bytes.len() + length, b'\n');
        bytes.extend_from_slice(b"\r\nget k\r\n");
        bytes
    };
    let refused = || {
        verb(Verb::Refused {
            reason: Refusal::TooLarge,
        })
    };
    let too_large = Out::Say(reply::TOO_LARGE);
    let value = vec![b'\n'; 1_048_516];
    check(&[
        (
            &stream("set k 0 0", 1_048_516, ""),
            &[set(0, 0, &value), get(b"k")],
        ),
        (&stream("set k 0 0", 1_048_517, ""), &[refused(), get(b"k")]),
        (
            &stream("set k 1 0", 1_048_512, ""),
            &[set(1, 0, &value[4..]), get(b"k")],
        ),
        (&stream("set k 1 0", 1_048_513, ""), &[refused(), get(b"k")]),
        (
            &stream("set k 0 0", 2_000_000, " noreply"),
            &[quiet(refused()), get(b"k")],
        ),
        // Only `set` removes the old value.
        (&stream("add k 0 0", 1_048_517, ""), &[too_large, get(b"k")]),
        (
            &stream("append k 0 0", 1_048_517, ""),
            &[too_large, get(b"k")],
        ),
        (
            &stream("replace k 0 0", 1_048_517, " noreply"),
            &[SILENCE, get(b"k")],
        ),
    ]);
}

#[test]
fn two_gigabytes_are_swallowed_piece_by_piece() {
    let mut parser = Parser::new(Limits::default());
    let line = b"set k 0 0 2147483645\r\n";
    let Step::Request { used, request } = parser.next(line) else {
        panic!("refused at once")
    };
    assert_eq!(
        (used, request.verb),
        (
            line.len(),
            Verb::Refused {
                reason: Refusal::TooLarge
            }
        )
    );
    let piece = vec![0; 1 << 20];
    let mut left: usize = 2_147_483_647;
    while left > 0 {
        assert_eq!(parser.next(b""), Step::need(1));
        let step = parser.next(&piece);
        assert_eq!(
            step,
            Step::Swallowed {
                used: left.min(piece.len())
            }
        );
        left -= left.min(piece.len());
    }
    let Step::Request { request, .. } = parser.next(b"get k\r\n") else {
        panic!("a request")
    };
    assert_eq!(request.verb, Verb::Get);
}

#[test]
fn a_worker_without_memory_can_refuse_a_value() {
    for (line, expected) in [
        (
            "set k 0 0 5\r\n",
            verb(Verb::Refused {
                reason: Refusal::NoMemory,
            }),
        ),
        (
            "set k 0 0 5 noreply\r\n",
            quiet(verb(Verb::Refused {
                reason: Refusal::NoMemory,
            })),
        ),
        ("add k 0 0 5\r\n", Out::Say(reply::NO_MEMORY_STORING)),
    ] {
        let mut parser = Parser::new(Limits::default());
        assert_eq!(parser.next(line.as_bytes()), Step::need(line.len() + 7));
        parser.refuse_value();
        let out = match parser.next(line.as_bytes()) {
            Step::Request { request, .. } => out_of(request),
            Step::Refuse { line, .. } => Out::Say(line),
            other => panic!("{other:?}"),
        };
        assert_eq!(out, expected);
        assert_eq!(parser.next(b"abc"), Step::Swallowed { used: 3 });
        assert_eq!(
            parser.next(b"de\r\nset k 0 0 1\r\n"),
            Step::Swallowed { used: 4 }
        );
        // Only one value was refused.
        assert_eq!(parser.next(b"set k 0 0 1\r\n"), Step::need(16));
    }
}

#[test]
fn a_value_that_came_after_all_is_not_refused() {
    let mut parser = Parser::new(Limits::default());
    assert_eq!(parser.next(b"set k 0 0 1\r\n"), Step::need(16));
    parser.refuse_value();
    let step = parser.next(b"set k 0 0 1\r\n1\r\n");
    assert!(
        matches!(step, Step::Request { used: 16, request } if out_of(request) == set(0, 0, b"1"))
    );
    assert_eq!(parser.next(b"set k 0 0 1\r\n"), Step::need(16));
}
