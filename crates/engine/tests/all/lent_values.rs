//! Large values that the table lends to replies, in every protocol. A reply is the same whether its
//! value is lent or copied, and whatever happens to the item afterwards.

use crate::job;
use glimmer_base::limits::{BATCH_MAX, LENT_BYTES_MIN, LOANS_MAX, REPLY_BYTES_HIGH};
use glimmer_base::{Moment, Seed};
use glimmer_engine::{Done, Engine, Job, LentPart, LentParts, Spread, Status, Uniques, build};
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
const LARGE: usize = LENT_BYTES_MIN + 1_001;
const ITEM_BYTES_MAX: usize = 2 * LENT_BYTES_MIN;

/// What is said for some requests, in one protocol: as bytes, and the number of large values in the
/// replies that are lent.
struct Talk {
    name: &'static str,
    said: Vec<u8>,
    values: usize,
}

fn talks() -> Vec<Talk> {
    let value = |letter: &str, bytes| letter.repeat(bytes);
    let mut stores = String::new();
    for (key, bytes) in [("one", LARGE), ("two", LENT_BYTES_MIN), ("few", 10)] {
        stores += &format!("set {key} 7 0 {bytes}\r\n{}\r\n", value(&key[..1], bytes));
    }
    let below = LENT_BYTES_MIN - 1;
    stores += &format!("set less 0 0 {below}\r\n{}\r\n", value("l", below));
    let talk = |name, said: &str, values| Talk {
        name,
        said: [stores.as_bytes(), said.as_bytes()].concat(),
        values,
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

fn binary(opcode: u8, key: &str) -> Vec<u8> {
    let mut bytes = vec![0; 24];
    (bytes[0], bytes[1], bytes[3], bytes[11]) = (0x80, opcode, key.len() as u8, key.len() as u8);
    bytes.extend_from_slice(key.as_bytes());
    bytes
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

/// Which values are lent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lends {
    None,
    Large,
    Medium,
}

/// Executes what is said, in batches. Returns what the client is sent, and how many values were
/// lent for that.
fn converse(engine: &mut dyn Engine, said: &[u8], lends: Lends) -> (Vec<u8>, usize) {
    let mut parser = Parser::new(Limits {
        item_bytes_max: ITEM_BYTES_MAX,
    });
    let (mut at, mut jobs) = (0, Vec::new());
    while at < said.len() {
        match parser.next(&said[at..]) {
            Step::Request { used, request } => {
                at += used;
                jobs.push(job(SEED, request, 0));
            }
            Step::Admin { used, .. } | Step::Swallowed { used } => at += used,
            other => panic!("{other:?}"),
        }
    }
    let mut outs = [Vec::new()];
    let mut lent = LentParts::default();
    lent.lend_to(u64::from(lends != Lends::None));
    lent.lend_medium(lends == Lends::Medium);
    for batch in jobs.chunks(BATCH_MAX) {
        let mut done = vec![Done::SKIPPED; batch.len()];
        engine.run_with(NOW, batch, &mut outs, &mut lent, &mut done);
        assert!(done.iter().all(|done| done.status == Status::Done));
    }
    let parts: Vec<LentPart> = lent.take(0).collect();
    (whole(&outs[0], &parts), parts.len())
}

/// A reply with its lent parts in their places.
fn whole(buffer: &[u8], parts: &[LentPart]) -> Vec<u8> {
    let (mut whole, mut begin) = (Vec::new(), 0);
    for part in parts {
        // The last bytes of a value that is lent are in the buffer.
        assert!(part.value.bytes() + 8 > LENT_BYTES_MIN);
        whole.extend_from_slice(&buffer[begin..part.at]);
        let append = &mut |value: &[u8]| whole.extend_from_slice(value);
        assert!(part.value.with(0..part.value.bytes(), append));
        begin = part.at;
    }
    whole.extend_from_slice(&buffer[begin..]);
    whole
}

fn check<T: Table>(name: &str, make: impl Fn() -> T) {
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
        let (expected, copied) = converse(engine().as_mut(), &talk.said, Lends::None);
        assert_eq!(copied, 0, "{name}");
        let (replies, lent) = converse(engine().as_mut(), &talk.said, Lends::Large);
        assert!(replies == expected, "{name}");
        assert_eq!(lent, talk.values, "{name}");
        let (replies, more) = converse(engine().as_mut(), &talk.said, Lends::Medium);
        assert!(replies == expected, "{name}");
        let shows_medium = expected.windows(8).any(|part| part == b"llllllll");
        assert_eq!(more > lent, shows_medium, "{name}");
    }
    waits(engine().as_mut());
    is_not_copied(engine().as_mut());
}

fn store(engine: &mut dyn Engine) {
    let value = "v".repeat(LARGE);
    let set = format!("set key 0 0 {LARGE}\r\n{value}\r\n");
    converse(engine, set.as_bytes(), Lends::None);
}

/// Executes these requests. Returns what became of them, and of their values.
fn execute<const N: usize>(
    engine: &mut dyn Engine,
    said: [&[u8]; N],
    copy_max: u32,
    lent: &mut LentParts,
) -> [Status; N] {
    let mut parser = Parser::new(Limits::default());
    let jobs = said.map(|said| match parser.next(said) {
        Step::Request { request, .. } => Job {
            copy_max,
            ..job(SEED, request, 0)
        },
        other => panic!("{other:?}"),
    });
    let (mut done, mut outs) = ([Done::SKIPPED; N], [Vec::new()]);
    engine.run_with(NOW, &jobs, &mut outs, lent, &mut done);
    assert!(outs[0].capacity() < LARGE, "no room was made for values");
    done.map(|done| done.status)
}

/// A client that is lent as much as it may be waits with its next value, and all that follows it.
fn waits(engine: &mut dyn Engine) {
    store(engine);
    let mut lent = LentParts::default();
    lent.lend_to(1);
    let fill = REPLY_BYTES_HIGH / (LARGE - 8);
    for _ in 0..=fill {
        let statuses = execute(engine, [b"get key\r\n"], Job::ANY_SIZE, &mut lent);
        assert_eq!(statuses, [Status::Done]);
    }
    let said: [&[u8]; 2] = [b"get key\r\n", b"get none\r\n"];
    let statuses = execute(engine, said, Job::ANY_SIZE, &mut lent);
    assert_eq!(statuses, [Status::NoRoom, Status::Skipped]);
    assert_eq!(lent.take(0).count(), fill + 1);
}

/// A value that may not be copied is lent, and is not read when there are as many loans as may be.
fn is_not_copied(engine: &mut dyn Engine) {
    store(engine);
    for said in [b"mg key v\r\n", &binary(0x00, "key")[..]] {
        let mut lent = LentParts::default();
        lent.lend_to(1);
        assert_eq!(execute(engine, [said], 1_000, &mut lent), [Status::Done]);
    }
    let mut loans: Vec<LentParts> = Vec::new();
    for nth in 0..=LOANS_MAX {
        let mut lent = LentParts::default();
        lent.lend_to(1);
        let statuses = execute(engine, [b"get key\r\n"], 1_000, &mut lent);
        let bytes = LARGE as u32;
        match nth < LOANS_MAX {
            true => assert_eq!(statuses, [Status::Done]),
            false => assert_eq!(statuses, [Status::Elsewhere { bytes }]),
        }
        loans.push(lent);
    }
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
        check(rule.name, || {
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
    check("store mode", || {
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
    check("memc3", || memc3::Owner::<A>::new(&memc3).unwrap());
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
