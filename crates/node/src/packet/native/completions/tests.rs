//! What is executed, what is not, and who gives way.

use super::*;
use std::collections::HashSet;

const CLIENT: u64 = 77;
const HASH_KEY: [u64; 2] = [1, 2];

fn execute(completions: &mut CompletionTable, mutation: u32, key: u64) {
    match admit(completions, CLIENT, mutation, key) {
        Verdict::Execute(slot) => {
            completions.settle(slot, Some(&mutation.to_le_bytes()));
        }
        other => panic!("mutation {mutation}: {other:?}"),
    }
}

/// Of a client that does not say how far it reaches back.
fn admit(completions: &mut CompletionTable, client: u64, mutation: u32, key: u64) -> Verdict {
    completions.admit(of(client), (mutation, Reach::UNKNOWN), hash(key), 0)
}

fn of(client: u64) -> Origin {
    Origin { client, network: 0 }
}

fn completions() -> CompletionTable {
    CompletionTable::new(4 * CLIENT_BYTES_MAX, HASH_KEY)
}

fn hash(key: u64) -> Keyhash {
    Keyhash(key << 16)
}

#[test]
fn what_was_executed_is_answered_again() {
    let mut completions = completions();
    for mutation in [u32::MAX - 1, u32::MAX, 0, 1] {
        execute(&mut completions, mutation, 5);
    }
    for mutation in [u32::MAX - 1, u32::MAX, 0, 1] {
        let verdict = admit(&mut completions, CLIENT, mutation, 5);
        let mut answer = RecordedReply::default();
        assert!(answer.keep(&mutation.to_le_bytes()));
        assert_eq!(verdict, Verdict::Repeat(answer));
    }
    // Another client's numbers are its own.
    assert!(matches!(
        admit(&mut completions, CLIENT + 1, 0, 5),
        Verdict::Execute(_)
    ));
}

#[test]
fn what_comes_late_is_executed_unless_its_key_has_changed_since() {
    let mut completions = completions();
    execute(&mut completions, 10, 1);
    execute(&mut completions, 14, 2);
    execute(&mut completions, 12, 1);
    assert_eq!(
        admit(&mut completions, CLIENT, 11, 1),
        Verdict::Superseded,
        "12 is newer"
    );
    execute(&mut completions, 13, 1);
    execute(&mut completions, 11, 3);
    // A number before the first one that was heard of.
    execute(&mut completions, 9, 4);
    assert_eq!(admit(&mut completions, CLIENT, 8, 1), Verdict::Superseded);
}

/// Two processes may share a client by accident, as after a fork.
#[test]
fn another_mutation_of_the_same_number_is_not_told_that_it_was_executed() {
    let mut completions = completions();
    execute(&mut completions, 3, 1);
    assert_eq!(admit(&mut completions, CLIENT, 3, 2), Verdict::Forgotten);
    assert!(matches!(
        admit(&mut completions, CLIENT, 3, 1),
        Verdict::Repeat(_)
    ));
}

#[test]
fn what_is_about_to_be_executed_is_not_begun_again() {
    let mut completions = completions();
    let Verdict::Execute(slot) = admit(&mut completions, CLIENT, 3, 1) else {
        panic!("it is new");
    };
    assert_eq!(admit(&mut completions, CLIENT, 3, 1), Verdict::Pending);
    completions.settle(slot, None);
    execute(&mut completions, 3, 1);
}

#[test]
fn what_is_too_old_is_refused_not_executed() {
    let mut completions = completions();
    execute(&mut completions, 0, 1);
    execute(&mut completions, NATIVE_MUTATIONS_KEPT - 1, 2);
    assert!(matches!(
        admit(&mut completions, CLIENT, 0, 1),
        Verdict::Repeat(_)
    ));
    execute(&mut completions, NATIVE_MUTATIONS_KEPT, 3);
    assert_eq!(admit(&mut completions, CLIENT, 0, 1), Verdict::Forgotten);
    // A leap leaves nothing of what was before.
    execute(&mut completions, 10 * NATIVE_MUTATIONS_KEPT + 5, 4);
    for back in 1..NATIVE_MUTATIONS_KEPT {
        execute(
            &mut completions,
            10 * NATIVE_MUTATIONS_KEPT + 5 - back,
            100 + u64::from(back),
        );
    }
}

