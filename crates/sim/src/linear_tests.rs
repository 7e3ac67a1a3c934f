use super::*;
use crate::history::Stamp;

const STRICT: Rules = Rules {
    may_evict: false,
    ahead_us: 0,
};
const CACHE: Rules = Rules {
    may_evict: true,
    ..STRICT
};

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

/// A process that is killed may lose what is there, and nothing that was there is lost later.
#[test]
fn an_item_may_be_lost_when_a_process_is_killed() {
    let lose = call(Action::Lose, Answer::Done, 5, 6);
    for (begun, verdict) in [(1, Verdict::Linearizable), (7, Verdict::Impossible)] {
        let calls = [set("a", begun, begun + 1), lose.clone(), read(None, 9, 10)];
        assert_eq!(check(&calls, STRICT), verdict, "stored at {begun}");
    }
    let comes_back = [
        set("a", 1, 2),
        lose,
        read(None, 7, 8),
        read(Some("a"), 9, 10),
    ];
    assert_eq!(check(&comes_back, STRICT), Verdict::Impossible);
}

/// A process may begin ahead of the one before.
#[test]
fn a_clock_that_is_ahead_has_items_expire_earlier() {
    let set = call(Action::Set(value("a"), 1), Answer::Done, 1, 2);
    let calls = [set, read(None, 985, 986)];
    assert_eq!(check(&calls, STRICT), Verdict::Impossible);
    let ahead = Rules {
        ahead_us: 20_000,
        ..STRICT
    };
    assert_eq!(check(&calls, ahead), Verdict::Linearizable);
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
fn workers_do_not_agree_when_an_item_expires() {
    let calls = |misses_at, finds_at| {
        let set = call(Action::Set(value("a"), 1), Answer::Done, 1, 2);
        let misses = read(None, misses_at, misses_at + 1);
        [set, misses, read(Some("a"), finds_at, finds_at + 1)]
    };
    let check_calls = |misses_at, finds_at| check(&calls(misses_at, finds_at), STRICT);
    assert_eq!(check_calls(1_001, 1_003), Verdict::Linearizable);
    assert_eq!(check_calls(1_001, 1_020), Verdict::Impossible);
    assert_eq!(check_calls(900, 902), Verdict::Impossible);
    let [set, misses, finds] = calls(1_000, 1_004);
    let deletes = call(Action::Delete, Answer::Done, 1_002, 1_003);
    assert_eq!(
        check(&[set, misses, deletes, finds], STRICT),
        Verdict::Impossible
    );
}

#[test]
fn a_cas_of_a_value_that_was_stored_twice_may_find_the_other() {
    let repeated = call(Action::Set(value("a"), 0), Answer::Unknown, 1, u64::MAX);
    let cas = |answer| call(Action::Cas(value("a"), value("c")), answer, 5, 6);
    for (answer, last) in [(Answer::Exists, "a"), (Answer::Done, "c")] {
        let calls = [
            set("a", 1, 2),
            repeated.clone(),
            cas(answer),
            read(Some(last), 7, 8),
        ];
        assert_eq!(check(&calls, STRICT), Verdict::Linearizable, "{last}");
    }
    let once = [set("a", 1, 2), cas(Answer::Exists), read(Some("a"), 7, 8)];
    assert_eq!(check(&once, STRICT), Verdict::Impossible);
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

#[test]
fn a_flush_for_later_happens_when_it_is_due() {
    let flush = |after_s, begun| call(Action::Flush(after_s), Answer::Done, begun, begun + 1);
    let read_at = |ms, text| {
        let calls = [set("a", 1, 2), flush(1, 10), read(text, ms, ms + 1)];
        check(&calls, STRICT)
    };
    assert_eq!(read_at(900, Some("a")), Verdict::Linearizable);
    assert_eq!(read_at(900, None), Verdict::Impossible);
    assert_eq!(read_at(1100, Some("a")), Verdict::Impossible);
    assert_eq!(read_at(1100, None), Verdict::Linearizable);
    // What is stored before it is due goes with the rest, and what is stored afterwards stays.
    for (stored_ms, text) in [(900, None), (1100, Some("b"))] {
        let stored = set("b", stored_ms, stored_ms + 1);
        let calls = |text| [flush(1, 10), stored.clone(), read(text, 1200, 1201)];
        assert_eq!(check(&calls(text), STRICT), Verdict::Linearizable);
        let other = text.is_none().then_some("b");
        assert_eq!(check(&calls(other), STRICT), Verdict::Impossible);
    }
    // Another flush replaces it.
    let replaced = [
        set("a", 1, 2),
        flush(1, 10),
        flush(3, 20),
        read(Some("a"), 1500, 1501),
    ];
    assert_eq!(check(&replaced, STRICT), Verdict::Linearizable);
    let at_once = [
        flush(1, 10),
        flush(0, 20),
        set("a", 30, 31),
        read(Some("a"), 1500, 1501),
    ];
    assert_eq!(check(&at_once, STRICT), Verdict::Linearizable);
}

#[test]
fn a_read_that_touches_gives_the_item_more_time() {
    let stored = call(Action::Set(value("a"), 1), Answer::Done, 1, 2);
    let told = Answer::Value(Some(value("a")));
    let touched = call(Action::GetAndTouch(2), told, 500, 501);
    let calls = |text| [stored.clone(), touched.clone(), read(text, 2000, 2001)];
    assert_eq!(check(&calls(Some("a")), STRICT), Verdict::Linearizable);
    assert_eq!(check(&calls(None), STRICT), Verdict::Impossible);
}

#[test]
fn a_count_begins_where_there_is_no_number() {
    let count = |told, begun| call(Action::Count(2), Answer::Number(told), begun, begun + 1);
    assert_eq!(
        check(&[count(2, 1), count(4, 3)], STRICT),
        Verdict::Linearizable
    );
    assert_eq!(
        check(&[count(2, 1), count(2, 3)], STRICT),
        Verdict::Impossible
    );
}
