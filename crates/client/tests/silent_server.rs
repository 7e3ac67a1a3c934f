//! Servers that do not answer, or answer late: what the blocking client asks of them, and whom it
//! keeps waiting.

#[path = "support/directory.rs"]
mod directory;

use glimmer_client::{
    Client, ConnectError, GetError, Member, Placement, Reply, Settings, Status, StoreError,
    boundary,
};
use glimmer_proto::native::{Record, RequestHeader};
use std::cell::Cell;
use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::{io, thread};

/// No test takes as long as the deadline.
const PATIENT: Settings = Settings {
    resend_first_us: 10_000,
    resend_longest_us: 50_000,
    deadline_us: 60_000_000,
    resends: true,
    requests_per_datagram: 32,
    round_robin: false,
    away_after: 0,
    retry_us: 3600 * 1_000_000,
    eject: false,
};

/// The server does not answer within this deadline.
const IMPATIENT: Settings = Settings {
    deadline_us: 1_000_000,
    ..PATIENT
};

/// A server in which each key is its own value.
struct Server {
    socket: UdpSocket,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    keys: HashSet<Vec<u8>>,
    /// Answers that are not sent, and to whom.
    held: Vec<(Vec<u8>, SocketAddr)>,
}

impl Server {
    /// A server that says where it is. From the first key on that it is asked for, it answers while
    /// this says so.
    fn start(mut answers: impl FnMut() -> bool + Send + 'static) -> Server {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let heard = Arc::<Mutex<Heard>>::default();
        let server = Server {
            socket: socket.try_clone().unwrap(),
            heard: heard.clone(),
        };
        let port = server.address().port();
        thread::spawn(move || {
            let mut datagram = [0; 2048];
            while let Ok((bytes, from)) = socket.recv_from(&mut datagram) {
                let mut heard = heard.lock().unwrap();
                let reply = reply(&datagram[..bytes], port, &mut heard.keys);
                if heard.keys.is_empty() || answers() {
                    socket.send_to(&reply, from).unwrap();
                } else {
                    heard.held.push((reply, from));
                }
            }
        });
        server
    }

    fn silent() -> Server {
        Server::start(|| false)
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap()
    }

    /// Sends an answer that it has held. The client's socket has it when this returns.
    fn answer_late(&self) {
        loop {
            if let Some((reply, to)) = self.heard().held.pop() {
                self.socket.send_to(&reply, to).unwrap();
                return;
            }
            thread::yield_now();
        }
    }

    fn member(&self) -> Member {
        Member {
            host: "127.0.0.1".to_owned(),
            port: self.address().port(),
            native_port: self.address().port(),
            weight: 1,
        }
    }
}

fn reply(datagram: &[u8], port: u16, keys: &mut HashSet<Vec<u8>>) -> Vec<u8> {
    let header = RequestHeader::read(datagram).unwrap();
    let (mut reply, is_complete) = directory::begin_reply(&header, port, 1);
    if is_complete {
        return reply;
    }
    let mut rest = &datagram[RequestHeader::BYTES..];
    for _ in 0..header.count {
        let (record, bytes) = Record::read(rest).unwrap();
        rest = &rest[bytes..];
        keys.insert(record.key.to_vec());
        let found = Reply {
            value: record.key,
            ..Reply::bare(Status::Found)
        };
        found.write(&mut reply);
    }
    reply
}

/// Many more than there is room for on the way to a server.
fn keys() -> Vec<Vec<u8>> {
    let names = (0..5_000).map(|number| format!("key {number}"));
    names.map(String::into_bytes).collect()
}

fn slices(keys: &[Vec<u8>]) -> Vec<&[u8]> {
    keys.iter().map(Vec::as_slice).collect()
}

#[test]
fn a_call_for_many_keys_has_one_deadline() {
    let server = Server::silent();
    let mut client = Client::connect_with(server.address(), IMPATIENT).unwrap();
    let keys = keys();
    let found = client.get_many(&slices(&keys)).unwrap();
    assert_eq!(found.len(), keys.len());
    let is_silent = |found: &Result<_, _>| matches!(found, Err(GetError::Silent(_)));
    assert!(found.iter().all(is_silent));
    // At a deadline, others would have taken the place of those that failed.
    let asked = server.heard().keys.len();
    assert!(asked < keys.len() / 2, "it was asked for {asked} keys");
}

#[test]
fn keys_do_not_wait_for_those_of_another_server() {
    let quick = Server::start(|| true);
    let heard = quick.heard.clone();
    // It answers when the other one has been asked for more keys than are in flight at once.
    let slow = Server::start(move || heard.lock().unwrap().keys.len() > 2_000);
    let members = [quick.member(), slow.member()];
    let mut client = Client::connect_to_all(&members, Placement::Rendezvous, PATIENT).unwrap();
    let keys = keys();
    let found = client.get_many(&slices(&keys)).unwrap();
    for (key, found) in keys.iter().zip(found) {
        assert_eq!(found.unwrap().unwrap().value, *key);
    }
    let shares = [quick, slow].map(|server| server.heard().keys.len());
    assert_eq!(shares.iter().sum::<usize>(), keys.len(), "{shares:?}");
}

#[test]
fn a_late_answer_ends_the_state_of_a_server_that_is_away() {
    let server = Server::silent();
    let settings = Settings {
        away_after: 1,
        ..IMPATIENT
    };
    let mut client = Client::connect_with(server.address(), settings).unwrap();
    assert!(matches!(client.get(b"key"), Err(GetError::Silent(_))));
    for _ in 0..2 {
        assert!(matches!(client.get(b"key"), Err(GetError::Away(_))));
    }
    server.answer_late();
    assert!(matches!(client.get(b"key"), Err(GetError::Silent(_))));
}

thread_local! {
    static IS_INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// What another language does about signals in this thread's calls.
fn while_waiting() -> io::Result<()> {
    match IS_INTERRUPTED.get() {
        true => Err(io::ErrorKind::Interrupted.into()),
        false => Ok(()),
    }
}

fn is_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

/// It can be ended although nothing is to be sent before the deadline.
#[test]
fn an_attempt_to_connect_can_be_ended_while_it_waits() {
    boundary::while_waiting(while_waiting);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let settings = Settings {
        resend_first_us: PATIENT.deadline_us,
        resend_longest_us: PATIENT.deadline_us,
        ..PATIENT
    };
    IS_INTERRUPTED.set(true);
    let connected = Client::connect_with(silent.local_addr().unwrap(), settings);
    assert!(matches!(connected, Err(ConnectError::Socket(error)) if is_end(&error)));
}

/// What ends a call leaves no answers to the next.
#[test]
fn a_call_can_be_ended_while_it_waits() {
    boundary::while_waiting(while_waiting);
    let speaks = Arc::<AtomicBool>::default();
    let is_told = speaks.clone();
    let server = Server::start(move || is_told.load(Ordering::Relaxed));
    let mut client = Client::connect_with(server.address(), PATIENT).unwrap();
    IS_INTERRUPTED.set(true);
    let put = client.put(b"key", b"value", 0, 0);
    assert!(matches!(put, Err(StoreError::Socket(error)) if is_end(&error)));
    let keys = keys();
    let found = client.get_many(&slices(&keys));
    assert!(found.is_err_and(|error| is_end(&error)));
    IS_INTERRUPTED.set(false);
    speaks.store(true, Ordering::Relaxed);
    let held = server.heard().held.len();
    for _ in 0..held {
        server.answer_late();
    }
    for key in [&b"one"[..], b"other"] {
        assert_eq!(client.get(key).unwrap().unwrap().value, key);
    }
}
