//! The complete command line.

use super::*;
use clap::Parser;
use glimmer_server::{AccessMode, AdminCommand, Direction, HugepagePolicy, Permits};
use std::time::Duration;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn parse(line: &str) -> Result<Config, String> {
    let words = std::iter::once("serve").chain(line.split_whitespace());
    let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    line.arguments
        .config()
        .map_err(|error| format!("{error:#}"))
}

fn addresses(addresses: &[std::net::SocketAddr]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

#[test]
fn memcacheds_defaults() {
    let config = parse("").unwrap();
    let is_default =
        |address: &std::net::SocketAddr| address.port() == 11211 && address.ip().is_unspecified();
    assert!(config.tcp.iter().all(is_default));
    assert!(config.udp.is_empty() && config.unix.is_none());
    assert_eq!(config.memory_bytes, 64 << 20);
    assert_eq!(config.connections_max, 1024);
    assert_eq!(config.item_bytes_max, 1 << 20);
    assert_eq!(config.backlog, 1024);
    assert_eq!(config.protocol, Accepts::Any);
    assert_eq!(config.permits, Permits::DEFAULT);
    assert_eq!(
        (config.verbosity, config.detail, config.cas),
        (0, false, true)
    );
    assert!(config.rejects_beyond_max && config.idle_timeout.is_none());
}

#[test]
fn memcacheds_short_flags() {
    let line = "-p 21201 -l 127.0.0.1 -m 100 -t 3 -c 10 -I 512k -P /tmp/x.pid -u nobody -vv -U 0 \
                -b 77 -R 5 -B ascii -A -C -F -X -W \
                -D / -d -k -r -L -o idle_timeout=7";
    let config = parse(line).unwrap();
    assert_eq!(addresses(&config.tcp), ["127.0.0.1:21201"]);
    assert_eq!(config.memory_bytes, 100 << 20);
    assert_eq!((config.workers, config.connections_max), (3, 10));
    assert_eq!(config.item_bytes_max, 512 << 10);
    assert_eq!(config.pid_file, Some("/tmp/x.pid".into()));
    assert_eq!(config.user.as_deref(), Some("nobody"));
    assert_eq!(config.verbosity, 2);
    assert_eq!((config.backlog, config.turn_requests), (77, 5));
    assert_eq!(config.protocol, Accepts::Text);
    assert!(!config.cas);
    let permitted = permitted(&config);
    assert_eq!(
        permitted.join(" "),
        "cache_memlimit config dispatch flush_prefix lru lru_crawler refresh_certs shutdown slabs \
         snapshot stats stats_reset verbosity"
    );
    assert_eq!((config.prefix_delimiter, config.detail), (b'/', true));
    assert!(config.daemon && config.lock_memory && config.core_files);
    assert_eq!(config.idle_timeout, Some(Duration::from_secs(7)));
    assert!(config.notices.is_empty());
}

#[test]
fn slices_of_large_values_have_a_size_or_are_off() {
    let sliced = |line| parse(line).unwrap().slice_bytes;
    assert_eq!(sliced(""), 64 << 10);
    assert_eq!(sliced("--slice-bytes 128k"), 128 << 10);
    assert_eq!(sliced("--slice-bytes off"), usize::MAX);
    let error = parse("--slice-bytes 8k").unwrap_err().to_string();
    assert!(error.contains("from 16k to 1024m"), "{error}");
}

/// The names of the administrative commands that clients may use.
fn permitted(config: &Config) -> Vec<&'static str> {
    let all = AdminCommand::ALL.iter();
    let permitted = all.filter(|&&command| config.permits.has(command));
    permitted.map(|command| command.name()).collect()
}

