//! Large values leave through an outlet, in every table and protocol: where the worker alone may
//! write, and where the table lends them. What a client is sent is the same everywhere.

use glimmer_base::limits::{BATCH_MAX, IN_PLACE_BYTES_MIN};
use glimmer_base::{Moment, Seed};
use glimmer_engine::{Done, Engine, Job, Offer, Outlet, Spread, Status, Uniques, build};
use glimmer_proto::{Limits, Parser, Step};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::RULES;
use glimmer_store::memc3::{self, Memc3Config};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_store::table::Table;

const SEED: Seed = Seed(5);
const NOW: Moment = Moment {
    ms: 10_000,
    epoch_unix_ms: 1_700_000_000_000,
};
const LARGE: usize = IN_PLACE_BYTES_MIN + 1_001;
const ITEM_BYTES_MAX: usize = 2 * IN_PLACE_BYTES_MIN;

/// Notes what it is given, and has replies wait after a number of values.
struct Recorder {
    sent: Vec<u8>,
    values: usize,
    values_max: usize,
}

impl Recorder {
    fn new(values_max: usize) -> Recorder {
        Recorder {
            sent: Vec::new(),
            values: 0,
            values_max,
        }
    }
}

impl Outlet for Recorder {
    fn offer(&self, out: u32) -> Offer {
        match out {
            0 if self.values < self.values_max => Offer::Send,
            0 => Offer::Wait,
            _ => Offer::Copy,
        }
    }

    fn send(&mut self, out: u32, replies: &mut Vec<u8>, at: usize, value: &[u8]) {
        assert_eq!(out, 0);
        // The last bytes of a value that is lent are in the reply buffer.
        assert!(value.len() + 8 > IN_PLACE_BYTES_MIN);
        for part in [&replies[..at], value, &replies[at..]] {
            self.sent.extend_from_slice(part);
        }
        replies.clear();
        self.values += 1;
    }
}

/// What is said for some requests, in one protocol: as bytes, and the number of large values in the
/// replies that are sent from where they lie.
struct Talk {
    name: &'static str,
    said: Vec<u8>,
    values: usize,
}

fn talks() -> Vec<Talk> {
    let value = |letter: &str, bytes| letter.repeat(bytes);
    let mut stores = String::new();
    for (key, bytes) in [("one", LARGE), ("two", IN_PLACE_BYTES_MIN), ("few", 10)] {
        stores += &format!("set {key} 7 0 {bytes}\r\n{}\r\n", value(&key[..1], bytes));
    }
    let below = IN_PLACE_BYTES_MIN - 1;
    stores += &format!("set less 0 0 {below}\r\n{}\r\n", value("l", below));
    let talk = |name, said: &str, values| Talk {
        name,
        said: [stores.as_bytes(), said.as_bytes()].concat(),
        values,
    };
    let binary = |opcode: u8, key: &str| {
        let mut bytes = vec![0; 24];
        (bytes[0], bytes[1], bytes[3], bytes[11]) =
            (0x80, opcode, key.len() as u8, key.len() as u8);
        bytes.extend_from_slice(key.as_bytes());
        bytes
    };
    let resp_set = format!(
        "*3\r\n$3\r\nSET\r\n$3\r\none\r\n${LARGE}\r\n{}\r\n",
        value("o", LARGE)
    );
    vec![
        talk(
            "get",
            "get few\r\nget one\r\nget few\r\nget two\r\nget none\r\n",
            2,
        ),
        talk("gets", "gets one\r\ngets less\r\n", 1),
        talk("several keys", "get few one none two one\r\nget few\r\n", 3),
        talk(
            "meta",
            "mg few v\r\nmg one v k f c O12\r\nmg two s\r\nmg one v\r\nmn\r\n",
            2,
        ),
        talk(
            "meta that changes",
            "mg one v T60\r\nmg one v t\r\nmg two v h l\r\n",
            1,
        ),
        talk(
            "changed between",
            "get one\r\nset one 0 0 1\r\nx\r\nget one\r\ndelete two\r\nget two\r\n",
            1,
        ),
        talk(
            "appended between",
            "get one\r\nappend one 0 0 3\r\nend\r\nget one\r\n",
            2,
        ),
        talk("expired", "touch one -1\r\nget one\r\nget two\r\n", 1),
        Talk {
            name: "binary",
            said: [
                &binary_set("one", LARGE)[..],
                &binary(0x00, "one"),
                &binary(0x0C, "one"),
                &binary(0x09, "none"),
                &binary(0x00, "one"),
            ]
            .concat(),
            values: 3,
        },
        Talk {
            name: "RESP",
            said: [
                resp_set.as_str(),
                "*2\r\n$3\r\nGET\r\n$3\r\none\r\n",
                "*4\r\n$4\r\nMGET\r\n$3\r\none\r\n$4\r\nnone\r\n$3\r\none\r\n",
            ]
            .concat()
            .into_bytes(),
            values: 3,
        },
    ]
}

fn binary_set(key: &str, value_bytes: usize) -> Vec<u8> {
    let body = 8 + key.len() + value_bytes;
    let mut bytes = vec![0; 32];
    (bytes[0], bytes[1], bytes[3], bytes[4]) = (0x80, 0x01, key.len() as u8, 8);
    bytes[8..12].copy_from_slice(&(body as u32).to_be_bytes());
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend(std::iter::repeat_n(b'b', value_bytes));
    bytes
}

