//! A server that lies: its lengths, its order, its directories, and answers to nobody.

#[path = "support/session.rs"]
mod session;

use glimmer_base::limits::{NATIVE_RESTARTS_MAX, NATIVE_TURNS_MAX};
use glimmer_client::{Change, Exptime, Failure, Reply, Status, What, fuzzing};
use glimmer_proto::StoreMode;
use glimmer_proto::native::fragment::{DATA_BYTES, Fragment, WINDOW, digest};
use glimmer_proto::native::{Directory, Kind, ReplyHeader};
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use session::{Client, INCREMENT, SETTINGS, Sent};

/// Inputs of a hostile server, each of some hundred bytes.
const RUNS: usize = 3_000;

#[test]
fn any_server_leaves_the_client_whole() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    for _ in 0..RUNS {
        let length = rng.random_range(1..800);
        let mut input = vec![0; length];
        rng.fill_bytes(&mut input);
        // A directory first: otherwise most inputs get no further.
        let mut script = vec![
            0, 0, 1, 2, 6, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 2,
        ];
        script.extend_from_slice(&input);
        fuzzing::hostile_server(&script);
        fuzzing::hostile_server(&input);
    }
}

/// A fragment of a reply to this request, of a message of this length.
fn fragment(sent: &Sent, message_bytes: u32, offset: u32, digest: u64) -> Vec<u8> {
    let mut bytes = sent.reply(Kind::FragmentReply, 1);
    let data = vec![b'x'; ((message_bytes - offset) as usize).min(DATA_BYTES)];
    Fragment {
        message_bytes,
        offset,
        digest,
        data: &data,
    }
    .write(&mut bytes);
    bytes
}

/// The directory says 1 MiB.
#[test]
fn a_reply_that_cannot_be_is_refused_at_its_first_fragment() {
    for message_bytes in [u32::MAX, 1 << 30, (1 << 20) + 100] {
        let (mut client, _) = Client::connected(SETTINGS);
        client.ask(What::Get, 1);
        let sent = client.sent()[0].clone();
        client.arrive(&fragment(&sent, message_bytes, 0, 7));
        assert_eq!(
            client.told,
            [(1, Err(Failure::Protocol))],
            "{message_bytes}"
        );
    }
    // The largest item arrives.
    let (mut client, _) = Client::connected(SETTINGS);
    client.ask(What::Get, 1);
    let mut message = Vec::new();
    let value = vec![b'v'; 1 << 20];
    let reply = Reply {
        value: &value,
        ..Reply::bare(Status::Found)
    };
    reply.write(&mut message);
    let digest = digest(&message);
    let mut sent = client.sent()[0].clone();
    for (index, offset) in (0..message.len()).step_by(DATA_BYTES).enumerate() {
        if index > 0 && index % WINDOW == 0 {
            sent = client.sent()[0].clone();
        }
        let mut bytes = sent.reply(Kind::FragmentReply, 1);
        Fragment::of(&message, digest, offset).write(&mut bytes);
        client.arrive(&bytes);
    }
    assert_eq!(client.told, [(1, Ok(Status::Found))]);
}

/// What has arrived of a reply is given up once for each copy of the request, and not whenever a
/// fragment of another message comes.
#[test]
fn another_message_begins_once_for_each_copy() {
    let (mut client, _) = Client::connected(SETTINGS);
    client.ask(What::Get, 1);
    let sent = client.sent()[0].clone();
    let mut message = Vec::new();
    let value = vec![b'v'; 2 * DATA_BYTES];
    let reply = Reply {
        value: &value,
        ..Reply::bare(Status::Found)
    };
    reply.write(&mut message);
    let of = |index: usize| {
        let mut bytes = sent.reply(Kind::FragmentReply, 1);
        Fragment::of(&message, digest(&message), index * DATA_BYTES).write(&mut bytes);
        bytes
    };
    // The value changes after the first fragment: the reply begins again.
    client.arrive(&fragment(&sent, 9_000, 0, 1));
    client.arrive(&of(0));
    // Fragments of other messages are late now, or made up.
    for made_up in 2..500 {
        client.arrive(&fragment(&sent, 9_000, 0, made_up));
    }
    client.arrive(&of(1));
    client.arrive(&of(2));
    assert_eq!(client.told, [(1, Ok(Status::Found))]);
}

/// Each message is complete, and none has the announced digest.
#[test]
fn a_reply_with_a_wrong_digest_is_not_waited_for_again_and_again() {
    let (mut client, _) = Client::connected(SETTINGS);
    client.ask(What::Get, 1);
    let sent = client.sent()[0].clone();
    let mut datagrams = 0;
    while client.told.is_empty() {
        client.arrive(&fragment(&sent, 100, 0, 7));
        datagrams += 1;
    }
    assert_eq!(client.told, [(1, Err(Failure::Protocol))]);
    assert_eq!(datagrams, NATIVE_RESTARTS_MAX + 1);
}