#[test]
fn each_administrative_command_can_be_disabled() {
    let all = permitted(&parse("-A --debug-commands").unwrap());
    assert_eq!(all.len(), AdminCommand::ALL.len());
    for command in AdminCommand::ALL {
        let config = parse(&format!("-A --debug-commands --disable-commands {command}")).unwrap();
        let expected: Vec<_> = all.iter().filter(|&&name| name != command.name()).collect();
        assert_eq!(permitted(&config).iter().collect::<Vec<_>>(), expected);
    }
    let flags = parse("-F -X -W").unwrap().permits;
    let list = "cachedump,detail,metadump,mgdump,flush_all,watch";
    let listed = parse(&format!("--disable-commands {list}")).unwrap();
    assert_eq!(flags, listed.permits);
    let error = parse("--disable-commands dispatch,nonsense").unwrap_err();
    assert!(error.contains("a command is one of cache_memlimit, "));
}

/// The help names every command that `--disable-commands` takes.
/// docs/administration.md has the cost of each, and no other name.
#[test]
fn the_documentation_has_the_administrative_commands() {
    let page = include_str!("../../../../docs/administration.md");
    let (_, table) = page.split_once("| name | commands |").unwrap();
    let rows = table
        .lines()
        .take_while(|line| line.starts_with('|') || line.ends_with('|'));
    let names = rows.filter_map(|row| row.strip_prefix("| `")?.split_once("` |"));
    let documented: Vec<&str> = names.map(|(name, _)| name).collect();
    let names: Vec<&str> = AdminCommand::ALL.iter().map(|it| it.name()).collect();
    assert_eq!(documented, names);
}

#[test]
fn the_help_names_the_administrative_commands() {
    let command = <Line as clap::CommandFactory>::command();
    let about = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some("disable-commands"))
        .and_then(|argument| argument.get_long_help())
        .map(|help| help.to_string());
    let about = about.unwrap();
    for command in AdminCommand::ALL {
        assert!(about.contains(command.name()), "{command}");
    }
}

#[test]
fn memcacheds_long_names() {
    let line = "--port=1234 --listen=127.0.0.1 --memory-limit=32 --threads=2 --conn-limit=5 \
                --max-item-size=2m --pidfile=/tmp/x \
                --user=nobody --udp-port=0 --verbose --listen-backlog=9 --max-reqs-per-event=9 \
                --protocol=auto --enable-shutdown \
                --disable-cas --disable-flush-all --disable-dumping --disable-watch --daemon \
                --lock-memory --enable-coredumps \
                --enable-largepages --extended=modern --slab-growth-factor=1.1 --slab-min-size=48";
    let config = parse(line).unwrap();
    assert_eq!(addresses(&config.tcp), ["127.0.0.1:1234"]);
    assert_eq!(config.item_bytes_max, 2 << 20);
    assert_eq!(config.verbosity, 1);
    assert_eq!(config.notices.len(), 2, "{:?}", config.notices);
    let config = parse("--unix-socket=/tmp/s --unix-mask=755 --auth-file=/tmp/a").unwrap();
    let unix = UnixSocket {
        path: "/tmp/s".into(),
        mode: 0o755,
    };
    assert_eq!(config.unix, Some(unix));
    assert_eq!(config.auth_file, Some("/tmp/a".into()));
    assert_eq!(config.protocol, Accepts::Text);
}

#[test]
fn ports_as_memcached_reads_them() {
    for (line, tcp, udp) in [
        ("-p 21212", "127.0.0.1:21212", None),
        ("-U 21222", "127.0.0.1:21222", Some("127.0.0.1:21222")),
        ("-p -1", "127.0.0.1:0", None),
        ("-U -1", "127.0.0.1:0", Some("127.0.0.1:0")),
        (
            "-p 21232 -U 21233",
            "127.0.0.1:21232",
            Some("127.0.0.1:21233"),
        ),
        ("-p -1 -U 21252", "127.0.0.1:0", Some("127.0.0.1:21252")),
    ] {
        let config = parse(&format!("-l 127.0.0.1 {line}")).unwrap();
        assert_eq!(addresses(&config.tcp), [tcp], "{line}");
        assert_eq!(addresses(&config.udp), Vec::from_iter(udp), "{line}");
    }
    assert!(parse("-p 0").unwrap().tcp.is_empty());
    let config = parse("-s /tmp/socket -p 1 -U 2").unwrap();
    assert!(config.tcp.is_empty() && config.udp.is_empty());
    assert_eq!(config.notices.len(), 1, "{:?}", config.notices);
    assert!(config.notices[0].starts_with("-U"));
    assert!(parse("-s /tmp/socket -p 1").unwrap().notices.is_empty());
}

