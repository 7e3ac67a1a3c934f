//! Every request and reply survives writing and parsing, and a datagram of arbitrary bytes is
//! parsed without harm.

use glimmer_base::Keyhash;
use glimmer_proto::StoreMode;
use glimmer_proto::fuzzing;
use glimmer_proto::native::fragment::{Assembly, DATA_BYTES, Joined, WINDOW, digest};
use glimmer_proto::native::request::{Action, Change, Exptime};
use glimmer_proto::native::{
    Fragment, Kind, Reach, Record, Reply, ReplyHeader, RequestHeader, Status,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn change<'a>(which: u8, numbers: (u32, u32, u64), value: &'a [u8]) -> Change<'a> {
    let (expiry, flags, wide) = numbers;
    let expiry = match wide % 2 {
        0 => Exptime::memcached(expiry),
        _ => Exptime::ms(expiry),
    };
    let store = |mode| Change::Store {
        mode,
        expiry,
        flags,
        value,
    };
    match which {
        0 => store(StoreMode::Set),
        1 => store(StoreMode::Add),
        2 => store(StoreMode::Replace),
        3 => store(StoreMode::Cas(wide)),
        4 => Change::Delete,
        5 => Change::Increment { delta: wide },
        6 => Change::Decrement { delta: wide },
        _ => Change::Touch { expiry },
    }
}

proptest! {
    #[test]
    fn requests_come_back(
        which in 0u8..11,
        numbers in any::<(u32, u32, u64)>(),
        (mutation, keyhash, shows_cas) in any::<(u32, u64, bool)>(),
        key in vec(any::<u8>(), 1..=250),
        value in vec(any::<u8>(), 0..2000),
        tail in vec(any::<u8>(), 0..50),
    ) {
        let action = match which {
            8 => Action::Get,
            9 => Action::Read { offset: numbers.0 },
            10 => Action::Noop,
            _ => Action::Mutate {
                mutation,
                reach: Reach::over(numbers.1 as usize),
                change: change(which, numbers, &value),
            },
        };
        let key: &[u8] = if which == 10 { &[] } else { &key };
        let record = Record { action, keyhash: Keyhash(keyhash), key, shows_cas };
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        prop_assert_eq!(record.bytes(), bytes.len());
        for cut in 0..bytes.len() {
            prop_assert_eq!(Record::read(&bytes[..cut]), None);
        }
        let length = bytes.len();
        bytes.extend(tail);
        prop_assert_eq!(Record::read(&bytes), Some((record, length)));
    }

    #[test]
    fn replies_come_back(
        status in proptest::sample::select(Status::ALL.to_vec()),
        flags in any::<u32>(),
        (cas, number) in any::<(Option<u64>, Option<u64>)>(),
        value in vec(any::<u8>(), 0..2000),
        tail in vec(any::<u8>(), 0..50),
    ) {
        let reply = Reply { status, flags, cas, number, value: &value };
        let mut bytes = Vec::new();
        reply.write(&mut bytes);
        for cut in 0..bytes.len() {
            prop_assert_eq!(Reply::read(&bytes[..cut]), None);
        }
        let length = bytes.len();
        bytes.extend(tail);
        prop_assert_eq!(Reply::read(&bytes), Some((reply, length)));
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in vec(any::<u8>(), 0..200), kind in 0u8..8) {
        fuzzing::native(&bytes);
        // With a valid header, so that the rest is parsed as well.
        let kind = [Kind::Requests, Kind::Directory, Kind::Fragment][usize::from(kind) % 3];
        let header = RequestHeader {
            kind, count: 1, directory: 0, sequence: 0, timestamp: 0, client: 0, token: 0,
        };
        fuzzing::native(&[&header.bytes()[..], &bytes].concat());
        let even = usize::from(bytes.len().is_multiple_of(2));
        let kind = [Kind::Replies, Kind::DirectoryReply][even];
        let header = ReplyHeader::to(&header, kind, 1, 0);
        fuzzing::native(&[&header.bytes()[..], &bytes].concat());
    }

    #[test]
    fn a_message_in_fragments_comes_together_in_any_order(
        bytes in 1usize..6 * DATA_BYTES,
        order in vec(0usize..6, 0..60),
    ) {
        let message: Vec<u8> = (0..bytes).map(|n| (n % 253) as u8).collect();
        let fragments = message.len().div_ceil(DATA_BYTES);
        let of = |index: usize| Fragment::of(&message, digest(&message), index * DATA_BYTES);
        let mut assembly = Assembly::new(&of(0));
        let mut seen = BTreeSet::new();
        for index in order.into_iter().map(|index| index % fragments).chain(0..fragments) {
            let mut wire = Vec::new();
            of(index).write(&mut wire);
            let is_there = seen.contains(&index);
            seen.insert(index);
            let first_missing = (0..fragments).find(|index| !seen.contains(index));
            match assembly.join(&Fragment::read(&wire).unwrap()) {
                Joined::OutOfOrder => prop_assert!(is_there),
                Joined::More => {
                    let missing = first_missing.unwrap() * DATA_BYTES;
                    prop_assert_eq!(assembly.next() as usize, missing);
                    prop_assert_eq!(assembly.bytes(), &message[..missing]);
                }
                Joined::Complete => {
                    prop_assert_eq!(first_missing, None);
                    prop_assert_eq!(assembly.into_bytes(), message);
                    return Ok(());
                }
                joined => prop_assert!(false, "{:?}", joined),
            }
        }
        prop_assert!(false, "the fragments in their order complete it");
    }
}

#[test]
fn a_message_whose_bytes_have_changed_is_begun_anew() {
    let (one, other) = (vec![1u8; 2 * DATA_BYTES], vec![2u8; 2 * DATA_BYTES]);
    let first = Fragment::of(&one, digest(&one), 0);
    let mut assembly = Assembly::new(&first);
    assert_eq!(assembly.join(&first), Joined::More);
    let second = Fragment::of(&other, digest(&other), DATA_BYTES);
    assert_eq!(assembly.join(&second), Joined::Foreign);
    let lying = Fragment {
        digest: digest(&one),
        ..second
    };
    assert_eq!(assembly.join(&lying), Joined::Corrupt);
    assert_eq!(assembly.next(), 0);
}

#[test]
fn what_is_too_far_ahead_waits_for_what_is_before_it() {
    let message = vec![7u8; (WINDOW + 3) * DATA_BYTES];
    let of = |index: usize| Fragment::of(&message, digest(&message), index * DATA_BYTES);
    let mut assembly = Assembly::new(&of(0));
    assert_eq!(assembly.join(&of(WINDOW)), Joined::OutOfOrder);
    for index in (1..WINDOW).rev() {
        assert_eq!(assembly.join(&of(index)), Joined::More);
        assert_eq!(assembly.next(), 0);
    }
    assert_eq!(assembly.join(&of(0)), Joined::More);
    assert_eq!(assembly.next() as usize, WINDOW * DATA_BYTES);
    let rest = [WINDOW + 1, WINDOW, WINDOW + 2].map(|index| assembly.join(&of(index)));
    assert_eq!(rest, [Joined::More, Joined::More, Joined::Complete]);
    assert_eq!(assembly.into_bytes(), message);
}