/// Mutations in any order, lost and doubled, as a client sends them that has more or less under
/// way: each is executed once, and whatever it sends again before it has an answer is answered.
#[test]
fn what_a_client_reaches_back_for_is_known() {
    for seed in 1..=40u64 {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut draw = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let mut completions = completions();
        let mut executed = HashSet::new();
        // What was sent, with its reach, and whether it has been answered.
        let mut sent: Vec<(u32, Reach, bool)> = Vec::new();
        let first = u32::MAX - 300;
        for _ in 0..4000 {
            let oldest = sent.iter().position(|&(_, _, is_answered)| !is_answered);
            let under_way = oldest.map_or(0, |oldest| sent.len() - oldest);
            let under_way_max = [1, 20, 300][draw(3) as usize];
            if under_way < under_way_max {
                let number = first.wrapping_add(sent.len() as u32);
                sent.push((number, Reach::over(under_way + 1), false));
            }
            // Mostly something that has no answer; sometimes something old arrives once more.
            let from = oldest.unwrap_or(0).saturating_sub(40);
            let which = from + draw((sent.len() - from) as u64) as usize;
            let (number, reach, is_answered) = sent[which];
            let answer = number.to_le_bytes();
            match completions.admit(of(CLIENT), (number, reach), hash(number.into()), 0) {
                Verdict::Execute(slot) => {
                    assert!(executed.insert(number), "seed {seed}: {number} twice");
                    completions.settle(slot, Some(&answer));
                }
                Verdict::Repeat(repeated) => assert_eq!(repeated.bytes(), answer),
                verdict => assert!(is_answered, "seed {seed}: {number}: {verdict:?}"),
            }
            // Of the answers, some are lost.
            sent[which].2 |= draw(3) > 0;
        }
        assert!(executed.len() > 100);
    }
}

/// What a worker of a server with `-m 64 -t 2` has for its completion table, about.
const BYTES: usize = 650_000;

/// The next mutation of a client, in a batch of its own, executed and answered if it may be.
fn write(completions: &mut CompletionTable, origin: Origin, mutation: u32, now_ms: u64) -> Verdict {
    write_far(completions, origin, (mutation, Reach::over(1)), now_ms)
}

fn write_far(
    completions: &mut CompletionTable,
    origin: Origin,
    mutation: (u32, Reach),
    now_ms: u64,
) -> Verdict {
    completions.begin_batch();
    let verdict = completions.admit(origin, mutation, hash(origin.client), now_ms);
    if let Verdict::Execute(slot) = verdict {
        completions.settle(slot, Some(&[1]));
    }
    assert!(completions.bytes <= completions.bytes_max);
    verdict
}

fn is_executed(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Execute(_))
}

/// Many clients write in turns, several times.
fn all_are_served(clients: u64, network_of: impl Fn(u64) -> u64) {
    let mut completions = CompletionTable::new(BYTES, HASH_KEY);
    let mut now_ms = 0;
    for mutation in 1..6 {
        for client in 0..clients {
            now_ms += u64::from(client % 2 == 0);
            let network = network_of(client);
            let verdict = write(
                &mut completions,
                Origin { client, network },
                mutation,
                now_ms,
            );
            assert!(is_executed(verdict), "{mutation} of {client}: {verdict:?}");
        }
        assert!(completions.bytes() <= BYTES);
    }
}

#[test]
fn five_thousand_writers_of_one_network_are_served() {
    all_are_served(5000, |_| 7);
}

#[test]
fn five_thousand_writers_of_as_many_networks_are_served() {
    all_are_served(5000, |client| client);
}

#[test]
fn five_thousand_writers_of_fifty_networks_are_served() {
    all_are_served(5000, |client| client % 50);
}

#[test]
fn the_bound_grows_with_the_memory() {
    let fit = |bytes: usize| {
        let mut completions = CompletionTable::new(bytes, HASH_KEY);
        (0..)
            .take_while(|&client| {
                write(&mut completions, of(client), 1, client);
                completions.displaced.bytes() == 0
            })
            .count()
    };
    let (small, large) = (fit(BYTES), fit(4 * BYTES));
    assert!(small > 1500, "{small}");
    assert!(large.abs_diff(4 * small) < 10, "{small} and {large}");
}