#[test]
fn vanished_clients_are_looked_for() {
    let liveness = |line| {
        let Liveness {
            keepalive,
            user_timeout,
        } = parse(line).unwrap().liveness;
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs());
        (seconds(keepalive), seconds(user_timeout))
    };
    assert_eq!(liveness(""), (Some(60), Some(300)));
    assert_eq!(
        liveness("--tcp-keepalive 0 --tcp-user-timeout 7"),
        (None, Some(7))
    );
    assert_eq!(
        liveness("--tcp-keepalive 9 --tcp-user-timeout 0"),
        (Some(9), None)
    );
}

#[test]
fn the_last_of_a_repeated_flag_counts() {
    let config = parse(
        "-m 100 -m 200 -l 127.0.0.1 -l 127.0.0.2 -o idle_timeout=1 -o idle_timeout=2 -u a -u b",
    )
    .unwrap();
    assert_eq!(config.memory_bytes, 200 << 20);
    assert_eq!(config.tcp.len(), 2, "addresses add up");
    assert_eq!(config.interfaces.as_deref(), Some("127.0.0.1,127.0.0.2"));
    assert_eq!(config.idle_timeout, Some(Duration::from_secs(2)));
    assert_eq!(config.user.as_deref(), Some("b"));
}

#[test]
fn our_own_flags() {
    let config = parse(
        "--access erew --dispatch keyhash --evict lru --lru-threshold 0.3 --hugepages off --pin \
         --item-size-hint 500 --native-direction server --native-port 65535 \
         --native-single-port -t 1 --packet-transport udp",
    )
    .unwrap();
    assert_eq!(config.native_direction, Direction::Server);
    assert!(config.native_single_port);
    assert_eq!(config.packets.name(), "udp");
    assert_eq!(config.access, AccessMode::Erew);
    assert_eq!(config.evict.name, "lru");
    assert_eq!(config.lru_threshold, 0.3);
    assert_eq!(config.hugepages, HugepagePolicy::Off);
    assert!(config.pin);
    assert_eq!(config.item_bytes_hint, 500);
}

#[test]
fn a_setting_without_effect_is_named() {
    let told = |flags: &str| parse(&format!("-t 1 {flags}")).unwrap().notices;
    for (flag, without, with) in [
        ("--lru-threshold 0.3", "--evict 2q", "--evict lru"),
        ("--evict-for bytes", "-M", "--evict adaptive"),
        ("--evict-for bytes", "--evict lru", ""),
        ("--item-size-hint 500", "--table memc3", "--evict lru"),
        ("-L", "--hugepages off", "--hugepages transparent"),
        ("-a 777", "-p 1", "-s /tmp/socket"),
        ("-U 1", "-s /tmp/socket", "-p 1"),
        ("--native-check-keyhash", "-U 1", "--native-port 2"),
        ("--native-direction server", "-U 1", "--native-port 2"),
        ("--accelerate-slots 500", "-U 1", "-U 1 --accelerate model"),
        (
            "--accelerate-policy paper",
            "-U 1",
            "-U 1 --accelerate model",
        ),
        ("--address-connections 5", "-s /tmp/socket", ""),
        ("--address-requests 5", "-s /tmp/socket", ""),
        ("--address-bytes 5k", "-s /tmp/socket", ""),
        ("--tcp-keepalive 5", "-s /tmp/socket", ""),
        ("--tcp-user-timeout 5", "-s /tmp/socket", ""),
        ("--packet-transport udp-plain", "-p 1", "-U 1"),
        (
            "--packet-transport udp-plain",
            "-s /tmp/socket",
            "--native-port 2",
        ),
        (
            "-A",
            "--disable-commands shutdown",
            "--disable-commands stats",
        ),
    ] {
        let name = flag.split(' ').next().unwrap();
        let said = format!("{name} has no effect: ");
        let notices = told(&format!("{flag} {without}"));
        let is_alone = notices.len() == 1 && notices[0].starts_with(&said);
        assert!(is_alone, "{flag} {without}: {notices:?}");
        let notices = told(&format!("{flag} {with}"));
        assert!(notices.is_empty(), "{flag} {with}: {notices:?}");
    }
    assert!(told("--evict fifo").is_empty());
    let options = "-o ssl_chain_cert=/x,idle_timeout=5 -o ssl_verify_mode=2";
    let said = "-o ssl_chain_cert,ssl_verify_mode has no effect: nothing is encrypted without -Z";
    assert_eq!(told(options), [said]);
    if cfg!(feature = "tls") {
        let with = told(&format!("-Z {options} -o ssl_ca_cert=/y"));
        assert!(with.is_empty(), "{with:?}");
    }
}

