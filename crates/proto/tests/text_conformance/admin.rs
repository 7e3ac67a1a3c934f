//! Commands without a key.

use crate::*;
use glimmer_base::limits::CLUSTER_BYTES_MAX;
use glimmer_proto::AdminCommand;
use glimmer_proto::text::{Cluster, Detail, Dump, Shutdown, watch};

#[test]
fn commands_without_a_key() {
    let admin = Out::Admin;
    check(&[
        (b"version\r\n", &[admin(Admin::Version)]),
        (b"version noreply\r\n", &[admin(Admin::Version)]),
        (b"quit\r\n", &[admin(Admin::Quit)]),
        (b"quit noreply\r\n", &[admin(Admin::Quit)]),
        (b"mn\r\n", &[admin(Admin::MetaNoop)]),
        (b"mn foo\r\n", &[admin(Admin::MetaNoop)]),
        (b"stats\r\n", &[admin(Admin::Stats(b""))]),
        (b"stats  \r\n", &[admin(Admin::Stats(b""))]),
        (
            b"stats  settings  \r\n",
            &[admin(Admin::Stats(b"settings"))],
        ),
        (b"stats detail on\r\n", &[admin(Admin::Detail(Detail::On))]),
        (
            b"stats detail off\r\n",
            &[admin(Admin::Detail(Detail::Off))],
        ),
        (
            b"stats detail dump\r\n",
            &[admin(Admin::Detail(Detail::Dump))],
        ),
        (
            b"stats detail\r\n",
            &[admin(Admin::Detail(Detail::Unknown))],
        ),
        (b"statsx\r\n", &[ERROR]),
        (
            b"shutdown\r\n",
            &[admin(Admin::Shutdown {
                how: Shutdown::Now,
                quiet: false,
            })],
        ),
        (
            b"shutdown graceful\r\n",
            &[admin(Admin::Shutdown {
                how: Shutdown::Graceful,
                quiet: false,
            })],
        ),
        (
            b"shutdown noreply\r\n",
            &[admin(Admin::Shutdown {
                how: Shutdown::Unknown,
                quiet: true,
            })],
        ),
        (
            b"refresh_certs noreply\r\n",
            &[admin(Admin::RefreshCerts { quiet: true })],
        ),
        (
            b"debugtime 3 noreply\r\n",
            &[admin(Admin::AdvanceClock {
                seconds: 3,
                quiet: true,
            })],
        ),
        (
            b"shutdown foo\r\n",
            &[admin(Admin::Shutdown {
                how: Shutdown::Unknown,
                quiet: false,
            })],
        ),
        (
            b"shutdown graceful x\r\n",
            &[admin(Admin::Shutdown {
                how: Shutdown::Unknown,
                quiet: false,
            })],
        ),
    ]);
}

#[test]
fn flush_prefix() {
    let flush = |prefix, quiet| Out::Admin(Admin::FlushPrefix { prefix, quiet });
    let bad_line = |quiet| answer(AdminCommand::FlushPrefix, reply::BAD_LINE, quiet);
    let invalid_flag = Out::Say(reply::INVALID_FLAG);
    check(&[
        (b"flush_prefix user\r\n", &[flush(b"user", false)]),
        (b"flush_prefix a:b\r\n", &[flush(b"a:b", false)]),
        (b"flush_prefix user noreply\r\n", &[flush(b"user", true)]),
        (b"flush_prefix\r\n", &[bad_line(false)]),
        (b"flush_prefix noreply\r\n", &[bad_line(true)]),
        (b"flush_prefix user 0\r\n", &[bad_line(false)]),
        (b"stats prefix\r\n", &[Out::Admin(Admin::Prefixes)]),
        (
            b"stats prefix x\r\n",
            &[Out::Admin(Admin::Stats(b"prefix x"))],
        ),
        (b"flush_prefix user 0 noreply\r\n", &[bad_line(true)]),
        (b"md user G I\r\n", &[invalid_flag]),
        (b"md user C7 G\r\n", &[invalid_flag]),
        (b"md user G G\r\n", &[Out::Say(reply::DUPLICATE_FLAG)]),
        (b"mg user G\r\n", &[invalid_flag]),
        (b"md a G b\r\n", &[Out::Say(reply::BAD_BASE64)]),
    ]);
}

