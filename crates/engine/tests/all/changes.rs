//! Every verb of every protocol passes the one place where items change: an observer sees each
//! request once before and once after, with the right key and outcome. It is told of reads too, and
//! a read is no change.

use glimmer_base::{Keyhash, Moment, Seed};
use glimmer_engine::{
    ChangeObserver, Done, Engine, FlushClock, Job, Reason, Removal, RemovalObserver, Spread,
    Status, Tap, Told, Uniques, build_observed,
};
use glimmer_proto::binary::opcode;
use glimmer_proto::outcome::OutcomeKind;
use glimmer_proto::{
    Create, Form, Limits, Parser, Refusal, Request, Step, StoreMode, Verb, native,
};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::S3_FIFO;
use glimmer_store::heap::Item;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use std::sync::{Arc, Mutex};

const SEED: Seed = Seed(5);
/// A key whose changes the observer need not be told of.
const IGNORED: &[u8] = b"ignored";

#[derive(Clone, Debug, PartialEq)]
enum Event {
    Before(Keyhash, Vec<u8>),
    /// Key, outcome, and whether the key has an item now.
    After(Keyhash, Vec<u8>, OutcomeKind, bool),
    /// Key, and bytes of the value.
    Read(Vec<u8>, Option<usize>),
    BeforeFlush,
    /// When the next flush is due.
    AfterFlush(Option<u64>),
    Flushed(u64),
}

#[derive(Default)]
struct Observer(Mutex<Vec<Event>>);

impl Observer {
    fn note(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }

    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl RemovalObserver for Observer {
    fn removed(&self, removal: &Removal<'_>) {
        // A request may come upon an item that has expired; nothing is meant to be evicted.
        assert_eq!(removal.reason, Reason::Expired);
    }

    fn flushed(&self, items: u64) {
        if items > 0 {
            self.note(Event::Flushed(items));
        }
    }
}

impl ChangeObserver for Observer {
    const SEES_REQUESTS: bool = true;

    /// Whether the key had an item.
    type Before = bool;

    fn ignores(&self, keyhash: Keyhash) -> bool {
        keyhash == SEED.keyhash(IGNORED)
    }

    fn before<'i>(
        &self,
        _now: Moment,
        _epoch: u64,
        job: &Job<'_>,
        find: impl FnOnce() -> Option<Item<'i>>,
    ) -> bool {
        let key = job.request.key;
        let item = find();
        assert!(item.is_none_or(|item| item.key_is(key)));
        self.note(Event::Before(job.keyhash, key.to_vec()));
        item.is_some()
    }

    fn after<'i>(
        &self,
        _now: Moment,
        job: &Job<'_>,
        was_there: bool,
        outcome: OutcomeKind,
        find: impl FnOnce() -> Option<Item<'i>>,
    ) {
        let key = job.request.key;
        let item = find();
        assert!(item.is_none_or(|item| item.key_is(key)));
        if matches!(
            outcome,
            OutcomeKind::NotFound | OutcomeKind::Deleted | OutcomeKind::Exists
        ) {
            assert_eq!(
                was_there,
                outcome != OutcomeKind::NotFound,
                "{:?}",
                job.request
            );
        }
        self.note(Event::After(
            job.keyhash,
            key.to_vec(),
            outcome,
            item.is_some(),
        ));
    }

    fn read(&self, job: &Job<'_>, value_bytes: Option<usize>) {
        self.note(Event::Read(job.request.key.to_vec(), value_bytes));
    }

    fn flush(&self, flush: impl FnOnce() -> Option<u64>) {
        self.note(Event::BeforeFlush);
        let pending_ms = flush();
        self.note(Event::AfterFlush(pending_ms));
    }
}

struct Server {
    engine: Box<dyn Engine>,
    tap: Arc<Tap<Observer>>,
    parser: Parser,
    now: Moment,
    /// The CAS unique that a reply has shown last.
    unique: u64,
}

impl Server {
    fn new<A: Access>() -> Server {
        Server::with_flushes::<A>(FlushClock::default())
    }