#[test]
fn refusing_instead_of_evicting() {
    assert_eq!(parse("").unwrap().mode, Mode::Cache);
    assert_eq!(parse("-M").unwrap().mode, Mode::Store);
    assert_eq!(parse("--mode store").unwrap().mode, Mode::Store);
    assert_eq!(parse("-M --mode store").unwrap().mode, Mode::Store);
    assert_eq!(parse("-M").unwrap().eviction(), "none");
    assert_eq!(parse("").unwrap().eviction(), "adaptive");
    assert_eq!(parse("--table memc3").unwrap().eviction(), "clock");
}

/// The error message of a server with this command line, before it allocates anything.
fn plan_error(line: &str) -> String {
    let config = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let error = glimmer_server::serve(config, None).unwrap_err();
    assert_eq!(error.exit_code(), 1, "{error}");
    error.to_string()
}

#[test]
fn memory_that_a_table_cannot_use_is_refused_with_the_most_that_it_can() {
    for (line, says) in [
        (
            "-m 32769g --table memc3",
            "at most -m 33554432, or use --table mica",
        ),
        ("-m 99999999 --table memc3 -t 4", "at most -m 33554432"),
        (
            "-m 133120g --mode store",
            "at most -m 136314877, or use --mode cache",
        ),
        ("-m 99999999g -M -t 4", "at most -m 136314877"),
        (
            "-m 2147483648",
            "at most -m 1073741823, or run several servers",
        ),
        ("-m 99999999g", "at most -m 1073741823"),
        ("-m 17592186044415 -t 4", "at most -m 1073741823"),
    ] {
        let error = plan_error(line);
        assert!(error.contains(says), "{line}: {error}");
    }
    assert_eq!(parse("-m 16777216").unwrap().memory_bytes, 1 << 44);
    let error = parse("-m 18446744073709551615").unwrap_err();
    assert!(error.contains("more than 1073741823 MiB"), "{error}");
}

