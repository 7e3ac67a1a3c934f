//! Bytes in, bytes out: the meta commands, the binary protocol and RESP, from the parser through an
//! engine. Each row names what of memcached's protocol documents it shows. The classic commands
//! have their table beside the parser, and their oracle beside this.

mod binary;
mod growing;
mod lifetimes;
mod meta;
mod meta_model;
pub mod resp;

use glimmer_base::{Moment, Seed};
use glimmer_engine::{Done, Engine, Job, Spread, Status, Uniques, build};
use glimmer_proto::control::{Answer, Control};
use glimmer_proto::text::lines;
use glimmer_proto::{Admin, Limits, Parser, Request, Step, Sum};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::{FIFO, Rule, S3_FIFO};
use glimmer_store::memc3::{self, Memc3Config};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};

const SEED: Seed = Seed(5);

/// One client's connection to a store of two workers, and a clock that the test turns. A request is
/// run by the first worker if it may, else by the one that owns its key.
struct Server {
    engines: Vec<Box<dyn Engine>>,
    parser: Parser,
    sum: Sum,
    now: Moment,
}

impl Server {
    fn new<A: Access>(rule: Rule, uniques: Uniques) -> Server {
        let spread = Spread {
            partitions: 4,
            workers: 2,
            numa_nodes: Vec::new(),
        };
        let config = PartitionConfig {
            log_bytes: 8 << 20,
            main_buckets: 256,
            spare_buckets: 16,
            item_bytes_max: (1 << 20) + 32,
            pages: PagePolicy::Small,
            hasher: SEED.into(),
            ..PartitionConfig::default()
        };
        let engines = build(&spread, uniques, |_| Owner::<A>::new(&config, rule)).unwrap();
        Server::of(engines)
    }

    /// The same with another table.
    fn of(engines: Vec<Box<dyn Engine>>) -> Server {
        Server {
            engines,
            parser: Parser::new(Limits::default()),
            sum: Sum::default(),
            now: Moment {
                ms: 10_000,
                epoch_unix_ms: 1_700_000_000_000,
            },
        }
    }

    fn wait(&mut self, seconds: u64) {
        self.now.ms += 1_000 * seconds;
    }

    /// What is replied to a client of its own, who may speak another protocol.
    fn say_apart(&mut self, input: &[u8]) -> Vec<u8> {
        let parser = std::mem::replace(&mut self.parser, Parser::new(Limits::default()));
        let reply = self.say(input);
        self.parser = parser;
        reply
    }

    /// Everything that is replied to these bytes, which are complete.
    fn say(&mut self, mut input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        while !input.is_empty() {
            let used = match self.parser.next(input) {
                Step::Need { need, .. } => panic!("wants {need} bytes, has {}", shown(input)),
                Step::Queue { .. } => panic!("a long transaction is for the node"),
                Step::Swallowed { used } => used,
                Step::Request { used, request } => {
                    self.run(request, &mut out);
                    used
                }
                Step::Refuse { used, line, .. } => {
                    out.extend_from_slice(line.as_bytes());
                    used
                }
                Step::Answer {
                    used, words, text, ..
                } => {
                    words.emit(&Control::Answered(text), Answer::Done, &mut out);
                    used
                }
                Step::Admin { used, admin } => {
                    match admin {
                        Admin::MetaNoop => out.extend_from_slice(lines::META_NOOP.as_bytes()),
                        Admin::Control(Control::Sum, words) => {
                            let sum = Answer::Sum(std::mem::take(&mut self.sum));
                            words.emit(&Control::Sum, sum, &mut out);
                        }
                        other => panic!("{other:?} is for the node"),
                    }
                    used
                }
            };
            input = &input[used..];
        }
        out
    }

