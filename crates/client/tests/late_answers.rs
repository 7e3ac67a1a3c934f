//! Answers that are late, duplicated or forged, given to a session without socket and clock.

#[path = "support/session.rs"]
mod session;

use glimmer_client::{Directory, Failure, Session, Settings, Status, What};
use glimmer_proto::native::directory::Access;
use glimmer_proto::native::{Kind, ReplyHeader};
use session::{Client, INCREMENT, SETTINGS};

/// The server is restarted and executes an increment, but its answers are lost. Then the old
/// server's directory arrives a second time.
#[test]
fn a_directory_that_arrives_again_has_nothing_executed_again() {
    let (mut client, old) = Client::connected(SETTINGS);
    client.ask(INCREMENT, 1);
    let refused = client.sent()[0].clone();
    client.arrive(&refused.status(Status::NewDirectory));
    let question = client.wait_for_question();
    client.arrive(&question.directory(2));
    let executed = client.sent()[0].clone();
    assert_eq!(executed.header.directory, 2);
    assert_ne!(executed.mutation().0, refused.mutation().0);
    for _ in 0..4 {
        let question = client.wait_for_question();
        client.arrive(&old);
        client.arrive(&question.directory(2));
    }
    assert_eq!(client.session.counters().directories, 6);
    let again = client.after(SETTINGS.resend_longest_us);
    let mut again = again.iter().filter(|sent| sent.header.count == 1);
    let again = again.next().expect("it has no answer yet");
    assert_eq!(again.mutation(), executed.mutation());
    client.arrive(&executed.status(Status::Counted));
    assert_eq!(client.told, [(1, Ok(Status::Counted))]);
}

/// The server executed the increment, and its answer was lost. Then it was restarted with its
/// items, and knows nothing of the client's changes.
#[test]
fn a_server_that_kept_its_items_has_nothing_executed_again() {
    let (mut client, _) = Client::connected(SETTINGS);
    client.ask(INCREMENT, 1);
    client.ask(What::Get, 2);
    client.sent();
    let copies = client.after(SETTINGS.resend_longest_us);
    let copy = copies.iter().find(|sent| sent.header.count == 1).unwrap();
    client.arrive(&copy.status(Status::NewDirectory));
    let question = client.wait_for_question();
    client.arrive(&question.directory_of(2, Some(0)));
    assert_eq!(client.told, [(1, Err(Failure::Silent))]);
    let sent = client.sent();
    assert_eq!(sent.len(), 1, "the read alone is sent again");
    client.arrive(&sent[0].status(Status::NotFound));
    assert_eq!(client.told[1..], [(2, Ok(Status::NotFound))]);
}

/// The network may have brought a copy of the datagram to the old server, if there was one when the
/// client sent it.
#[test]
fn a_change_that_only_the_new_server_can_have_got_is_sent_again() {
    for (begun_s, is_sent_again) in [(0, false), (1, true), (254, true)] {
        let (mut client, _) = Client::connected(SETTINGS);
        client.ask(INCREMENT, 1);
        let refused = client.sent()[0].clone();
        client.arrive(&refused.status(Status::NewDirectory));
        let question = client.wait_for_question();
        client.arrive(&question.directory_of(2, Some(begun_s)));
        if is_sent_again {
            let again = client.sent()[0].clone();
            client.arrive(&again.status(Status::Counted));
            assert_eq!(client.told, [(1, Ok(Status::Counted))]);
        } else {
            assert_eq!(client.told, [(1, Err(Failure::Silent))]);
            assert!(client.sent().is_empty());
        }
    }
}

#[test]
fn a_directory_is_the_answer_to_its_own_question() {
    let mut client = Client::new(SETTINGS);
    let first = client.sent()[0].clone();
    let again = client.wait_for_question();
    // However late it is: over a long path, each request is retransmitted before its answer
    // arrives.
    client.arrive(&first.directory(1));
    assert_eq!(client.session.counters().directories, 1);
    client.arrive(&again.directory(2));
    client.session.refresh();
    client.arrive(&first.directory(2));
    let next = client.wait_for_question();
    let mut of_another_time = next.clone();
    of_another_time.header.timestamp = first.header.timestamp;
    client.arrive(&of_another_time.directory(2));
    client.arrive(&again.directory(2));
    let counters = client.session.counters();
    assert_eq!((counters.directories, counters.ignored), (1, 4));
    client.arrive(&next.directory(2));
    assert_eq!(client.session.counters().directories, 2);
}