#[test]
fn what_is_wrong_is_named() {
    for (line, names) in [
        ("-U 70000", "70000"),
        ("-p 70000", "70000"),
        ("-p x", "x"),
        ("-m 0", "-m"),
        ("-m lots", "lots"),
        ("-t 0", "Number of threads"),
        ("-c 0", "Maximum connections"),
        ("-c -1", "Maximum connections"),
        ("-R 0", "requests per event"),
        ("-f 1", "Factor"),
        ("-n 0", "Chunk size"),
        ("-I 5", "-I 5"),
        ("-I 1025m", "-I"),
        ("-I 1q", "1q"),
        ("-I 33m", "1/2 of memory"),
        ("-B http", "auto, binary, resp, or ascii"),
        ("--mode none", "cache, store"),
        ("-M --mode cache", "-M means --mode store"),
        ("-s /tmp/s --native-port 9", "--native-port"),
        ("--tcp-keepalive 99999", "--tcp-keepalive"),
        ("--tcp-user-timeout x", "--tcp-user-timeout"),
        ("-M --evict lru", "evicts nothing"),
        ("--mode store --evict s3fifo", "evicts nothing"),
        ("--table memc3 --evict lru", "CLOCK"),
        ("--table memc3 -M", "--table memc3"),
        ("--table memc3 --mode store", "--table memc3"),
        ("-Z", "ssl_chain_cert"),
        ("--memory-file-discard", "-e"),
        ("-S", "-Y"),
        ("-S -Y f -B ascii", "-S"),
        ("-S -Y f -U 1", "-U"),
        ("-Y f -B binary", "-Y"),
        ("-Y f -U 1", "-U"),
        ("-o nonsense", "nonsense"),
        ("--access mine", "erew, crew, crcw"),
        ("--dispatch random", "keyhash"),
        ("--packet-transport pigeon", "udp"),
        ("--native-direction both", "client, server"),
        ("--evict random", "fifo, lru, s3fifo, clock"),
        ("--lru-threshold 2", "--lru-threshold 2"),
        ("-l 127.0.0.1:x", "127.0.0.1:x"),
        ("-z", "-z"),
    ] {
        let error = parse(line).expect_err(line);
        assert!(
            error.contains(names),
            "{line}: {error:?} does not name {names:?}"
        );
    }
}