/// Each of these answers has a request sent again at once, and the next of them arrives.
#[test]
fn a_server_that_refuses_each_copy_does_not_set_the_pace() {
    for (what, status) in [
        (INCREMENT, Status::Superseded),
        (What::Get, Status::AskOwner),
    ] {
        let (mut client, _) = Client::connected(SETTINGS);
        client.ask(what, 1);
        let mut copies = 0;
        let mut sent = client.sent();
        while let Some(copy) = sent.first() {
            copies += 1;
            assert!(copies <= u32::from(NATIVE_TURNS_MAX) + 1, "{status:?}");
            client.arrive(&copy.status(status));
            sent = client.sent();
        }
        assert_eq!(copies, u32::from(NATIVE_TURNS_MAX) + 1);
        assert!(client.told.is_empty());
        assert!(
            !client.after(SETTINGS.resend_longest_us).is_empty(),
            "it times out"
        );
    }
}

/// A small datagram says that the server has nothing of an upload, after each window of it.
#[test]
fn an_upload_begins_again_a_bounded_number_of_times() {
    let (mut client, _) = Client::connected(SETTINGS);
    let value = vec![b'v'; 3 * WINDOW * DATA_BYTES];
    let store = What::Change(Change::Store {
        mode: StoreMode::Set,
        expiry: Exptime::NEVER,
        flags: 0,
        value: &value,
    });
    client.ask(store, 1);
    let mut windows = 0;
    let mut sent = client.sent();
    while let Some(copy) = sent.first() {
        windows += 1;
        assert!(windows <= 2 * NATIVE_RESTARTS_MAX + 2, "{windows} windows");
        let next = if windows % 2 == 0 {
            0
        } else {
            WINDOW * DATA_BYTES
        };
        let mut bytes = ReplyHeader::to(&copy.header, Kind::Progress, 1, 1)
            .bytes()
            .to_vec();
        bytes.extend_from_slice(&(next as u32).to_le_bytes());
        client.arrive(&bytes);
        sent = client.sent();
    }
    assert_eq!(windows, 2 * NATIVE_RESTARTS_MAX + 2);
}

/// A directory with the version of the last one, and other cores.
#[test]
fn a_directory_that_changes_under_its_version_is_another_one() {
    let (mut client, old) = Client::connected(SETTINGS);
    let known = Directory::read(&old[ReplyHeader::BYTES..]).unwrap();
    for ports in [vec![4000, 4001, 4002, 4003, 4004], vec![4000]] {
        client.session.refresh();
        let question = client.wait_for_question();
        let mut bytes = question.reply(Kind::DirectoryReply, 1);
        let directory = Directory {
            partitions: 64,
            ports,
            ..known.clone()
        };
        directory.write(&mut bytes);
        client.arrive(&bytes);
        client.ask(INCREMENT, 1);
        assert!(client.sent().iter().any(|sent| sent.header.count == 1));
    }
}

/// Each directory is out of date as soon as it arrives. Each new one has all requests sent again.
#[test]
fn directories_are_asked_for_at_intervals() {
    let (mut client, _) = Client::connected(SETTINGS);
    for tag in 0..20 {
        client.ask(INCREMENT, tag);
    }
    let begun_us = client.now_us;
    let (mut version, mut sent) = (1, client.sent());
    while client.now_us < begun_us + 10 * SETTINGS.resend_first_us {
        for copy in std::mem::take(&mut sent) {
            if copy.is_question() {
                version += 1;
                client.arrive(&copy.directory(version));
            } else {
                client.arrive(&copy.status(Status::NewDirectory));
            }
        }
        sent = client.after(100);
    }
    assert!((2..=11).contains(&version), "{version} directories");
}

#[test]
fn a_directory_without_a_port_is_none() {
    let mut client = Client::new(SETTINGS);
    let question = client.sent()[0].clone();
    let mut bytes = question.directory(1);
    let end = bytes.len();
    bytes[end - 2..].fill(0);
    client.arrive(&bytes);
    assert_eq!(client.session.counters().directories, 0);
}

/// What waits for room in the congestion window was never sent, so no answer can concern it. The
/// server knows its number: each slot's numbers follow one another.
#[test]
fn what_was_never_sent_has_no_answer() {
    const STEP: u32 = 1 << 18;
    for (what, status) in [
        (What::Get, Status::AskOwner),
        (INCREMENT, Status::Superseded),
    ] {
        let (mut client, _) = Client::connected(SETTINGS);
        let fill = |client: &mut Client| {
            while !client.session.has_queue() {
                client.ask(what, 1);
            }
            client.ask(what, 2);
        };
        let answer_all = |client: &mut Client| {
            let mut answered = Vec::new();
            loop {
                let sent = client.sent();
                if sent.is_empty() {
                    return answered;
                }
                for request in sent.iter().filter(|sent| !sent.is_question()) {
                    client.arrive(&request.status(Status::NotFound));
                }
                answered.extend(sent);
            }
        };
        fill(&mut client);
        let earlier = answer_all(&mut client);
        assert!(!client.session.has_queue());
        fill(&mut client);
        for mut request in earlier {
            request.header.sequence = request.header.sequence.wrapping_add(STEP);
            request.header.timestamp = client.now_us as u32;
            client.arrive(&request.status(status));
        }
        answer_all(&mut client);
        assert_eq!(client.session.under_way(), 0);
        assert!(!client.session.has_queue());
        client.told.clear();
        client.ask(what, 3);
        answer_all(&mut client);
        assert_eq!(client.told, [(3, Ok(Status::NotFound))]);
    }
}
