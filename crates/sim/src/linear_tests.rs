use super::*;
use crate::history::Stamp;

const STRICT: Rules = Rules { may_evict: false };
const CACHE: Rules = Rules { may_evict: true };

fn value(text: &str) -> Value {
    text.as_bytes().into()
}

/// A call that was under way between two steps, each of a millisecond.
fn call(action: Action, answer: Answer, begun: u64, ended: u64) -> Call {
    let stamp = |step| Stamp {
        step,
        us: step * 1000,
    };
    Call {
        client: 0,
        key: "key".into(),
        action,
        begun: stamp(begun),
        ended: (answer != Answer::Unknown).then(|| stamp(ended)),
        answer,
    }
}

fn set(text: &str, begun: u64, ended: u64) -> Call {
    call(Action::Set(value(text), 0), Answer::Done, begun, ended)
}

fn read(text: Option<&str>, begun: u64, ended: u64) -> Call {
    call(Action::Get, Answer::Value(text.map(value)), begun, ended)
}

#[test]
fn a_read_sees_the_last_write_or_one_that_is_under_way() {
    let writes = [set("a", 1, 2), set("b", 3, 8)];
    for (text, fits) in [("a", true), ("b", true), ("c", false)] {
        let calls = [&writes[..], &[read(Some(text), 4, 5)]].concat();
        let expected = if fits {
            Verdict::Linearizable
        } else {
            Verdict::Impossible
        };
        assert_eq!(check(&calls, CACHE), expected, "{text}");
    }
    let late = [&writes[..], &[read(Some("a"), 9, 10)]].concat();
    assert_eq!(check(&late, CACHE), Verdict::Impossible);
}

#[test]
fn two_reads_do_not_see_a_write_come_and_go() {
    let calls = [
        set("a", 1, 2),
        set("b", 3, 20),
        read(Some("b"), 4, 5),
        read(Some("a"), 6, 7),
    ];
    assert_eq!(check(&calls, CACHE), Verdict::Impossible);
}

#[test]
fn an_item_is_lost_only_where_items_may_leave() {
    let calls = [set("a", 1, 2), read(None, 3, 4)];
    assert_eq!(check(&calls, CACHE), Verdict::Linearizable);
    assert_eq!(check(&calls, STRICT), Verdict::Impossible);
    let back = [&calls[..], &[read(Some("a"), 5, 6)]].concat();
    assert_eq!(
        check(&back, CACHE),
        Verdict::Impossible,
        "it does not return"
    );
}

#[test]
fn an_increment_that_happens_twice_is_noticed() {
    let zero = call(Action::Add(value("0"), 0), Answer::Done, 1, 2);
    let lost = call(Action::Increment(1), Answer::Unknown, 3, 4);
    let count = |number, begun| {
        call(
            Action::Increment(1),
            Answer::Number(number),
            begun,
            begun + 1,
        )
    };
    for (number, fits) in [(1, true), (2, true), (3, false)] {
        let calls = [zero.clone(), lost.clone(), count(number, 5)];
        let expected = if fits {
            Verdict::Linearizable
        } else {
            Verdict::Impossible
        };
        assert_eq!(check(&calls, STRICT), expected, "{number}");
    }
}

#[test]
fn an_item_expires_in_time() {
    let calls = |at| {
        let set = call(Action::Set(value("a"), 1), Answer::Done, 1, 10);
        [set, read(Some("a"), at, at + 1)]
    };
    assert_eq!(check(&calls(900), STRICT), Verdict::Linearizable);
    assert_eq!(check(&calls(1_005), STRICT), Verdict::Linearizable);
    assert_eq!(check(&calls(1_020), STRICT), Verdict::Impossible);
    let early = [set("x", 0, 0), calls(0)[0].clone(), read(None, 900, 901)];
    assert_eq!(check(&early[1..], STRICT), Verdict::Impossible);
    let due = [calls(0)[0].clone(), read(None, 1_000, 1_003)];
    assert_eq!(check(&due, STRICT), Verdict::Linearizable);
}

#[test]
fn a_cas_compares_with_what_was_read() {
    let cas = |answer| call(Action::Cas(value("a"), value("c")), answer, 5, 6);
    let writes = [set("a", 1, 2), set("b", 3, 4)];
    let fits = [&writes[..], &[cas(Answer::Exists)]].concat();
    assert_eq!(check(&fits, STRICT), Verdict::Linearizable);
    let wrong = [&writes[..], &[cas(Answer::Done)]].concat();
    assert_eq!(check(&wrong, STRICT), Verdict::Impossible);
}