/// Beyond that, the memory cannot tell what has been executed. The writer is refused, not
/// forgotten.
#[test]
fn writers_beyond_the_notes_are_refused_and_nobody_is_executed_twice() {
    let mut completions = CompletionTable::new(BYTES, HASH_KEY);
    let mut served = Vec::new();
    for client in 0..20_000 {
        let verdict = write(&mut completions, of(client), 1, 1 + client / 10);
        match verdict {
            Verdict::Execute(_) => served.push(client),
            verdict => assert_eq!(verdict, Verdict::TooManyWriters),
        }
    }
    assert!((4000..8000).contains(&served.len()), "{}", served.len());
    for &client in &served {
        let verdict = write(&mut completions, of(client), 1, 3000);
        let is_known = matches!(verdict, Verdict::Repeat(_) | Verdict::Forgotten);
        assert!(is_known, "{client}: {verdict:?}");
    }
    // When the others have been silent, there is room again.
    let later_ms = 3000 + NATIVE_CLIENT_IDLE_MS;
    assert!(is_executed(write(
        &mut completions,
        of(30_000),
        1,
        later_ms
    )));
}

#[test]
fn a_silent_client_gives_way_first() {
    let mut completions = CompletionTable::new(BYTES, HASH_KEY);
    for client in 0..1000 {
        write(&mut completions, of(client), 1, 0);
    }
    // They have room for as many again, and for one of these when the first have been silent.
    let later_ms = NATIVE_CLIENT_IDLE_MS;
    for client in 1000..2500 {
        assert!(is_executed(write(
            &mut completions,
            of(client),
            1,
            later_ms
        )));
    }
    assert_eq!(completions.displaced.bytes(), 0);
    for client in 1000..2500 {
        let again = write(&mut completions, of(client), 1, later_ms);
        assert!(matches!(again, Verdict::Repeat(_)), "{client}: {again:?}");
    }
}

/// Its slot has to stay its own until it is settled.
#[test]
fn a_client_with_a_mutation_in_the_batch_does_not_give_way() {
    let mut completions = CompletionTable::new(0, HASH_KEY);
    let all = (1, Reach::UNKNOWN);
    completions.begin_batch();
    let verdict = completions.admit(of(1), all, hash(1), 5);
    assert!(is_executed(verdict));
    assert_eq!(
        completions.admit(of(2), all, hash(2), 5),
        Verdict::TooManyWriters
    );
    let Verdict::Execute(slot) = verdict else {
        unreachable!();
    };
    completions.settle(slot, Some(&[1]));
    assert!(matches!(
        write_far(&mut completions, of(1), all, 5),
        Verdict::Repeat(_)
    ));
}

/// One machine may call itself any number of clients. It displaces its own, and when that is no
/// longer possible, it is refused. Other networks neither lose their places nor are kept out.
#[test]
fn a_network_that_invents_clients_harms_itself_only() {
    let mut completions = CompletionTable::new(BYTES, HASH_KEY);
    let other = |client: u64| Origin {
        client,
        network: client % 20,
    };
    for client in 0..200 {
        assert!(is_executed(write(
            &mut completions,
            other(client),
            1,
            client
        )));
    }
    let mut refused = 0;
    for client in 1000..100_000 {
        let origin = Origin {
            client,
            network: 77,
        };
        refused += u32::from(!is_executed(write(&mut completions, origin, 1, 201)));
    }
    assert!(refused > 80_000);
    for client in 0..200 {
        let verdict = write(&mut completions, other(client), 1, 202);
        assert!(matches!(verdict, Verdict::Repeat(_)), "{client}");
        assert!(is_executed(write(&mut completions, other(client), 2, 202)));
    }
    for client in 200_000..200_500 {
        let verdict = write(&mut completions, other(client), 1, 203);
        assert!(is_executed(verdict), "{client}: {verdict:?}");
    }
    // The first network is served, too, as far as it has places.
    let mut known = (1000..100_000).filter(|&client| {
        let origin = Origin {
            client,
            network: 77,
        };
        completions.places.contains_key(&client)
            && is_executed(write(&mut completions, origin, 2, 204))
    });
    assert!(known.next().is_some());
}

/// Many machines invent large clients, and all have as much. They take turns as long as there are
/// notes for turns; the others are left to newcomers that want less.
#[test]
fn networks_that_take_turns_leave_room_for_lighter_newcomers() {
    let mut completions = CompletionTable::new(BYTES, HASH_KEY);
    let mut refused = 0;
    for client in 0..40_000 {
        let origin = Origin {
            client,
            network: client % 200,
        };
        let mutation = (1, Reach::UNKNOWN);
        refused += u32::from(!is_executed(write_far(
            &mut completions,
            origin,
            mutation,
            1,
        )));
    }
    assert!(refused > 30_000);
    for client in 100_000..101_000 {
        let origin = Origin {
            client,
            network: client,
        };
        let verdict = write(&mut completions, origin, 1, 2);
        assert!(is_executed(verdict), "{client}: {verdict:?}");
    }
}

