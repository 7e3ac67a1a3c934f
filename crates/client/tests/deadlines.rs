//! Until when requests are sent again, and when they fail, by the clock of a session.

#[path = "support/session.rs"]
mod session;

use glimmer_client::{Change, ConnectError, Failure, Settings, Status, StoreMode, What};
use glimmer_proto::native::Kind;
use glimmer_proto::native::fragment::{DATA_BYTES, WINDOW};
use session::{Client, INCREMENT, SETTINGS, Sent};

/// The server remembers a client for 30 s.
const REMEMBERED_US: u64 = 30_000_000;
/// A copy that leaves later may arrive when the server has forgotten the first one.
const RESENT_US: u64 = 25_000_000;
const LONG: Settings = Settings {
    deadline_us: 90_000_000,
    ..SETTINGS
};

/// What is sent until this time, but for questions, and when.
fn sent_until(client: &mut Client, until_us: u64) -> Vec<(u64, Sent)> {
    let mut all = Vec::new();
    while client.now_us < until_us {
        let sent = client.after(SETTINGS.resend_longest_us / 2);
        let sent = sent.into_iter().filter(|sent| !sent.is_question());
        all.extend(sent.map(|sent| (client.now_us, sent)));
    }
    all
}

fn mutates(sent: &Sent) -> bool {
    sent.rest[0] >= 0x10
}

#[test]
fn a_change_is_not_sent_again_when_the_server_may_have_forgotten_it() {
    let (mut client, _) = Client::connected(LONG);
    client.ask(INCREMENT, 1);
    client.ask(What::Get, 2);
    let issued_us = client.now_us;
    client.sent();
    let sent = sent_until(&mut client, issued_us + LONG.deadline_us - 1_000_000);
    let (changes, reads): (Vec<_>, Vec<_>) = sent.iter().partition(|(_, sent)| mutates(sent));
    let last_us = |copies: &[&(u64, Sent)]| copies.last().unwrap().0 - issued_us;
    assert!(last_us(&changes) <= RESENT_US && last_us(&changes) > RESENT_US - 1_000_000);
    assert!(last_us(&reads) > 2 * REMEMBERED_US, "a read does no harm");
    assert_eq!(client.told, []);
    sent_until(&mut client, issued_us + LONG.deadline_us + 10_000);
    client.told.sort_unstable_by_key(|&(tag, _)| tag);
    assert_eq!(
        client.told,
        [(1, Err(Failure::Silent)), (2, Err(Failure::Silent))]
    );
}

#[test]
fn an_answer_is_awaited_until_the_deadline() {
    let (mut client, _) = Client::connected(LONG);
    client.ask(INCREMENT, 1);
    let first = client.sent()[0].clone();
    sent_until(&mut client, 2 * REMEMBERED_US);
    client.arrive(&first.status(Status::Counted));
    assert_eq!(client.told, [(1, Ok(Status::Counted))]);
}

/// The first copy was executed, and the answers to it were lost.
#[test]
fn no_answer_has_a_change_sent_again_that_late() {
    for refusal in [Status::AskAlone, Status::NewDirectory, Status::NoToken] {
        let (mut client, _) = Client::connected(LONG);
        client.ask(INCREMENT, 1);
        client.sent();
        let copies = sent_until(&mut client, REMEMBERED_US);
        let question = client.wait_for_question();
        client.arrive(&copies.last().unwrap().1.status(refusal));
        client.arrive(&question.directory(1));
        let later = sent_until(&mut client, 2 * REMEMBERED_US);
        assert!(later.is_empty(), "{refusal:?}: {later:?}");
    }
}

#[test]
fn another_server_is_sent_what_the_one_before_had_that_long() {
    let (mut client, _) = Client::connected(LONG);
    client.ask(INCREMENT, 1);
    let first = client.sent()[0].clone();
    sent_until(&mut client, REMEMBERED_US);
    let question = client.wait_for_question();
    client.arrive(&question.directory(2));
    let again = client.sent()[0].clone();
    assert_ne!(again.mutation().0, first.mutation().0);
    // The first copy to this one is lost.
    let later = sent_until(&mut client, REMEMBERED_US + 5_000_000);
    assert!(
        later.iter().any(|(_, sent)| mutates(sent)),
        "it is new to that server"
    );
    client.arrive(&again.status(Status::Counted));
    assert_eq!(client.told, [(1, Ok(Status::Counted))]);
}