    fn with_flushes<A: Access>(flushes: FlushClock) -> Server {
        let spread = Spread {
            partitions: 2,
            workers: 1,
            numa_nodes: Vec::new(),
        };
        let config = PartitionConfig {
            log_bytes: 4 << 20,
            main_buckets: 256,
            spare_buckets: 16,
            item_bytes_max: 4_000,
            pages: PagePolicy::Small,
            hasher: SEED.into(),
            ..PartitionConfig::default()
        };
        let tap = Arc::new(Tap::new(Observer::default()));
        tap.tell(Told::All);
        let mut engines = build_observed(&spread, Uniques::Kept, &tap, flushes, |_| {
            Owner::<A>::new(&config, S3_FIFO)
        })
        .unwrap();
        Server {
            engine: engines.remove(0),
            tap,
            parser: Parser::new(Limits::default()),
            now: Moment {
                ms: 10_000,
                epoch_unix_ms: 1_700_000_000_000,
            },
            unique: 0,
        }
    }

    fn run(&mut self, request: Request<'_>) -> Vec<u8> {
        let keyhash = request.with_key(|key| SEED.keyhash(key));
        let job = Job {
            keyhash,
            request,
            out: 0,
            size_max: Job::ANY_SIZE,
            copy_max: Job::ANY_SIZE,
            client: 0,
        };
        let mut outs = [Vec::new()];
        let mut done = [Done::SKIPPED];
        self.engine.run(self.now, &[job], &mut outs, &mut done);
        assert_eq!(done[0].status, Status::Done);
        std::mem::take(&mut outs[0])
    }

    /// Executes what these bytes ask for. Returns the last reply.
    fn say(&mut self, mut input: &[u8]) -> Vec<u8> {
        let mut reply = Vec::new();
        while !input.is_empty() {
            let used = match self.parser.next(input) {
                Step::Request { used, request } => {
                    reply = self.run(request);
                    used
                }
                Step::Swallowed { used } => used,
                other => panic!("{other:?} to {}", input.escape_ascii()),
            };
            input = &input[used..];
        }
        reply
    }

    /// Takes what was seen, which must be one request for the key.
    #[track_caller]
    fn saw(&mut self, key: &[u8], outcome: OutcomeKind, is_there: bool, said: &str) {
        let keyhash = SEED.keyhash(key);
        let expected = [
            Event::Before(keyhash, key.to_vec()),
            Event::After(keyhash, key.to_vec(), outcome, is_there),
        ];
        let mut seen = self.tap.observer().take();
        // The `mg` that wins the right to recache a stale item is a read as well as a change.
        seen.retain(|event| !matches!(event, Event::Read(..)));
        assert_eq!(seen, expected, "{said}");
    }

    /// Takes what was seen, which must not contain a change.
    #[track_caller]
    fn saw_no_change(&mut self, said: &str) {
        let mut seen = self.tap.observer().take();
        seen.retain(|event| !matches!(event, Event::Read(..)));
        assert_eq!(seen, [], "{said}");
    }

    #[track_caller]
    fn check(&mut self, key: &[u8], said: &str, outcome: Option<(OutcomeKind, bool)>) {
        let said = said.replace("UNIQUE", &self.unique.to_string());
        let reply = self.say(said.as_bytes());
        match outcome {
            Some((outcome, is_there)) => self.saw(key, outcome, is_there, &said),
            None => self.saw_no_change(&said),
        }
        if said.starts_with("gets") {
            let head = reply.split(|&byte| byte == b'\r').next().unwrap();
            let unique = head.rsplit(|&byte| byte == b' ').next().unwrap();
            self.unique = String::from_utf8_lossy(unique).parse().unwrap();
        }
    }
}

fn servers() -> [Server; 3] {
    [
        Server::new::<Erew>(),
        Server::new::<Crew>(),
        Server::new::<Crcw>(),
    ]
}

