//! A hostile server, whose datagrams are read from any bytes: the body of the fuzz target
//! `native_client`, and of the bounded runs of the test suite. The clients for C and Python drive
//! the same session.

use crate::{Ask, Change, Exptime, Failure, Session, Settings, What};
use glimmer_base::Seed;
use glimmer_base::limits::ITEM_BYTES_MAX;
use glimmer_proto::StoreMode;
use glimmer_proto::native::directory::{Access, Direction, Mode};
use glimmer_proto::native::fragment::{DATA_BYTES, Fragment, digest};
use glimmer_proto::native::{Directory, Kind, Reply, ReplyHeader, RequestHeader, Status};

/// Requests that the server of one input remembers, to answer them.
const REMEMBERED_MAX: usize = 64;

/// Requests of one input at most.
const ASKS_MAX: usize = 200;

/// Timeouts that let an input reach its deadlines soon.
const SETTINGS: Settings = Settings {
    resend_first_us: 1_000,
    resend_longest_us: 8_000,
    deadline_us: 50_000,
    resends: true,
    requests_per_datagram: 4,
    round_robin: false,
    away_after: 0,
    retry_us: 1_000,
    eject: false,
};

/// The bytes of an input, one number after another; zeros at its end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let (&byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        byte
    }

    fn number(&mut self) -> u32 {
        u32::from_le_bytes([(); 4].map(|()| self.byte()))
    }

    /// One of these, mostly the first ones.
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}

/// A client, and what its requests have come to.
struct Rig {
    session: Session<usize>,
    now_us: u64,
    answers: Vec<u32>,
    asked: Vec<RequestHeader>,
    /// The longest value that a server's directories have allowed so far.
    item_bytes_max: u32,
    /// Values for stores that need fragments.
    value: Vec<u8>,
}

impl Rig {
    fn ask(&mut self, input: &mut Input<'_>) {
        if self.answers.len() >= ASKS_MAX {
            return;
        }
        let (kind, key) = (input.byte(), [input.byte() % 4 + 1]);
        let value_bytes = [0, 10, 1_000, 3_000, 100_000][usize::from(kind / 8) % 5];
        let what = match kind % 8 {
            0..4 => What::Get,
            4 => What::Change(Change::Increment { delta: 1 }),
            5 => What::Change(Change::Delete),
            _ => What::Change(Change::Store {
                mode: StoreMode::Set,
                expiry: Exptime::NEVER,
                flags: 0,
                value: &self.value[..value_bytes],
            }),
        };
        let ask = Ask {
            key: &key,
            what,
            shows_cas: kind & 0x80 != 0,
        };
        let tag = self.answers.len();
        if self.session.ask(&ask, tag, self.now_us).is_ok() {
            self.answers.push(0);
        }
    }

    fn transmit(&mut self) {
        let Rig { session, asked, .. } = self;
        session.transmit(self.now_us, &mut |port, bytes, stride| {
            assert!(port != Some(0) && stride > 0);
            for datagram in bytes.chunks(stride) {
                let header = RequestHeader::read(datagram).expect("a client sends requests");
                if asked.len() == REMEMBERED_MAX {
                    asked.remove(0);
                }
                asked.push(header);
            }
        });
    }