#[test]
fn verbosity() {
    let verbosity = |level, quiet| Out::Admin(Admin::Verbosity { level, quiet });
    check(&[
        (b"verbosity\r\n", &[BAD_LINE]),
        (b"verbosity 1\r\n", &[verbosity(1, false)]),
        (b"verbosity 1 noreply\r\n", &[verbosity(1, true)]),
        (b"verbosity 0 foo\r\n", &[verbosity(0, false)]),
        (b"verbosity 0 foo bar\r\n", &[verbosity(0, false)]),
        (b"verbosity 0 0 noreply\r\n", &[verbosity(0, true)]),
        (b"verbosity noreply\r\n", &[SILENCE]),
        (b"verbosity foo\r\n", &[BAD_LINE]),
        (b"verbosity foo noreply\r\n", &[SILENCE]),
        (b"verbosity -1\r\n", &[BAD_LINE]),
        (b"verbosity 4294967297\r\n", &[BAD_LINE]),
    ]);
}

#[test]
fn flush_all() {
    let flush = |delay_exptime, quiet| {
        Out::Admin(Admin::FlushAll {
            delay_exptime,
            quiet,
        })
    };
    let bad_delay = |quiet| answer(AdminCommand::FlushAll, reply::BAD_EXPTIME, quiet);
    check(&[
        (b"flush_all\r\n", &[flush(0, false)]),
        (b"flush_all  \r\n", &[flush(0, false)]),
        (b"flush_all noreply\r\n", &[flush(0, true)]),
        (b"flush_all 0\r\n", &[flush(0, false)]),
        (b"flush_all -1\r\n", &[flush(-1, false)]),
        (b"flush_all 10 noreply\r\n", &[flush(10, true)]),
        (b"flush_all 0 foo\r\n", &[flush(0, false)]),
        (b"flush_all 0 0 0\r\n", &[flush(0, false)]),
        (b"flush_all 0 0 noreply\r\n", &[flush(0, true)]),
        (b"flush_all abc\r\n", &[bad_delay(false)]),
        (b"flush_all abc noreply\r\n", &[bad_delay(true)]),
        (b"flush_all noreplyx\r\n", &[bad_delay(false)]),
        (b"flush_all foo bar\r\n", &[bad_delay(false)]),
        (b"flush_all 99999999999999999999\r\n", &[bad_delay(false)]),
        (b"flush_all 2147483648\r\n", &[bad_delay(false)]),
    ]);
}