#[test]
fn the_classic_commands() {
    use OutcomeKind::{
        Counted, Deleted, Exists, Miss, NotANumber, NotFound, NotStored, Stored, TooLarge, Touched,
        Value,
    };
    let long = "x".repeat(5_000);
    let too_large = format!("set k 0 0 5000\r\n{long}\r\n");
    let refused = format!("set k 0 0 2000000\r\n{}\r\n", "x".repeat(2_000_000));
    let rows = [
        ("set k 0 0 1\r\n1\r\n", Some((Stored, true))),
        ("get k\r\n", None),
        ("gets k\r\n", None),
        ("get other\r\n", None),
        ("cas k 0 0 1 UNIQUE\r\n2\r\n", Some((Stored, true))),
        ("cas k 0 0 1 UNIQUE\r\n3\r\n", Some((Exists, true))),
        ("add k 0 0 1\r\n1\r\n", Some((NotStored, true))),
        ("replace k 0 0 1\r\n4\r\n", Some((Stored, true))),
        ("append k 0 0 1\r\n2\r\n", Some((Stored, true))),
        ("prepend k 0 0 1 noreply\r\n1\r\n", Some((Stored, true))),
        ("incr k 1\r\n", Some((Counted, true))),
        ("decr k 1 noreply\r\n", Some((Counted, true))),
        ("touch k 100\r\n", Some((Touched, true))),
        ("gat 100 k\r\n", Some((Value, true))),
        ("gats -1 k\r\n", Some((Value, false))),
        ("gat 100 k\r\n", Some((Miss, false))),
        ("touch k 100\r\n", Some((NotFound, false))),
        ("incr k 1\r\n", Some((NotFound, false))),
        ("append k 0 0 1\r\n2\r\n", Some((NotStored, false))),
        ("cas k 0 0 1 9\r\n2\r\n", Some((NotFound, false))),
        ("delete k\r\n", Some((NotFound, false))),
        ("add k 0 0 1\r\na\r\n", Some((Stored, true))),
        ("incr k 1\r\n", Some((NotANumber, true))),
        (&too_large, Some((TooLarge, false))),
        ("set k 0 0 1\r\na\r\n", Some((Stored, true))),
        (&refused, Some((TooLarge, false))),
        ("set k 0 0 1\r\na\r\n", Some((Stored, true))),
        ("delete k\r\n", Some((Deleted, false))),
    ];
    for mut server in servers() {
        for (said, outcome) in rows {
            server.check(b"k", said, outcome);
        }
    }
}

#[test]
fn the_meta_commands() {
    use OutcomeKind::{Counted, Deleted, Exists, Miss, NotFound, NotStored, Stored, Value};
    let rows = [
        ("mg k v\r\n", None),
        ("mg k v T30\r\n", Some((Miss, false))),
        ("mg k v N30\r\n", Some((Value, true))),
        ("mg k v\r\n", None),
        ("mg k v T60 h l\r\n", Some((Value, true))),
        ("mg k R90\r\n", Some((Value, true))),
        ("ms k 1 ME\r\n1\r\n", Some((NotStored, true))),
        ("ms k 1\r\n1\r\n", Some((Stored, true))),
        ("ms k 1 MA\r\n2\r\n", Some((Stored, true))),
        ("ms k 1 MP q\r\n1\r\n", Some((Stored, true))),
        ("ms k 1 MR C1\r\n1\r\n", Some((Exists, true))),
        ("ma k\r\n", Some((Counted, true))),
        ("ma k MD D2 q\r\n", Some((Counted, true))),
        ("me k\r\n", None),
        ("md k I T30\r\n", Some((Deleted, true))),
        // It is stale: the first client that reads it wins the right to recache it.
        ("mg k v\r\n", Some((Value, true))),
        ("mg k v\r\n", None),
        ("md k x\r\n", Some((Deleted, true))),
        ("md k C1\r\n", Some((Exists, true))),
        ("md k q\r\n", Some((Deleted, false))),
        ("md k\r\n", Some((NotFound, false))),
        ("ma k\r\n", Some((NotFound, false))),
        ("ma k N0 J5\r\n", Some((Counted, true))),
    ];
    for mut server in servers() {
        for (said, outcome) in rows {
            server.check(b"k", said, outcome);
        }
        server.check(b"foo", "ms Zm9v 1 b\r\n1\r\n", Some((Stored, true)));
    }
}