#[test]
fn a_directory_that_was_left_is_not_taken_back_soon() {
    let (mut client, _) = Client::connected(SETTINGS);
    client.session.refresh();
    let question = client.wait_for_question();
    client.arrive(&question.directory(2));
    client.session.refresh();
    let question = client.wait_for_question();
    client.arrive(&question.directory(1));
    assert_eq!(client.session.counters().directories, 2);
    // A server that keeps showing this version is really there.
    client.now_us += SETTINGS.deadline_us;
    let question = client.wait_for_question();
    client.arrive(&question.directory(1));
    assert_eq!(client.session.counters().directories, 3);
}

/// A superseded change gets a new number. Answers to the old number no longer concern it.
#[test]
fn a_superseded_change_gets_a_new_number_once() {
    let (mut client, _) = Client::connected(SETTINGS);
    client.ask(INCREMENT, 1);
    let first = client.sent()[0].clone();
    client.arrive(&first.status(Status::Superseded));
    let second = client.sent()[0].clone();
    assert_eq!(second.mutation().1, first.mutation().1 + 1);
    client.arrive(&first.status(Status::Superseded));
    client.arrive(&first.status(Status::Counted));
    assert!(client.sent().is_empty() && client.told.is_empty());
    let third = client.after(SETTINGS.resend_longest_us)[0].clone();
    assert_eq!(third.mutation(), second.mutation());
    client.arrive(&second.status(Status::Counted));
    assert_eq!(client.told, [(1, Ok(Status::Counted))]);
}

/// The second copy is executed and its answer is lost. The refusal of the first copy arrives twice.
#[test]
fn a_refusal_that_arrives_again_says_nothing_of_other_copies() {
    let waits = SETTINGS.resend_longest_us;
    for (again, expected) in [(0, Failure::Silent), (1, Failure::Overloaded)] {
        let (mut client, _) = Client::connected(SETTINGS);
        client.ask(INCREMENT, 1);
        let first = client.sent()[0].status(Status::Overloaded);
        client.arrive(&first);
        while client.told.is_empty() {
            let requests = client.after(waits);
            let requests = requests.iter().filter(|sent| sent.header.count == 1);
            for request in requests {
                let refusal = request.status(Status::Overloaded);
                client.arrive([&first, &refusal][again]);
            }
        }
        assert_eq!(client.told, [(1, Err(expected))]);
    }
}

/// Retransmitting would not help, so the application is told at once.
#[test]
fn a_writer_that_the_server_has_no_room_for_is_told_at_once() {
    let (mut client, _) = Client::connected(SETTINGS);
    client.ask(INCREMENT, 1);
    let first = client.sent()[0].clone();
    client.arrive(&first.status(Status::TooManyWriters));
    assert_eq!(client.told, [(1, Err(Failure::TooManyWriters))]);
    assert!(client.after(SETTINGS.resend_longest_us).is_empty());
}

/// The first copy is executed and its answer is lost; the second is refused. The client does not
/// know whether the change was made, so it must not claim that it was not.
#[test]
fn a_writer_with_another_copy_under_way_is_not_told_that_nothing_was_executed() {
    let (mut client, _) = Client::connected(SETTINGS);
    client.ask(INCREMENT, 1);
    client.sent();
    while client.told.is_empty() {
        let requests = client.after(SETTINGS.resend_longest_us);
        for request in requests.iter().filter(|sent| sent.header.count == 1) {
            client.arrive(&request.status(Status::TooManyWriters));
        }
    }
    assert_eq!(client.told, [(1, Err(Failure::Silent))]);
}