/// A command that changes nothing. Where it is not permitted, its answer is another one.
fn answer(command: AdminCommand, line: &'static str, quiet: bool) -> Out<'static> {
    Out::Admin(Admin::Answer {
        command,
        line,
        quiet,
    })
}

/// Commands that tune memcached's internals are answered as by a memcached in which these features
/// are disabled.
#[test]
fn commands_for_other_insides() {
    let unused = |command, quiet| answer(command, reply::OK, quiet);
    let memory_limit = |quiet| {
        Out::Admin(Admin::MemoryLimit {
            mebibytes: 64,
            quiet,
        })
    };
    check(&[
        (b"cache_memlimit\r\n", &[ERROR]),
        (b"cache_memlimit abc\r\n", &[ERROR]),
        (b"cache_memlimit abc noreply\r\n", &[SILENCE]),
        (
            b"cache_memlimit 7\r\n",
            &[Out::Say(reply::MEMLIMIT_TOO_SMALL)],
        ),
        (b"cache_memlimit 64\r\n", &[memory_limit(false)]),
        (b"cache_memlimit 64 noreply\r\n", &[memory_limit(true)]),
        (b"cache_memlimit 64 foo bar\r\n", &[memory_limit(false)]),
        (
            b"cache_memlimit 1000000001\r\n",
            &[Out::Say(reply::MEMLIMIT_IN_BYTES)],
        ),
        (b"slabs\r\n", &[ERROR]),
        (
            b"slabs reassign 1 2\r\n",
            &[Out::Say(reply::SLABS_REASSIGN_DISABLED)],
        ),
        (
            b"slabs automove 1\r\n",
            &[unused(AdminCommand::Slabs, false)],
        ),
        (b"slabs automove 3\r\n", &[ERROR]),
        (
            b"slabs automove ratio 0.8\r\n",
            &[unused(AdminCommand::Slabs, false)],
        ),
        (b"slabs automove ratio x\r\n", &[ERROR]),
        (b"slabs automove ratio\r\n", &[ERROR]),
        (b"slabs automove other 1\r\n", &[Out::Say(reply::BAD_LINE)]),
        (b"slabs automove window\r\n", &[Out::Say(reply::BAD_LINE)]),
        (
            b"slabs automove window 2\r\n",
            &[Out::Say(reply::AUTOMOVE_WINDOW)],
        ),
        (
            b"slabs automove window 3 x\r\n",
            &[unused(AdminCommand::Slabs, false)],
        ),
        (
            b"slabs automove freeratio 0.1\r\n",
            &[unused(AdminCommand::Slabs, false)],
        ),
        (
            b"slabs automove 1 2 3\r\n",
            &[unused(AdminCommand::Slabs, false)],
        ),
        (
            b"slabs automove 1 noreply\r\n",
            &[unused(AdminCommand::Slabs, true)],
        ),
        (b"lru\r\n", &[ERROR]),
        (
            b"lru tune 10 20 0.1 2.0\r\n",
            &[unused(AdminCommand::Lru, false)],
        ),
        (
            b"lru tune 60 60 0.1 2.0\r\n",
            &[Out::Say(reply::LRU_PERCENT_TOO_LARGE)],
        ),
        (
            b"lru tune 10 20 0 2.0\r\n",
            &[Out::Say(reply::LRU_AGE_TOO_SMALL)],
        ),
        (b"lru tune 10 20 0.1\r\n", &[ERROR]),
        (b"lru tune x 20 0.1 2.0\r\n", &[ERROR]),
        (
            b"lru tune 10 20 0.1 2.0 x\r\n",
            &[unused(AdminCommand::Lru, false)],
        ),
        (b"lru mode flat\r\n", &[unused(AdminCommand::Lru, false)]),
        (
            b"lru mode segmented x\r\n",
            &[unused(AdminCommand::Lru, false)],
        ),
        (
            b"lru mode flat noreply\r\n",
            &[unused(AdminCommand::Lru, true)],
        ),
        (b"lru mode\r\n", &[ERROR]),
        (b"lru mode other\r\n", &[ERROR]),
        (b"lru mode other noreply\r\n", &[SILENCE]),
        (b"lru temp_ttl 60\r\n", &[unused(AdminCommand::Lru, false)]),
        (b"lru temp_ttl -1\r\n", &[unused(AdminCommand::Lru, false)]),
        (b"lru temp_ttl\r\n", &[ERROR]),
        (b"lru temp_ttl 2147483648\r\n", &[ERROR]),
        (b"lru_crawler\r\n", &[ERROR]),
        (b"lru_crawler foo\r\n", &[ERROR]),
        (b"lru_crawler crawl all\r\n", &[Out::Admin(Admin::Crawl)]),
        (
            b"debugtime 3\r\n",
            &[Out::Admin(Admin::AdvanceClock {
                seconds: 3,
                quiet: false,
            })],
        ),
        (b"debugtime x\r\n", &[ERROR]),
        (b"slabs automove x\r\n", &[Out::Say(reply::BAD_LINE)]),
        (
            b"lru_crawler crawl x\r\n",
            &[answer(AdminCommand::LruCrawler, reply::BAD_CLASS, false)],
        ),
        (
            b"lru_crawler tocrawl 9\r\n",
            &[unused(AdminCommand::LruCrawler, false)],
        ),
        (b"lru_crawler tocrawl x\r\n", &[Out::Say(reply::BAD_LINE)]),
        (
            b"lru_crawler sleep 1000000\r\n",
            &[unused(AdminCommand::LruCrawler, false)],
        ),
        (
            b"lru_crawler sleep 1000001\r\n",
            &[Out::Say(reply::CRAWLER_SLEEP_TOO_LONG)],
        ),
    ]);
}

/// Listings of items: `lru_crawler metadump`, `mgdump` (protocol.txt, "LRU_Crawler"),
/// `stats cachedump`.
#[test]
fn listings() {
    let admin = Out::Admin;
    let (meta, mg) = (Admin::Dump(Dump::Meta), Admin::Dump(Dump::Mg));
    check(&[
        (b"lru_crawler metadump all\r\n", &[admin(meta)]),
        (b"lru_crawler metadump hash\r\n", &[admin(meta)]),
        (b"lru_crawler metadump 1,2,63\r\n", &[admin(meta)]),
        (b"lru_crawler metadump 1,,2\r\n", &[admin(meta)]),
        (b"lru_crawler mgdump 1,\r\n", &[admin(mg)]),
        (b"lru_crawler mgdump all\r\n", &[admin(mg)]),
        (b"lru_crawler metadump\r\n", &[ERROR]),
        (
            b"lru_crawler metadump 0\r\n",
            &[answer(AdminCommand::Metadump, reply::BAD_CLASS, false)],
        ),
        (
            b"lru_crawler mgdump ,\r\n",
            &[answer(AdminCommand::Mgdump, reply::NOTHING_TO_CRAWL, false)],
        ),
        (b"lru_crawler enable\r\n", &[admin(Admin::Crawler(true))]),
        (b"lru_crawler disable\r\n", &[admin(Admin::Crawler(false))]),
        (
            b"stats cachedump 1 100\r\n",
            &[admin(Admin::CacheDump {
                class: 1,
                items_max: 100,
            })],
        ),
        (
            b"stats cachedump 63 0\r\n",
            &[admin(Admin::CacheDump {
                class: 63,
                items_max: 0,
            })],
        ),
        (
            b"stats cachedump 1\r\n",
            &[answer(
                AdminCommand::Cachedump,
                reply::BAD_COMMAND_LINE,
                false,
            )],
        ),
        (
            b"stats cachedump 1 x\r\n",
            &[answer(AdminCommand::Cachedump, reply::BAD_LINE, false)],
        ),
        (
            b"stats cachedump 64 1\r\n",
            &[answer(AdminCommand::Cachedump, reply::ILLEGAL_CLASS, false)],
        ),
    ]);
}

/// `watch` (protocol.txt, "Watchers").
#[test]
fn watchers() {
    let watch = |interests| Out::Admin(Admin::Watch(interests));
    let both = watch::MUTATIONS | watch::EVICTIONS;
    check(&[
        (b"watch\r\n", &[watch(watch::FETCHERS)]),
        (b"watch\n", &[watch(watch::FETCHERS)]),
        (b"watch mutations evictions\r\n", &[watch(both)]),
        (b"watch mutations json\r\n", &[watch(watch::CHANGES)]),
        (b"watch json mutations\r\n", &[watch(watch::CHANGES)]),
        (
            b"watch json\r\n",
            &[answer(AdminCommand::Watch, reply::ERROR, false)],
        ),
        (
            b"watch mutations deletions json\r\n",
            &[answer(AdminCommand::Watch, reply::ERROR, false)],
        ),
        (b"watch connevents\r\n", &[watch(watch::CONNEVENTS)]),
        (b"watch deletions\r\n", &[watch(watch::DELETIONS)]),
        (b"watch sysevents\r\n", &[watch(0)]),
        (
            b"watch everything\r\n",
            &[answer(AdminCommand::Watch, reply::ERROR, false)],
        ),
    ]);
}

#[test]
fn the_version_satisfies_clients_that_look_for_memcached() {
    let version = reply::VERSION
        .strip_prefix("VERSION ")
        .unwrap()
        .strip_suffix("\r\n")
        .unwrap();
    let (compatible, own) = version.split_once('-').unwrap();
    let parts: Vec<u32> = compatible
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect();
    assert_eq!(parts[..2], [1, 6]);
    assert_eq!(own, concat!("glimmer.", env!("CARGO_PKG_VERSION")));
}

/// What a datagram may ask for beside reads and writes, and by which name a command is forbidden.
#[test]
fn names_and_datagrams() {
    let mut parser = Parser::new(Limits::default());
    for (line, name, may_come, only_looks) in [
        (&b"version\r\n"[..], None, true, true),
        (b"mn\r\n", None, true, true),
        (b"quit\r\n", None, true, true),
        (b"stats\r\n", Some("stats"), true, true),
        (b"stats memory\r\n", Some("stats"), false, true),
        (b"stats reset\r\n", Some("stats_reset"), false, false),
        (b"stats detail on\r\n", Some("detail"), false, false),
        (b"stats cachedump 1 1\r\n", Some("cachedump"), false, true),
        (b"flush_all\r\n", Some("flush_all"), false, false),
        (b"verbosity 2\r\n", Some("verbosity"), false, false),
        (b"dispatch keyhash erew\r\n", Some("dispatch"), false, false),
        (
            b"lru_crawler crawl all\r\n",
            Some("lru_crawler"),
            false,
            false,
        ),
        (
            b"lru_crawler disable\r\n",
            Some("lru_crawler"),
            false,
            false,
        ),
        (
            b"lru_crawler sleep 1\r\n",
            Some("lru_crawler"),
            false,
            false,
        ),
        (
            b"lru_crawler metadump all\r\n",
            Some("metadump"),
            false,
            true,
        ),
        (b"lru_crawler mgdump all\r\n", Some("mgdump"), false, true),
        (
            b"cache_memlimit 64\r\n",
            Some("cache_memlimit"),
            false,
            false,
        ),
        (b"slabs automove 1\r\n", Some("slabs"), false, false),
        (b"lru tune 10 20 0.1 2.0\r\n", Some("lru"), false, false),
        (b"watch\r\n", Some("watch"), false, true),
        (b"debugtime 3\r\n", Some("debugtime"), false, false),
        (b"shutdown\r\n", Some("shutdown"), false, false),
    ] {
        let Step::Admin { admin, .. } = parser.next(line) else {
            panic!("{} is no command", line.escape_ascii());
        };
        assert_eq!(admin.command().map(AdminCommand::name), name);
        assert_eq!(admin.may_come_by_datagram(), may_come, "{name:?}");
        assert_eq!(admin.only_looks(), only_looks, "{name:?}");
    }
}

/// What clients of hosted memcached send, and what operators do.
#[test]
fn config() {
    let cluster = Cluster::parse(b"7\na||1\n").unwrap();
    let set = |quiet| Out::Admin(Admin::ClusterSet { cluster, quiet });
    let delete = |quiet| Out::Admin(Admin::ClusterDelete { quiet });
    let refusal = |line, quiet| answer(AdminCommand::Config, line, quiet);
    let too_long = [
        format!("config set cluster 0 {}\r\n", CLUSTER_BYTES_MAX + 1).into_bytes(),
        vec![b'x'; CLUSTER_BYTES_MAX + 1],
        b"\r\nmn\r\n".to_vec(),
    ];
    let noop = Out::Admin(Admin::MetaNoop);
    check(&[
        (b"config get cluster\r\n", &[Out::Admin(Admin::ClusterGet)]),
        (b"config get other\r\n", &[Out::Say(reply::END)]),
        (b"config get\r\n", &[BAD_LINE]),
        (b"config\r\n", &[BAD_LINE]),
        (b"config get cluster x\r\n", &[BAD_LINE]),
        (b"config show cluster\r\n", &[BAD_LINE]),
        (
            b"config set cluster 0 6\r\n7\na||1\n\r\nmn\r\n",
            &[
                refusal(reply::BAD_CHUNK, false),
                Out::Say(reply::BAD_LINE),
                noop,
            ],
        ),
        (b"config set cluster 0 7\r\n7\na||1\n\r\n", &[set(false)]),
        (
            b"config set cluster 0 7 noreply\r\n7\na||1\n\r\n",
            &[set(true)],
        ),
        (
            b"config set cluster 0 1\r\n7\r\nmn\r\n",
            &[refusal(reply::BAD_CLUSTER, false), noop],
        ),
        (
            b"config set other 0 7 noreply\r\n7\na||1\n\r\n",
            &[refusal(reply::UNKNOWN_CONFIG, true)],
        ),
        (
            b"config set cluster x 7\r\n7\na||1\n\r\nmn\r\n",
            &[BAD_LINE, noop],
        ),
        (b"config set cluster 0 -1\r\n", &[BAD_LINE]),
        (b"config set cluster 0 4294967295\r\n", &[BAD_LINE]),
        (&too_long.concat(), &[Out::Say(reply::TOO_LARGE), noop]),
        (b"config delete cluster\r\n", &[delete(false)]),
        (b"config delete cluster noreply\r\n", &[delete(true)]),
        (
            b"config delete other\r\n",
            &[refusal(reply::NOT_FOUND, false)],
        ),
    ]);
}