#[test]
fn the_binary_protocol() {
    use OutcomeKind::{
        Counted, Deleted, Exists, Miss, NotFound, NotStored, Stored, Touched, Value,
    };
    let stored = [0; 8];
    let number = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0];
    type Row<'a> = (u8, u64, &'a [u8], &'a [u8], Option<(OutcomeKind, bool)>);
    let rows: &[Row<'_>] = &[
        (opcode::REPLACE, 0, &stored, b"1", Some((NotStored, false))),
        (opcode::ADDQ, 0, &stored, b"1", Some((Stored, true))),
        (opcode::ADD, 0, &stored, b"1", Some((NotStored, true))),
        (opcode::SET, 0, &stored, b"1", Some((Stored, true))),
        (opcode::SETQ, 0, &stored, b"1", Some((Stored, true))),
        (opcode::SET, 1 << 60, &stored, b"1", Some((Exists, true))),
        (opcode::REPLACEQ, 0, &stored, b"1", Some((Stored, true))),
        (opcode::APPEND, 0, &[], b"1", Some((Stored, true))),
        (opcode::APPENDQ, 1 << 60, &[], b"1", Some((Exists, true))),
        (opcode::PREPEND, 0, &[], b"1", Some((Stored, true))),
        (opcode::PREPENDQ, 0, &[], b"1", Some((Stored, true))),
        (opcode::INCREMENT, 0, &number, b"", Some((Counted, true))),
        (opcode::DECREMENTQ, 0, &number, b"", Some((Counted, true))),
        (opcode::GET, 0, &[], b"", None),
        (opcode::GETKQ, 0, &[], b"", None),
        (opcode::TOUCH, 0, &[0, 0, 0, 9], b"", Some((Touched, true))),
        (opcode::GAT, 0, &[0, 0, 0, 9], b"", Some((Value, true))),
        (opcode::GATKQ, 0, &[0, 0, 0, 9], b"", Some((Value, true))),
        (opcode::DELETE, 1 << 60, &[], b"", Some((Exists, true))),
        (opcode::DELETEQ, 0, &[], b"", Some((Deleted, false))),
        (opcode::DELETE, 0, &[], b"", Some((NotFound, false))),
        (opcode::GATQ, 0, &[0, 0, 0, 9], b"", Some((Miss, false))),
        (
            opcode::TOUCH,
            0,
            &[0, 0, 0, 9],
            b"",
            Some((NotFound, false)),
        ),
        (opcode::INCREMENTQ, 0, &number, b"", Some((Counted, true))),
        (opcode::DECREMENT, 0, &number, b"", Some((Counted, true))),
    ];
    for mut server in servers() {
        for &(code, cas, extras, value, outcome) in rows {
            let body = extras.len() + 1 + value.len();
            let mut packet = vec![0x80, code, 0, 1, extras.len() as u8, 0, 0, 0];
            packet.extend_from_slice(&(body as u32).to_be_bytes());
            packet.extend_from_slice(b"opaq");
            packet.extend_from_slice(&cas.to_be_bytes());
            packet.extend_from_slice(extras);
            packet.push(b'k');
            packet.extend_from_slice(value);
            server.say(&packet);
            match outcome {
                Some((outcome, is_there)) => {
                    server.saw(b"k", outcome, is_there, &format!("opcode {code:#x}"));
                }
                None => server.saw_no_change(&format!("opcode {code:#x}")),
            }
        }
    }
}

#[test]
fn the_native_protocol() {
    use OutcomeKind::{Counted, Deleted, Exists, NotFound, NotStored, Stored, TooLarge, Touched};
    let store = |mode| Verb::Store {
        mode,
        flags: 0,
        exptime: 0,
        value: b"1",
    };
    let refused = Verb::Refused {
        reason: Refusal::TooLarge,
    };
    let count = Verb::Count {
        down: false,
        delta: 1,
        cas: 0,
        create: Some(Create {
            initial: 7,
            exptime: 0,
        }),
    };
    let rows = [
        (store(StoreMode::Replace), Some((NotStored, false))),
        (store(StoreMode::Set), Some((Stored, true))),
        (store(StoreMode::Add), Some((NotStored, true))),
        (store(StoreMode::Cas(1 << 60)), Some((Exists, true))),
        (store(StoreMode::Append), Some((Stored, true))),
        (store(StoreMode::Prepend), Some((Stored, true))),
        (Verb::Get, None),
        (Verb::Look, None),
        (Verb::Increment { delta: 1 }, Some((Counted, true))),
        (Verb::Decrement { delta: 1 }, Some((Counted, true))),
        (Verb::Touch { exptime: 9 }, Some((Touched, true))),
        (Verb::DeleteIf { cas: 1 << 60 }, Some((Exists, true))),
        (Verb::Delete, Some((Deleted, false))),
        (Verb::Delete, Some((NotFound, false))),
        (count, Some((Counted, true))),
        (refused, Some((TooLarge, false))),
    ];
    let form = Form::Native(native::Form {
        shows_cas: true,
        extent: native::Extent::ALL,
    });
    for mut server in servers() {
        for (verb, outcome) in rows {
            let key = b"k";
            server.run(Request { key, verb, form });
            match outcome {
                Some((outcome, is_there)) => {
                    server.saw(key, outcome, is_there, &format!("{verb:?}"));
                }
                None => server.saw_no_change(&format!("{verb:?}")),
            }
        }
    }
}

