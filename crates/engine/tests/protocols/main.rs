//! Bytes in, bytes out: the meta commands and the binary protocol, from the parser through an engine. Each row names what of memcached's
//! protocol documents it shows. The classic commands have their table beside the parser, and their oracle beside this.

mod binary;
mod meta;

use glimmer_base::{Moment, Seed};
use glimmer_engine::{Done, Engine, Job, Place, Spread, Status, build};
use glimmer_proto::text::lines;
use glimmer_proto::{Admin, Limits, Parser, Request, Step, binary as packets};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::{Evict, Fifo, S3Fifo};
use glimmer_store::memory::PagePolicy;
use glimmer_store::partition::{Owner, PartitionConfig};

const SEED: Seed = Seed(5);

/// One client's connection to a store of two workers, and a clock that the test turns. A request is run by the first worker if it may, else
/// by the one that owns its key.
struct Server {
    engines: Vec<Box<dyn Engine>>,
    parser: Parser,
    now: Moment,
}

impl Server {
    fn new<A: Access, E: Evict>(rule: E) -> Server {
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
            seed: SEED,
            ..PartitionConfig::default()
        };
        let engines = build(&spread, |_| Owner::<A, E>::new(&config, rule.clone())).unwrap();
        Server {
            engines,
            parser: Parser::new(Limits::default()),
            now: Moment {
                ms: 10_000,
                epoch_unix_ms: 1_700_000_000_000,
            },
        }
    }

    fn wait(&mut self, seconds: u64) {
        self.now.ms += 1_000 * seconds;
    }

    /// Everything that is replied to these bytes, which are complete.
    fn say(&mut self, mut input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        while !input.is_empty() {
            let used = match self.parser.next(input) {
                Step::Need { need } => panic!("wants {need} bytes, has {}", shown(input)),
                Step::Swallowed { used } => used,
                Step::Request { used, request } => {
                    self.run(request, &mut out);
                    used
                }
                Step::Refuse { used, line, .. } => {
                    out.extend_from_slice(line.as_bytes());
                    used
                }
                Step::Fail {
                    used,
                    header,
                    status,
                    ..
                } => {
                    packets::emit::error(&mut out, header, status);
                    used
                }
                Step::Admin { used, admin } => {
                    match admin {
                        Admin::MetaNoop => out.extend_from_slice(lines::META_NOOP.as_bytes()),
                        Admin::Binary(header, packets::Command::Noop) => {
                            packets::emit::success(&mut out, header, 0);
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
        };
        let mut worker = match self.engines[0].place(keyhash, request.verb.is_read()) {
            Place::Here => 0,
            Place::Owner(owner) => owner,
        };
        loop {
            let mut done = [Done {
                status: Status::Skipped,
                end: 0,
            }];
            let outs = std::slice::from_mut(out);
            self.engines[worker].run(self.now, &[job], outs, &mut done);
            match done[0].status {
                Status::Done => return,
                Status::AskOwner if worker != self.engines[0].owner(keyhash) => {
                    worker = self.engines[0].owner(keyhash);
                }
                other => panic!("{other:?}: {request:?}"),
            }
        }
    }
}

/// Every access mode that treats a read in its own way.
fn servers() -> [Server; 4] {
    [
        Server::new::<Erew, _>(Fifo),
        Server::new::<Crew, _>(S3Fifo),
        Server::new::<Crcw, _>(S3Fifo),
        Server::new::<Crcw, _>(Fifo),
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