/// A client that had to give way comes back. What it sent before is not executed again.
#[test]
fn a_displaced_client_goes_on_where_it_was() {
    let mut completions = CompletionTable::new(BYTES, HASH_KEY);
    for mutation in 1..6 {
        assert!(is_executed(write(&mut completions, of(3), mutation, 0)));
    }
    let mut client = 100;
    while completions.places.contains_key(&3) {
        write(&mut completions, of(client), 1, 1);
        client += 1;
    }
    let before = completions.displaced.bytes();
    assert_eq!(write(&mut completions, of(3), 5, 2), Verdict::Forgotten);
    assert_eq!(write(&mut completions, of(3), 4, 2), Verdict::Forgotten);
    assert!(is_executed(write(&mut completions, of(3), 6, 2)));
    assert!(matches!(
        write(&mut completions, of(3), 6, 2),
        Verdict::Repeat(_)
    ));
    assert_eq!(completions.displaced.bytes(), before, "its note is gone");
}

/// A client grows as far as its network's part allows.
#[test]
fn growth_displaces_those_who_have_more_and_no_others() {
    let mut completions = CompletionTable::new(BYTES, HASH_KEY);
    let of_network = |client, network| Origin { client, network };
    for client in 0..5 {
        assert!(is_executed(write(
            &mut completions,
            of_network(client, 1),
            1,
            0
        )));
    }
    let mut client = 100;
    while completions.displaced.bytes() == 0 {
        write(&mut completions, of_network(client, 2), 1, 1);
        client += 1;
    }
    let all = (2, Reach::over(1024));
    for client in 0..5 {
        let verdict = write_far(&mut completions, of_network(client, 1), all, 2);
        assert!(is_executed(verdict), "{client}: {verdict:?}");
    }
    // The other network has more small ones than this one would have, and stays.
    let large = |completions: &mut CompletionTable, client| {
        write_far(
            completions,
            of_network(client, 1),
            (1, Reach::over(1024)),
            3,
        )
    };
    let entered = (10..40).filter(|&client| is_executed(large(&mut completions, client)));
    assert!(entered.count() > 0);
    let half = completions.bytes_max / 2;
    assert!(completions.holdings.bytes_of(1) <= half + CLIENT_BYTES_MAX);
    assert!(completions.holdings.bytes_of(2) >= half - 2 * CLIENT_BYTES_MAX);
}

/// Mutations of many clients, again and again and in any order, while clients displace one another:
/// none is executed twice.
#[test]
fn no_mutation_is_executed_twice_however_clients_are_displaced() {
    for seed in 1..=10u64 {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut draw = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let mut completions =
            CompletionTable::new([3, 8, 60][seed as usize % 3] * CLIENT_BYTES_MAX, HASH_KEY);
        let clients = 900;
        let mut newest = vec![0u32; clients as usize];
        let mut executed: HashSet<(u64, u32)> = HashSet::new();
        let (mut displaced, mut refused) = (0, 0);
        for step in 0..60_000u64 {
            // All of it in less time than a client has to be silent.
            let now_ms = step * NATIVE_CLIENT_IDLE_MS / 60_001;
            let client = draw(clients).min(draw(clients));
            let origin = Origin {
                client,
                network: [client % 7, client, 0][seed as usize % 3],
            };
            let last = &mut newest[client as usize];
            let mutation = match draw(3) {
                0 => last.saturating_sub(draw(5) as u32),
                _ => *last + 1,
            };
            *last = mutation.max(*last);
            let reach = Reach::over([1, 4, 64, 1024][draw(40).min(3) as usize]);
            completions.begin_batch();
            match completions.admit(origin, (mutation, reach), hash(client), now_ms) {
                Verdict::Execute(slot) => {
                    assert!(
                        executed.insert((client, mutation)),
                        "seed {seed}: {mutation} of {client} twice"
                    );
                    // Some are not executed after all.
                    let answer = (draw(20) > 0).then_some(&[1][..]);
                    if answer.is_none() {
                        executed.remove(&(client, mutation));
                    }
                    completions.settle(slot, answer);
                }
                Verdict::Forgotten => displaced += 1,
                Verdict::Full | Verdict::TooManyWriters => refused += 1,
                Verdict::Repeat(_) | Verdict::Superseded | Verdict::Pending => {}
            }
            assert!(completions.bytes <= completions.bytes_max);
        }
        assert!(executed.len() > 1000, "seed {seed}: {}", executed.len());
        assert!(
            displaced + refused > 100,
            "seed {seed}: {displaced} {refused}"
        );
    }
}