/// docs/flags.md names every flag that the help shows, and no other.
#[test]
fn the_documentation_has_a_row_for_each_flag_and_no_others() {
    let page = include_str!("../../../../docs/flags.md");
    let (tables, _) = page.split_once("## Extended options").unwrap();
    let rows = tables.lines().filter(|line| line.starts_with("| `-"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let documented: Vec<&str> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let mut command = <Line as clap::CommandFactory>::command();
    command.build();
    let (mut known, mut shown) = (Vec::new(), Vec::new());
    for argument in command.get_arguments() {
        let names = argument.get_short().map(|short| format!("-{short}"));
        let names = names.into_iter();
        let names = names.chain(argument.get_long().map(|long| format!("--{long}")));
        let names: Vec<String> = names.collect();
        if !argument.is_hide_set() {
            shown.push(names.clone());
        }
        known.extend(names);
    }
    for names in shown {
        let is_there = names.iter().any(|name| documented.contains(&name.as_str()));
        assert!(is_there, "docs/flags.md lacks a row for {names:?}");
    }
    for name in documented {
        let is_known = known.iter().any(|known| known == name) || name == "-vv";
        assert!(is_known, "docs/flags.md has a row for {name}");
    }
}

/// The last cell of a row of docs/flags.md is the default of its flag.
#[test]
fn the_documentation_has_the_default_of_each_flag() {
    let page = include_str!("../../../../docs/flags.md");
    let (tables, _) = page.split_once("## Extended options").unwrap();
    let mut command = <Line as clap::CommandFactory>::command();
    command.build();
    let (mut compared, mut wrong) = (0, Vec::new());
    for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
        let [default] = argument.get_default_values() else {
            continue;
        };
        let (Some(long), Some(default)) = (argument.get_long(), default.to_str()) else {
            continue;
        };
        let name = format!("`--{long}`");
        let is_row = |row: &&str| row.split(" | ").next().is_some_and(|it| it.contains(&name));
        // Some rows have the short name alone.
        let mut rows = tables.lines().filter(|line| line.starts_with('|'));
        let Some(row) = rows.find(is_row) else {
            continue;
        };
        let cell = row.trim_end_matches('|').rsplit(" | ").next().unwrap();
        let said = cell.trim().trim_matches('`').replace("off", "false");
        let default = default.replace("off", "false");
        compared += 1;
        if said != default {
            wrong.push(format!("{name}: {said:?}, and not {default:?}"));
        }
    }
    assert!(wrong.is_empty(), "docs/flags.md: {wrong:#?}");
    assert!(compared > 20, "{compared} defaults");
}

/// Threads that the memory has no room for do not start, and the item limit stays as it is.
#[test]
fn the_item_limit_does_not_depend_on_the_number_of_threads() {
    for (line, workers) in [
        ("-m 64 -t 4", 4),
        ("-m 64 -t 5", 4),
        ("-m 64 -t 16", 4),
        ("-m 64 -t 32", 4),
        ("-m 256 -t 16", 10),
        ("-m 1024 -t 32", 32),
        ("-m 256 -t 4 -I 8m", 4),
        ("-m 64 -t 4 -I 8m", 1),
        // Buffers for such an item are too much for one worker, too. With more, items would have to
        // be smaller still.
        ("-m 64 -t 4 -I 32m", 1),
    ] {
        let config = parse(line).unwrap();
        assert_eq!(config.workers, workers, "{line}");
        let is_told = config
            .notices
            .iter()
            .any(|it| it.contains("has room for the buffers of only"));
        assert_eq!(is_told, !line.contains(&format!("-t {workers}")), "{line}");
        let needs = Needs::of(&config);
        let limit = |needs| MemoryPlan::make(needs).unwrap().item_bytes_max;
        let with_one = limit(Needs {
            workers: 1,
            ..needs
        });
        assert_eq!(limit(needs), with_one, "{line}");
        if !line.contains("-I 32m") {
            assert_eq!(with_one, config.item_bytes_max, "{line}");
        }
    }
}

/// What a small -m takes away is said when the server starts, and in advance with the same numbers.
#[test]
fn what_is_lowered_is_said() {
    let workers = [64, 128, 256].map(|mib| parse(&format!("-m {mib} -t 256")).unwrap().workers);
    let [one, two, three] = workers;
    let said = format!("at most {one} with -m 64, {two} with -m 128 and {three} with -m 256");
    let help = <Arguments as clap::Args>::augment_args(clap::Command::new("serve"));
    let threads = help.get_arguments().find(|it| it.get_id() == "threads");
    let help = threads
        .and_then(|it| it.get_long_help())
        .unwrap()
        .to_string();
    let flags = include_str!("../../../../docs/flags.md");
    let differences = include_str!("../../../../docs/memcached-differences.md");
    for text in [&help, flags, differences] {
        let plain = text.replace('`', "");
        let plain: Vec<&str> = plain.split_whitespace().collect();
        assert!(plain.join(" ").contains(&said), "{said}: {text}");
    }
    let notices = |line| parse(line).unwrap().notices.join("\n");
    assert_eq!(
        notices("-t 16"),
        "-t 16: -m 64 has room for the buffers of only 4; raise -m for more"
    );
    assert_eq!(
        notices("-t 1 -m 96 -o read_buf_mem_limit=900"),
        "-o read_buf_mem_limit=900 becomes 32: it is at least what the largest item (-I) needs in \
         each worker, and at most a third of -m"
    );
    assert_eq!(notices("-t 1 -m 96 -o read_buf_mem_limit=20"), "");
    assert!(notices("-t 1 -R 1000").starts_with("-R 1000 is lowered to 256"));
    assert!(notices("-t 1 -R 4294967296").starts_with("-R 4294967296 is lowered to 256"));
    assert!(notices("-t 1 -o ssl_wbuf_size=5").contains("no effect"));
    // Help and documents say that the item limit becomes a sixth of -m.
    for mib in [64, 256, 1024] {
        let config = parse(&format!("-t 1 -m {mib} -I {}m", mib / 2)).unwrap();
        let limit = MemoryPlan::make(Needs::of(&config)).unwrap().item_bytes_max;
        let part = config.memory_bytes as f64 / limit as f64;
        assert!((5.5..6.5).contains(&part), "-m {mib}: a {part}th");
    }
}