/// A change that is kept until its deadline does not count in the window of those that may be sent.
#[test]
fn others_do_not_wait_for_a_change_that_is_not_sent_again() {
    let (mut client, _) = Client::connected(LONG);
    client.ask(INCREMENT, 0);
    client.sent();
    sent_until(&mut client, REMEMBERED_US);
    for tag in 1..=3_000 {
        client.ask(INCREMENT, tag);
        let sent = client.sent();
        let change = sent
            .iter()
            .find(|sent| !sent.is_question() && mutates(sent));
        client.arrive(&change.expect("it is sent at once").status(Status::Counted));
    }
    assert_eq!(client.told.len(), 3_000);
}

/// A change in fragments cannot be executed before the last of them has been sent.
#[test]
fn a_slow_upload_goes_on() {
    let (mut client, _) = Client::connected(LONG);
    let value = vec![b'x'; (WINDOW + 1) * DATA_BYTES];
    let store = What::Change(Change::Store {
        mode: StoreMode::Set,
        expiry: 0.into(),
        flags: 0,
        value: &value,
    });
    client.ask(store, 1);
    assert_eq!(client.sent().len(), WINDOW);
    let windows = sent_until(&mut client, REMEMBERED_US + 10_000_000);
    let (last_us, last) = windows.last().unwrap();
    assert!(*last_us > REMEMBERED_US, "the first window is sent again");
    let mut progress = last.reply(Kind::Progress, 1);
    progress.extend_from_slice(&((WINDOW * DATA_BYTES) as u32).to_le_bytes());
    client.arrive(&progress);
    let complete_us = client.now_us;
    assert_eq!(client.sent().len(), 2);
    let windows = sent_until(&mut client, complete_us + RESENT_US + 10_000_000);
    let last_us = windows.last().unwrap().0 - complete_us;
    assert!(last_us <= RESENT_US && last_us > RESENT_US - 1_000_000);
}

/// Drives a session as its callers do: whenever it wants to be woken.
fn answered_us(settings: Settings, asked_us: &[u64]) -> Vec<u64> {
    let (mut client, _) = Client::connected(settings);
    let begun_us = client.now_us;
    let mut asked = asked_us.iter().map(|us| begun_us + us).peekable();
    let mut answered_us = Vec::new();
    while answered_us.len() < asked_us.len() {
        let wakes_us = client.session.wakes_us().unwrap_or(u64::MAX);
        match asked.peek() {
            Some(&next_us) if next_us <= wakes_us => {
                client.now_us = next_us;
                client.ask(INCREMENT, 1);
                asked.next();
            }
            _ => client.now_us = client.now_us.max(wakes_us),
        }
        client.after(0);
        answered_us.resize(client.told.len(), client.now_us - begun_us);
    }
    answered_us
}

#[test]
fn a_deadline_is_kept_whatever_the_timeouts() {
    for (first_us, deadline_us) in [
        (10_000, 500_000),
        (4_000_000, 500_000),
        (40_000_000, 1_000_000),
        (u64::MAX, 2_000_000),
    ] {
        let settings = Settings {
            resend_first_us: first_us,
            resend_longest_us: first_us,
            deadline_us,
            ..SETTINGS
        };
        let asked_us = [0, 1, deadline_us / 3, 10 * deadline_us];
        let answered_us = answered_us(settings, &asked_us);
        for (asked_us, answered_us) in asked_us.into_iter().zip(answered_us) {
            let late_us = answered_us - asked_us - deadline_us;
            assert!(
                late_us <= deadline_us / 50,
                "{settings:?}: {late_us} µs late"
            );
        }
    }
}

#[test]
fn no_time_is_too_long() {
    let settings = Settings {
        resend_first_us: u64::MAX,
        resend_longest_us: u64::MAX,
        deadline_us: u64::MAX,
        ..SETTINGS
    };
    let (mut client, _) = Client::connected(settings);
    client.session.refresh();
    client.ask(INCREMENT, 1);
    let first = client.sent()[0].clone();
    assert!(client.after(1 << 60).is_empty());
    assert!(client.session.wakes_us() > Some(1 << 61));
    client.arrive(&first.status(Status::Counted));
    assert_eq!(client.told, [(1, Ok(Status::Counted))]);
}

/// It would wait for the time of its next question otherwise.
#[test]
fn a_server_that_is_not_there_is_not_awaited_for_longer_than_the_deadline() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let settings = Settings {
        resend_first_us: u64::MAX,
        resend_longest_us: u64::MAX,
        deadline_us: 10_000,
        ..SETTINGS
    };
    let server = silent.local_addr().unwrap();
    let connected = glimmer_client::Client::connect_with(server, settings);
    assert!(matches!(connected, Err(ConnectError::Silent(_))));
}
