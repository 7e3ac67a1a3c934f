//! Workers on threads of their own that are sent the same mutations at the same time, where any
//! worker may write: each mutation is executed once, and every worker answers it alike.

use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;

use crate::native::Server;
use crate::requests::{alone, datagram, header, here, increment, put, token};
use glimmer_proto::native::directory::Access;
use glimmer_proto::native::{Record, Reply, ReplyHeader, RequestHeader, Status};

const WORKERS: usize = 4;
const ROUNDS: u32 = 150;
/// Datagrams that arrive together.
const TOGETHER: u32 = 16;
const KEYS: u32 = 7;

fn key(number: u32) -> Vec<u8> {
    format!("key {}", number % KEYS).into_bytes()
}

/// What a worker answers to each mutation of a round: the counter's number.
fn round(server: &mut Server, token: u64, first: u32, together: usize) -> HashMap<u32, u64> {
    let mut answered = HashMap::new();
    while answered.len() < TOGETHER as usize {
        let open = (first..first + TOGETHER).filter(|number| !answered.contains_key(number));
        let keys: Vec<(u32, Vec<u8>)> = open.map(|number| (number, key(number))).collect();
        let mut asked = HashMap::new();
        let mut sent = Vec::new();
        for some in keys.chunks(together) {
            let records: Vec<Record<'_>> = some
                .iter()
                .map(|(number, key)| increment(key, *number))
                .collect();
            let header = RequestHeader {
                sequence: some[0].0,
                ..header(token, records.len() as u8)
            };
            let numbers: Vec<u32> = some.iter().map(|(number, _)| *number).collect();
            asked.insert(header.sequence, numbers);
            sent.push(alone(datagram(header, &records)));
        }
        for reply in server.answer_here(0, here(), &sent, 0) {
            for bytes in reply.bytes.chunks(reply.segment_bytes) {
                let header = ReplyHeader::read(bytes).unwrap();
                let mut rest = &bytes[ReplyHeader::BYTES..];
                for &number in &asked[&header.sequence] {
                    let (reply, used) = Reply::read(rest).unwrap();
                    rest = &rest[used..];
                    match reply.status {
                        Status::Counted => answered.insert(number, reply.number.unwrap()),
                        // Another worker has a table that the datagram needs.
                        Status::AskAlone => None,
                        other => panic!("mutation {number}: {other:?}"),
                    };
                }
            }
        }
    }
    answered
}

#[test]
fn mutations_that_arrive_at_all_workers_are_executed_once() {
    for together in [1, 3] {
        let mut server = Server::new(Access::Crcw, WORKERS);
        let token = token(&server);
        for number in 0..KEYS {
            let set = datagram(header(token, 1), &[put(&key(number), number, b"0")]);
            server.answer_here(0, here(), &[alone(set)], 0);
        }
        let barrier = Barrier::new(WORKERS);
        let answers: Vec<Vec<HashMap<u32, u64>>> = thread::scope(|scope| {
            let workers: Vec<_> = server
                .split()
                .into_iter()
                .map(|mut server| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        let rounds = (0..ROUNDS).map(|number| {
                            barrier.wait();
                            let first = KEYS + number * TOGETHER;
                            round(&mut server, token, first, together)
                        });
                        rounds.collect()
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .collect()
        });
        let mut counted: HashMap<Vec<u8>, Vec<u64>> = HashMap::new();
        for (number, of_first) in answers[0].iter().enumerate() {
            for others in &answers[1..] {
                assert_eq!(&others[number], of_first, "workers answer differently");
            }
            for (&mutation, &count) in of_first {
                counted.entry(key(mutation)).or_default().push(count);
            }
        }
        for (key, mut counts) in counted {
            counts.sort_unstable();
            let expected: Vec<u64> = (1..=counts.len() as u64).collect();
            assert_eq!(counts, expected, "{key:?}: each increment is counted once");
        }
    }
}