/// Executes what is said, in batches, and passes on what an outlet has left for later. Returns what
/// the client is sent.
fn converse(engine: &mut dyn Engine, said: &[u8], outlet: &mut Recorder, out: u32) -> Vec<u8> {
    let mut parser = Parser::new(Limits {
        item_bytes_max: ITEM_BYTES_MAX,
    });
    let (mut at, mut jobs) = (0, Vec::new());
    while at < said.len() {
        match parser.next(&said[at..]) {
            Step::Request { used, request } => {
                at += used;
                jobs.push(Job {
                    keyhash: request.with_key(|key| SEED.keyhash(key)),
                    request,
                    out,
                    copy_max: Job::ANY_SIZE,
                    client: 0,
                });
            }
            Step::Admin { used, .. } | Step::Swallowed { used } => at += used,
            other => panic!("{other:?}"),
        }
    }
    let mut outs = [Vec::new(), Vec::new()];
    for batch in jobs.chunks(BATCH_MAX) {
        let mut done = vec![Done::SKIPPED; batch.len()];
        engine.run_with(NOW, batch, &mut outs, outlet, &mut done);
        assert!(done.iter().all(|done| done.status == Status::Done));
    }
    [&outlet.sent[..], &outs[0], &outs[1]].concat()
}

/// `lends` says whether the table lends values beside other writers.
fn check<T: Table>(name: &str, lends: bool, make: impl Fn() -> T) {
    let spread = Spread {
        partitions: 1,
        workers: 1,
        numa_nodes: Vec::new(),
    };
    let engine = || {
        build::<T, ()>(&spread, Uniques::Kept, |_| Ok(make()))
            .unwrap()
            .remove(0)
    };
    for talk in talks() {
        let name = format!("{name}, {}", talk.name);
        let [mut copied, mut sent] = [(); 2].map(|()| Recorder::new(usize::MAX));
        let expected = converse(engine().as_mut(), &talk.said, &mut copied, 1);
        assert_eq!(copied.values, 0, "{name}");
        let replies = converse(engine().as_mut(), &talk.said, &mut sent, 0);
        assert!(replies == expected, "{name}");
        let leaves = lends || !T::Access::SHARED_WRITES;
        let values = if leaves { talk.values } else { 0 };
        assert_eq!(sent.values, values, "{name}");
    }
    if lends || !T::Access::SHARED_WRITES {
        waits(engine().as_mut());
    }
}

/// A value that has to wait is offered again, with all that follows it.
fn waits(engine: &mut dyn Engine) {
    let value = "v".repeat(LARGE);
    let set = format!("set key 0 0 {LARGE}\r\n{value}\r\n");
    converse(engine, set.as_bytes(), &mut Recorder::new(0), 0);
    let said: [&[u8]; 3] = [b"get key\r\n", b"get key\r\n", b"get none\r\n"];
    let mut parser = Parser::new(Limits::default());
    let jobs = said.map(|said| match parser.next(said) {
        Step::Request { request, .. } => Job {
            keyhash: request.with_key(|key| SEED.keyhash(key)),
            request,
            out: 0,
            copy_max: Job::ANY_SIZE,
            client: 0,
        },
        other => panic!("{other:?}"),
    });
    let (mut outlet, mut outs) = (Recorder::new(1), [Vec::new()]);
    let mut done = [Done::SKIPPED; 3];
    engine.run_with(NOW, &jobs, &mut outs, &mut outlet, &mut done);
    let statuses = done.map(|done| done.status);
    assert_eq!(statuses, [Status::Done, Status::NoRoom, Status::Skipped]);
    assert_eq!((outlet.values, outs[0].len()), (1, 0));
}

fn in_every_table<A: Access>() {
    let pages = PagePolicy::Small;
    let mica = PartitionConfig {
        log_bytes: 1 << 20,
        main_buckets: 64,
        spare_buckets: 8,
        item_bytes_max: ITEM_BYTES_MAX,
        pages,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    for rule in RULES {
        check(rule.name, true, || {
            Owner::<A>::new(&mica, rule.with_threshold(0.3)).unwrap()
        });
    }
    let store = StoreConfig {
        bytes: 1 << 20,
        item_bytes_max: ITEM_BYTES_MAX,
        pages,
        hasher: SEED.into(),
        ..StoreConfig::default()
    };
    check("store mode", false, || {
        mica_store::Owner::<A>::new(&store).unwrap()
    });
    let memc3 = Memc3Config {
        memory_bytes: 1 << 20,
        page_bytes: 64 << 10,
        item_bytes_max: ITEM_BYTES_MAX,
        pages,
        hasher: SEED.into(),
        ..Memc3Config::default()
    };
    check("memc3", false, || memc3::Owner::<A>::new(&memc3).unwrap());
}

#[test]
fn under_erew() {
    in_every_table::<Erew>();
}

#[test]
fn under_crew() {
    in_every_table::<Crew>();
}

#[test]
fn under_crcw() {
    in_every_table::<Crcw>();
}
