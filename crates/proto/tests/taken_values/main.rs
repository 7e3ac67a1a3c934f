//! Large values that the caller takes out of the input: which are announced, and that the steps are
//! those of the same input with the values in it.

mod heads;
mod streams;

use glimmer_base::limits::DRAFT_BYTES_MIN;
use glimmer_proto::fuzzing::{taken_from, trace_from};
use glimmer_proto::{Announced, Limits, Parser, Step};
use heads::{others, stores};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use streams::{ITEM_BYTES_MAX, Stream, random_stream};

/// What is announced to a caller that has received a store up to its value.
fn announced(head: &[u8]) -> Option<Announced<'_>> {
    let limits = Limits::default();
    for arrived in 1..head.len() {
        let step = Parser::new(limits).next(&head[..arrived]);
        let shown = head[..arrived].escape_ascii();
        assert!(
            !matches!(
                step,
                Step::Need {
                    announced: Some(_),
                    ..
                }
            ),
            "{shown}: not a whole header"
        );
    }
    match Parser::new(limits).next(head) {
        Step::Need { announced, .. } => announced,
        _ => None,
    }
}

#[test]
fn each_store_announces_its_large_value() {
    for store in stores() {
        let shown = store.head.escape_ascii();
        let announced = announced(&store.head).unwrap_or_else(|| panic!("{shown}"));
        assert_eq!(announced.value_at, store.head.len(), "{shown}");
        assert_eq!(announced.value_bytes, DRAFT_BYTES_MIN, "{shown}");
        announced.with_key(|key| assert_eq!(key, b"key", "{shown}"));
        let head = store.with_length(store.announced_min());
        assert!(self::announced(&head).is_some(), "{shown}");
    }
}

#[test]
fn other_values_are_not_announced() {
    for head in others() {
        assert_eq!(announced(&head), None, "{}", head.escape_ascii());
    }
    for store in stores() {
        let shown = store.head.escape_ascii();
        for value_bytes in [0, 1, store.announced_min() - 1, 2 << 20] {
            let head = store.with_length(value_bytes);
            assert_eq!(announced(&head), None, "{shown} with {value_bytes} bytes");
        }
        let mut locked = Parser::new(Limits::default());
        let step = locked.next_locked(&store.head);
        assert!(
            !matches!(
                step,
                Step::Need {
                    announced: Some(_),
                    ..
                }
            ),
            "{shown} of a stranger"
        );
    }
}

/// A parser that has announced the value after this header.
fn parser_at(head: &[u8]) -> Parser {
    let mut parser = Parser::new(Limits::default());
    let step = parser.next(head);
    assert!(matches!(
        step,
        Step::Need {
            announced: Some(_),
            ..
        }
    ));
    parser
}

#[test]
fn the_input_goes_on_after_a_value_that_was_taken() {
    for store in stores() {
        let shown = store.head.escape_ascii();
        let mut parser = parser_at(&store.head);
        parser.take_value();
        let mut input = store.head.clone();
        for byte in store.tail.bytes() {
            let step = parser.next(&input);
            let need = input.len() + 1;
            assert!(
                matches!(step, Step::Need { need: more, announced: None } if more >= need),
                "{shown}: {step:?}"
            );
            input.push(byte);
        }
        let end = input.len();
        input.extend(b"get another");
        let Step::Request { used, request } = parser.next(&input) else {
            panic!("{shown}")
        };
        assert_eq!(used, end, "{shown}");
        request.with_key(|key| assert_eq!(key, b"key"));
        assert_eq!(request.verb.detach().1, b"", "{shown}");
        let (verb, value) = request.with_value(b"value").verb.detach();
        assert_eq!((verb, value), (request.verb, &b"value"[..]), "{shown}");
    }
}

#[test]
fn the_need_for_a_line_end_is_exact() {
    for store in stores().iter().filter(|store| store.tail == "\r\n") {
        let mut parser = parser_at(&store.head);
        parser.take_value();
        let need = store.head.len() + 2;
        assert_eq!(parser.next(&store.head), Step::need(need));
    }
}

/// A caller that has no memory for what still has to come says so as always.
#[test]
fn what_follows_a_taken_value_can_be_refused() {
    for store in stores().iter().filter(|store| !store.tail.is_empty()) {
        let shown = store.head.escape_ascii();
        let mut parser = parser_at(&store.head);
        parser.take_value();
        assert!(matches!(parser.next(&store.head), Step::Need { .. }));
        parser.refuse_value();
        let mut input = store.head.clone();
        let mut late = parser;
        let step = late.next(&input);
        assert!(
            matches!(step, Step::Request { .. } | Step::Refuse { .. }),
            "{shown}"
        );
        input.extend(store.tail.bytes());
        let step = parser.next(&input);
        assert!(
            matches!(step, Step::Request { .. }),
            "{shown}: it came after all"
        );
    }
}

#[test]
fn steps_do_not_depend_on_which_values_are_taken() {
    const STREAMS: usize = 600;
    let seed = glimmer_seeds::seed();
    let mut rng = SmallRng::seed_from_u64(seed);
    let limits = Limits {
        item_bytes_max: ITEM_BYTES_MAX,
    };
    let mut taken = 0;
    for _ in 0..STREAMS {
        let Stream { accepts, bytes } = random_stream(&mut rng);
        let pieces: Vec<usize> = (0..8)
            .map(|_| {
                let most = [3, 300, 30_000][rng.random_range(0..3)];
                rng.random_range(1..=most)
            })
            .collect();
        let start = Parser::accepting(accepts, limits);
        let whole = trace_from(start, limits, &bytes, &[bytes.len()], false);
        let few = rng.random_bool(0.3);
        let mut choice = SmallRng::seed_from_u64(rng.random());
        taken += taken_from(start, &bytes, &pieces, &whole, |_| {
            !few || choice.random_bool(0.5)
        });
    }
    assert!(taken > STREAMS / 4, "only {taken} values were taken");
}