    fn expire(&mut self) {
        let Rig {
            session, answers, ..
        } = self;
        session.expire(
            self.now_us,
            &mut |tag: usize, _: Result<&Reply<'_>, Failure>| {
                answers[tag] += 1;
            },
        );
    }

    fn receive(&mut self, datagram: &[u8]) {
        let most = (self.item_bytes_max as usize)
            .min(ITEM_BYTES_MAX)
            .max(datagram.len());
        let Rig {
            session, answers, ..
        } = self;
        session.receive(datagram, self.now_us, &mut |tag, answer| {
            answers[tag] += 1;
            if let Ok(reply) = answer {
                assert!(
                    reply.value.len() <= most,
                    "an item is larger than the limit"
                );
            }
        });
    }

    /// Answers one of the last requests: with the wrong thing, or with a part of the right one.
    fn answer(&mut self, input: &mut Input<'_>) {
        let Some(from_last) = self.asked.len().checked_sub(1) else {
            return;
        };
        let asked = self.asked[from_last - usize::from(input.byte()) % self.asked.len()];
        let kind = input.one_of(&[
            Kind::Replies,
            Kind::FragmentReply,
            Kind::Progress,
            Kind::DirectoryReply,
        ]);
        let version = u32::from(input.byte() % 4);
        let mut bytes = ReplyHeader::to(&asked, kind, asked.count, version)
            .bytes()
            .to_vec();
        match kind {
            Kind::Replies => {
                for _ in 0..1 + input.byte() % 5 {
                    let status = Status::from_byte(input.byte() % 32);
                    let value = input.byte() & 0x1F;
                    Reply {
                        value: input.bytes(value.into()),
                        ..Reply::bare(status.unwrap_or(Status::Found))
                    }
                    .write(&mut bytes);
                }
            }
            Kind::FragmentReply => self.fragment(input, &mut bytes),
            Kind::Progress => {
                let next = match input.byte() {
                    fragments @ 0..0xF0 => u32::from(fragments) * DATA_BYTES as u32,
                    _ => input.number(),
                };
                bytes.extend_from_slice(&next.to_le_bytes());
            }
            _ => self.directory(input, &mut bytes),
        }
        self.receive(&bytes);
    }

    /// A fragment of an honest message, or of one that is not what it says.
    fn fragment(&mut self, input: &mut Input<'_>, out: &mut Vec<u8>) {
        let (lie, length) = (input.byte(), usize::from(input.byte()) * 700);
        let mut message = Vec::new();
        Reply {
            value: &self.value[..length.min(self.value.len())],
            ..Reply::bare(Status::Found)
        }
        .write(&mut message);
        let offset = usize::from(input.byte() % 64) * DATA_BYTES;
        let offset = if offset < message.len() { offset } else { 0 };
        let honest = Fragment::of(&message, digest(&message), offset);
        let message_bytes = match lie & 3 {
            1 => input.number(),
            _ => honest.message_bytes,
        };
        let whole = (message_bytes as usize)
            .saturating_sub(offset)
            .min(DATA_BYTES);
        let data = vec![lie; whole];
        let is_honest = message_bytes == honest.message_bytes;
        Fragment {
            message_bytes,
            offset: honest.offset,
            digest: honest.digest ^ u64::from(lie >> 4),
            data: if is_honest { honest.data } else { &data },
        }
        .write(out);
    }

    fn directory(&mut self, input: &mut Input<'_>, out: &mut Vec<u8>) {
        let item_bytes_max = input.one_of(&[1 << 20, 1 << 10, 0, 1 << 30, u32::MAX]);
        self.item_bytes_max = self.item_bytes_max.max(item_bytes_max);
        Directory {
            token: 1,
            token_s: input.one_of(&[3600, 0, u32::MAX]),
            seed: Seed(u64::from(input.byte() % 3)),
            item_bytes_max,
            partitions: input.one_of(&[16, 1, 4096, 0, u16::MAX]),
            mode: Mode::Cache,
            access: input.one_of(&[Access::Crew, Access::Erew, Access::Crcw]),
            direction: input.one_of(&[Direction::Client, Direction::Server]),
            mutation_window: input.one_of(&[1024, 0, 1, u32::MAX]),
            begun_s: input.byte().checked_sub(1),
            ports: (0..input.byte() % 9)
                .map(u16::from)
                .map(|port| 4000 - port % 7)
                .collect(),
        }
        .write(out);
        if input.byte() == 0xFF {
            // Ports with the invalid number zero.
            let end = out.len();
            out[end.saturating_sub(2)..].fill(0);
        }
    }
}

/// A client of a server that sends what it likes. Each request comes to one end, nothing is larger
/// than the server has said that it may be, and nothing panics.
pub fn hostile_server(data: &[u8]) {
    let mut input = Input(data);
    let mut rig = Rig {
        session: Session::new(SETTINGS, 7),
        now_us: 0,
        answers: Vec::new(),
        asked: Vec::new(),
        item_bytes_max: 0,
        value: vec![b'v'; 200_000],
    };
    while !input.0.is_empty() {
        match input.byte() % 16 {
            0 | 1 => rig.ask(&mut input),
            2 => rig.transmit(),
            3 => {
                rig.now_us += 1 << (input.byte() % 14);
                rig.expire();
                rig.transmit();
            }
            4 => {
                let length = input.byte();
                let datagram = input.bytes(length.into());
                rig.receive(datagram);
            }
            5 => rig.session.refresh(),
            _ => rig.answer(&mut input),
        }
    }
    // Nothing answers any more.
    for _ in 0..2 {
        rig.now_us += SETTINGS.deadline_us;
        rig.expire();
        rig.transmit();
    }
    assert_eq!(rig.session.under_way(), 0, "requests end");
    assert!(rig.answers.iter().all(|&answers| answers == 1), "once each");
}