    fn run(&mut self, request: Request<'_>, out: &mut Vec<u8>) {
        let keyhash = request.with_key(|key| SEED.keyhash(key));
        let job = Job {
            keyhash,
            request,
            out: 0,
            size_max: Job::ANY_SIZE,
            copy_max: Job::ANY_SIZE,
            client: 0,
        };
        let layout = self.engines[0].layout();
        let owner = layout.home(0, keyhash);
        let mut worker = match layout.may_run(0, keyhash, request.verb.is_read()) {
            true => 0,
            false => owner,
        };
        loop {
            let mut done = [Done::SKIPPED];
            let outs = std::slice::from_mut(out);
            self.engines[worker].run(self.now, &[job], outs, &mut done);
            match done[0].status {
                Status::Done => {
                    if let Some(kind) = done[0].kind.filter(|_| request.is_part()) {
                        self.sum.add(kind);
                    }
                    return;
                }
                Status::AskOwner if worker != owner => worker = owner,
                other => panic!("{other:?}: {request:?}"),
            }
        }
    }
}

/// Every access mode that treats a read in its own way.
fn servers() -> [Server; 4] {
    [
        Server::new::<Erew>(FIFO, Uniques::Kept),
        Server::new::<Crew>(S3_FIFO, Uniques::Kept),
        Server::new::<Crcw>(S3_FIFO, Uniques::Kept),
        Server::new::<Crcw>(FIFO, Uniques::Kept),
    ]
}

/// Every table, with its name.
fn tables() -> [(&'static str, Server); 5] {
    let spread = Spread {
        partitions: 4,
        workers: 2,
        numa_nodes: Vec::new(),
    };
    let store_mode = StoreConfig {
        bytes: 8 << 20,
        item_bytes_max: (1 << 20) + 32,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..StoreConfig::default()
    };
    let store_mode = |_| mica_store::Owner::<Crcw>::new(&store_mode);
    let slabs = Memc3Config {
        memory_bytes: 8 << 20,
        page_bytes: 4096,
        item_bytes_max: (1 << 20) + 32,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..Memc3Config::default()
    };
    let slabs = |_| memc3::Owner::<Crcw>::new(&slabs);
    let kept = Uniques::Kept;
    [
        ("cache, erew", Server::new::<Erew>(S3_FIFO, kept)),
        ("cache, crew", Server::new::<Crew>(FIFO, kept)),
        ("cache, crcw", Server::new::<Crcw>(S3_FIFO, kept)),
        (
            "store mode",
            Server::of(build(&spread, kept, store_mode).unwrap()),
        ),
        ("memc3", Server::of(build(&spread, kept, slabs).unwrap())),
    ]
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// What is said to a new server and what it replies, one after another.
#[track_caller]
fn check(rows: &[(&[u8], &[u8])]) {
    for (mode, mut server) in servers().into_iter().enumerate() {
        for (said, reply) in rows {
            let got = server.say(said);
            assert_eq!(shown(&got), shown(reply), "mode {mode}, to {}", shown(said));
        }
    }
}

/// Without CAS uniques (memcached's `-C`) every item's is 0, which no client can compare with.
#[test]
fn without_uniques() {
    let mut server = Server::new::<Crcw>(S3_FIFO, Uniques::Zero);
    for (said, reply) in [
        ("set a 0 0 1\r\n1\r\n", "STORED\r\n"),
        ("gets a\r\n", "VALUE a 0 1 0\r\n1\r\nEND\r\n"),
        ("cas a 0 0 1 0\r\n2\r\n", "EXISTS\r\n"),
        ("cas a 0 0 1 7\r\n2\r\n", "EXISTS\r\n"),
        ("incr a 1\r\n", "2\r\n"),
        ("append a 0 0 1\r\n3\r\n", "STORED\r\n"),
        ("ms a 2 c E99\r\n24\r\n", "HD c0\r\n"),
        ("ma a c v E98\r\n", "VA 2 c0\r\n25\r\n"),
        ("md a I E97\r\n", "HD\r\n"),
        ("mg a c v T90\r\n", "VA 2 c0 X W\r\n25\r\n"),
        ("mg b c N30 E96\r\n", "HD c0 W\r\n"),
        (
            "gets a b\r\n",
            "VALUE a 0 2 0\r\n25\r\nVALUE b 0 0 0\r\n\r\nEND\r\n",
        ),
    ] {
        let got = server.say(said.as_bytes());
        assert_eq!(shown(&got), shown(reply.as_bytes()), "to {said:?}");
    }
}
