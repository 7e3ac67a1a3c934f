//! Thousands of requests at once, from a client whose socket buffers only some hundreds of replies.

#[path = "support/session.rs"]
mod session;

use glimmer_client::{Status, What};
use session::{Client, SETTINGS, Sent};

const REQUESTS: u32 = 60_000;
/// Replies that the socket buffers.
const ROOM: usize = 300;
/// Microseconds between two reads of the socket. An answer takes two such rounds.
const ROUND_US: u64 = 100;

/// Issues all requests, at once or only while none are queued. Returns the number of
/// retransmissions and the duration in microseconds.
fn run(asks_in_turn: bool, room: usize) -> (u64, u64) {
    let (mut client, _) = Client::connected(SETTINGS);
    let mut waiting: Vec<Sent> = Vec::new();
    let began_us = client.now_us;
    let mut asked = 0;
    while asked < REQUESTS || client.session.under_way() > 0 {
        while asked < REQUESTS && !(asks_in_turn && client.session.has_queue()) {
            client.ask(What::Get, asked);
            asked += 1;
        }
        let sent = client.after(ROUND_US);
        for reply in waiting.drain(..) {
            client.arrive_at(&reply.status(Status::NotFound), client.now_us);
        }
        for sent in sent {
            if sent.is_question() {
                client.arrive_at(&sent.directory(1), client.now_us);
            } else if waiting.len() < room {
                waiting.push(sent);
            }
        }
    }
    assert_eq!(client.told.len(), REQUESTS as usize);
    let mut tags: Vec<u32> = client.told.iter().map(|&(tag, _)| tag).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..REQUESTS));
    let is_answered = |&(_, told): &(u32, _)| told == Ok(Status::NotFound);
    assert!(client.told.iter().all(is_answered));
    (client.session.counters().resent, client.now_us - began_us)
}

#[test]
fn little_is_lost_where_little_has_room() {
    for asks_in_turn in [false, true] {
        let (resent, us) = run(asks_in_turn, ROOM);
        assert!(resent < u64::from(REQUESTS) / 50, "{resent} in {us} us");
        let rounds = u64::from(REQUESTS).div_ceil(ROOM as u64);
        assert!(us < 6 * rounds * ROUND_US, "{resent} in {us} us");
    }
}

#[test]
fn nothing_is_lost_where_all_has_room() {
    for asks_in_turn in [false, true] {
        let (resent, us) = run(asks_in_turn, usize::MAX);
        assert_eq!(resent, 0);
        assert!(us < 2 * u64::from(REQUESTS) / 256 * ROUND_US, "{us}");
    }
}