/// The server says this of a request that may have been executed but whose answer did not fit.
#[test]
fn what_is_to_be_asked_alone_may_have_been_executed() {
    let settings = Settings {
        requests_per_datagram: 32,
        ..SETTINGS
    };
    let (mut client, _) = Client::connected(settings);
    client.ask(INCREMENT, 1);
    client.ask(INCREMENT, 2);
    let both = client.sent()[0].clone();
    assert_eq!(both.header.count, 2);
    client.arrive(&both.status(Status::AskAlone));
    let mut sent = client.sent();
    while client.told.is_empty() {
        for request in sent.iter().filter(|sent| sent.header.count == 1) {
            client.arrive(&request.status(Status::Overloaded));
        }
        sent = client.after(SETTINGS.resend_longest_us);
    }
    let told: Vec<_> = client.told.iter().map(|&(_, told)| told).collect();
    assert_eq!(told, [Err(Failure::Silent), Err(Failure::Silent)]);
}

/// Slots and their sequence numbers are reused. An answer to several requests concerns only those
/// in its own datagram.
#[test]
fn an_answer_to_several_is_not_that_of_a_later_request() {
    const USES: usize = 1 << 14;
    let settings = Settings {
        requests_per_datagram: 32,
        deadline_us: 1_000,
        away_after: 0,
        ..SETTINGS
    };
    let (mut client, _) = Client::connected(settings);
    client.ask(What::Get, 1);
    client.ask(What::Get, 2);
    let both = client.sent()[0].clone();
    client.after(settings.deadline_us + settings.resend_first_us);
    assert_eq!(client.told.len(), 2, "they have been given up");
    for _ in 1..USES {
        client.ask(What::Get, 3);
        let request = client.sent()[0].clone();
        client.arrive(&request.status(Status::NotFound));
    }
    client.told.clear();
    client.ask(What::Get, 4);
    let request = client.sent()[0].clone();
    client.arrive(&both.status(Status::NotFound));
    assert_eq!(client.told, []);
    client.arrive(&request.status(Status::NotFound));
    assert_eq!(client.told, [(4, Ok(Status::NotFound))]);
}

/// An attacker who sees no datagram knows neither the sequence numbers of answers nor the
/// timestamps that the client accepts.
#[test]
fn sequence_numbers_are_not_to_be_guessed() {
    let mut beginnings = Vec::new();
    for seed in 0..50 {
        let mut client = Client::new(SETTINGS);
        client.session = Session::new(SETTINGS, seed);
        let question = client.sent()[0].clone();
        client.arrive(&question.directory(1));
        client.ask(What::Get, 1);
        client.ask(What::Get, 2);
        let sent = client.sent();
        let numbers = [&question, &sent[0], &sent[1]].map(|sent| sent.header.sequence);
        // The bits above the slot and the mark.
        beginnings.extend(numbers.map(|number| number >> 18));

        let mut ahead = sent[0].clone();
        ahead.header.timestamp = client.now_us as u32 + 1_000;
        client.arrive(&ahead.status(Status::Found));
        assert_eq!(client.told, []);
    }
    beginnings.sort_unstable();
    beginnings.dedup();
    assert!(beginnings.len() > 140, "of 150: {}", beginnings.len());
}

/// The access mode changes while the server runs. It still knows the client's changes, which would
/// be executed again under another client number.
#[test]
fn a_directory_with_another_access_mode_is_the_same_servers() {
    let (mut client, _) = Client::connected(SETTINGS);
    client.ask(INCREMENT, 1);
    let first = client.sent()[0].clone();
    client.session.refresh();
    let question = client.wait_for_question();
    let mut bytes = question.reply(Kind::DirectoryReply, 1);
    let mut directory = Directory::read(&question.directory(1)[ReplyHeader::BYTES..]).unwrap();
    directory.access = Access::Crcw;
    directory.write(&mut bytes);
    client.arrive(&bytes);
    let again = client.after(SETTINGS.resend_longest_us);
    let again = again.iter().find(|sent| sent.header.count == 1);
    assert_eq!(
        again.expect("it has no answer yet").mutation(),
        first.mutation()
    );
}
