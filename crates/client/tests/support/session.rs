//! A client without socket and clock, and the answers of a server with one core.
#![allow(dead_code, reason = "each test program uses its own part")]

#[path = "directory.rs"]
mod directory;

use glimmer_client::{Ask, Change, Failure, Reply, Session, Settings, Status, What};
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{Kind, Record, ReplyHeader, RequestHeader};

pub const SETTINGS: Settings = Settings {
    resend_first_us: 10_000,
    resend_longest_us: 50_000,
    deadline_us: 1_000_000,
    resends: true,
    requests_per_datagram: 1,
    round_robin: false,
    away_after: 3,
    retry_us: 1_000_000,
    eject: false,
};

pub const INCREMENT: What<'_> = What::Change(Change::Increment { delta: 1 });

/// A datagram that the client sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub header: RequestHeader,
    pub rest: Vec<u8>,
}

impl Sent {
    pub fn reply(&self, kind: Kind, version: u32) -> Vec<u8> {
        ReplyHeader::to(&self.header, kind, self.header.count, version)
            .bytes()
            .to_vec()
    }

    /// A server's answer to this request for the directory, with this version.
    pub fn directory(&self, version: u32) -> Vec<u8> {
        self.directory_of(version, None)
    }

    /// The same of a server that began this many seconds ago, perhaps with items of another one.
    pub fn directory_of(&self, version: u32, begun_s: Option<u8>) -> Vec<u8> {
        assert_eq!(self.header.kind, Kind::Directory);
        let mut reply = self.reply(Kind::DirectoryReply, version);
        let mut directory = directory::of(4000);
        directory.begun_s = begun_s;
        directory.write(&mut reply);
        reply
    }

    /// The same status for each request in the datagram.
    pub fn status(&self, status: Status) -> Vec<u8> {
        let mut reply = self.reply(Kind::Replies, self.header.directory);
        for _ in 0..self.header.count {
            Reply::bare(status).write(&mut reply);
        }
        reply
    }

    pub fn is_question(&self) -> bool {
        self.header.kind == Kind::Directory
    }

    /// The client number and the mutation number.
    pub fn mutation(&self) -> (u64, u32) {
        match Record::read(&self.rest).unwrap().0.action {
            Action::Mutate { mutation, .. } => (self.header.client, mutation),
            other => panic!("{other:?}"),
        }
    }
}

/// A client and the answers it has received.
pub struct Client {
    pub session: Session<u32>,
    pub now_us: u64,
    pub told: Vec<(u32, Result<Status, Failure>)>,
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client {
            session: Session::new(settings, 7),
            now_us: 0,
            told: Vec::new(),
        }
    }

    /// A client that has received the directory of version 1, and the datagram that carried it.
    pub fn connected(settings: Settings) -> (Client, Vec<u8>) {
        let mut client = Client::new(settings);
        let answer = client.sent()[0].directory(1);
        client.arrive(&answer);
        (client, answer)
    }

    pub fn ask(&mut self, what: What<'_>, tag: u32) {
        let ask = Ask {
            key: b"key",
            what,
            shows_cas: false,
        };
        self.session.ask(&ask, tag, self.now_us).unwrap();
    }

    /// Advances the clock and returns what the client sends.
    pub fn after(&mut self, us: u64) -> Vec<Sent> {
        self.now_us += us;
        let told = &mut self.told;
        self.session.expire(self.now_us, &mut |tag, reply| {
            told.push((tag, reply.map(|reply| reply.status)));
        });
        self.sent()
    }

    pub fn sent(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        self.session.transmit(self.now_us, &mut |_, bytes, stride| {
            sent.extend(bytes.chunks(stride).map(|datagram| Sent {
                header: RequestHeader::read(datagram).unwrap(),
                rest: datagram[RequestHeader::BYTES..].to_vec(),
            }));
        });
        sent
    }

    pub fn arrive(&mut self, datagram: &[u8]) {
        self.arrive_at(datagram, self.now_us + 10);
    }

    pub fn arrive_at(&mut self, datagram: &[u8], now_us: u64) {
        self.now_us = now_us;
        let told = &mut self.told;
        self.session.receive(datagram, now_us, &mut |tag, reply| {
            told.push((tag, reply.map(|reply| reply.status)));
        });
    }

    /// Answers whatever is sent until the client asks for the directory; returns that request.
    pub fn wait_for_question(&mut self) -> Sent {
        let is_question = |sent: &Sent| sent.header.kind == Kind::Directory;
        let mut sent = std::iter::repeat_with(|| self.after(5_000));
        sent.find_map(|sent| sent.into_iter().find(is_question))
            .unwrap()
    }
}