#[test]
fn flushes() {
    for mut server in servers() {
        server.check(
            b"k",
            "set k 0 0 1\r\n1\r\n",
            Some((OutcomeKind::Stored, true)),
        );
        server.engine.flush(server.now, 0);
        let seen = server.tap.observer().take();
        assert_eq!(seen, [Event::BeforeFlush, Event::AfterFlush(None)]);
        server.say(b"delete k\r\n");
        let seen = server.tap.observer().take();
        assert_eq!((seen.len(), &seen[0]), (3, &Event::Flushed(1)));
    }
}

#[test]
fn reads() {
    for mut server in servers() {
        server.say(b"set foo 0 0 3\r\nbar\r\n");
        server.tap.observer().take();
        server.say(b"get foo other\r\ngat 0 foo\r\nmg Zm9v b v\r\nme foo\r\n");
        let mut seen = server.tap.observer().take();
        seen.retain(|event| matches!(event, Event::Read(..)));
        let read = |key: &[u8], bytes| Event::Read(key.to_vec(), bytes);
        let expected = [(&b"foo"[..], Some(3)), (b"other", None), (b"foo", Some(3))];
        assert_eq!(seen, expected.map(|(key, bytes)| read(key, bytes)));
    }
}

/// Changes of a key that the observer ignores are carried out, and it is not told of them.
#[test]
fn an_ignored_key() {
    let too_large = format!("set ignored 0 0 5000\r\n{}\r\n", "x".repeat(5_000));
    let rows = [
        ("set ignored 0 0 1\r\n1\r\n", "STORED\r\n"),
        ("set ignored 0 0 1\r\n2\r\n", "STORED\r\n"),
        ("incr ignored 1\r\n", "3\r\n"),
        ("set ignored 0 0 4\r\nlong\r\n", "STORED\r\n"),
        ("ms ignored 1\r\n5\r\n", "HD\r\n"),
        ("get ignored\r\n", "VALUE ignored 0 1\r\n5\r\nEND\r\n"),
        (&too_large, "SERVER_ERROR object too large for cache\r\n"),
        ("get ignored\r\n", "END\r\n"),
        ("set ignored 0 0 1\r\n1\r\n", "STORED\r\n"),
        ("delete ignored\r\n", "DELETED\r\n"),
    ];
    for mut server in servers() {
        for told in [Told::Changes, Told::All] {
            server.tap.tell(told);
            for (said, reply) in rows {
                let replied = server.say(said.as_bytes());
                assert_eq!(String::from_utf8_lossy(&replied), reply, "{said}");
                server.saw_no_change(said);
            }
            let other = "set k 0 0 1\r\n1\r\n";
            server.check(b"k", other, Some((OutcomeKind::Stored, true)));
        }
    }
}

/// A closed tap hears nothing.
#[test]
fn a_closed_tap() {
    for mut server in servers() {
        server.tap.tell(Told::Nothing);
        server.check(b"k", "set k 0 0 1\r\n1\r\n", None);
        server.engine.flush(server.now, 0);
        server.say(b"get k\r\ndelete k\r\n");
        assert_eq!(server.tap.observer().take(), []);
    }
}

/// A memory file keeps a flush that was pending when the process before ended.
#[test]
fn a_flush_that_is_pending_from_the_start_is_told() {
    let flushes = FlushClock::default();
    let at_ms = flushes.set(Moment::default(), 5_000);
    let server = Server::with_flushes::<Erew>(flushes);
    let seen = server.tap.observer().take();
    assert_eq!(seen, [Event::BeforeFlush, Event::AfterFlush(at_ms)]);
    assert_eq!(Server::new::<Erew>().tap.observer().take(), []);
}
