//! Which configurations are refused, and how.

use super::*;
use glimmer_store::evict::RULES;

fn config() -> Config {
    Config::default()
}

#[test]
fn the_defaults_make_sense() {
    assert_eq!(config().check(), Ok(()));
}

/// An accelerator at an interface, and these UDP ports.
fn accelerate_at(config: &mut Config, ports: &[u16]) {
    let address = |&port| SocketAddr::from(([127, 0, 0, 1], port));
    config.udp = ports.iter().map(address).collect();
    config.accelerate = "tcx:eth0".parse().unwrap();
}

#[test]
fn an_accelerator_at_an_interface_needs_one_port() {
    let mut config = config();
    accelerate_at(&mut config, &[11211, 11211]);
    config.accelerate_from = Sources::Any;
    assert_eq!(config.check(), Ok(()));
}

#[test]
fn an_accelerator_needs_udp_and_nothing_else() {
    for slots in [limits::HOT_SLOTS_MIN, limits::HOT_SLOTS_MAX] {
        let accelerated = Config {
            udp: vec![SocketAddr::from(([127, 0, 0, 1], 11211))],
            accelerate: Accelerate::Model,
            accelerate_slots: slots,
            ..config()
        };
        assert_eq!(accelerated.check(), Ok(()), "{slots} slots");
    }
}

#[test]
fn each_bound_is_checked() {
    type Change = fn(&mut Config);
    let changes: &[(Change, &str)] = &[
        (|config| config.workers = 0, "-t 0"),
        (|config| config.workers = limits::WORKERS_MAX + 1, "-t 257"),
        (|config| config.connections_max = 0, "-c 0"),
        (|config| config.item_bytes_max = 1023, "-I 1023"),
        (
            |config| config.item_bytes_max = (1 << 30) + 1,
            "-I 1073741825",
        ),
        (|config| config.item_bytes_hint = 0, "--item-size-hint 0"),
        (
            |config| config.item_bytes_hint = 2 << 20,
            "--item-size-hint 2097152",
        ),
        (
            |config| config.native = vec![SocketAddr::from(([127, 0, 0, 1], 65_535))],
            "--native-port 65535",
        ),
        (
            |config| {
                config.udp = vec![SocketAddr::from(([127, 0, 0, 1], 11211))];
                config.protocol = Accepts::Resp;
            },
            "leave -U out",
        ),
        (|config| config.native_single_port = true, "--native-port"),
        (
            |config| {
                config.native = vec![SocketAddr::from(([127, 0, 0, 1], 65_535))];
                config.native_single_port = true;
                config.access = AccessMode::Crew;
            },
            "--access crcw",
        ),
        (
            |config| config.accelerate = Accelerate::Model,
            "give its port with -U",
        ),
        (
            |config| config.accelerate = "xdp:eth0".parse().unwrap(),
            "give its port with -U",
        ),
        (
            |config| accelerate_at(config, &[0]),
            "give its number with -U",
        ),
        (|config| accelerate_at(config, &[1, 2]), "give only one"),
        (
            |config| {
                accelerate_at(config, &[1, 1]);
                config.protocol = Accepts::Text;
            },
            "leave -B out",
        ),
        (
            |config| config.accelerate_from = Sources::Any,
            "give that with --accelerate xdp:IF",
        ),
        (
            |config| config.accelerate_slots = limits::HOT_SLOTS_MIN - 1,
            "--accelerate-slots 255 is out of range: 256 to 65536",
        ),
        (
            |config| config.accelerate_slots = limits::HOT_SLOTS_MAX + 1,
            "--accelerate-slots 65537",
        ),
        (|config| config.lru_threshold = -0.1, "--lru-threshold -0.1"),
        (
            |config| config.lru_threshold = f64::NAN,
            "--lru-threshold NaN",
        ),
    ];
    for (change, names) in changes {
        let mut config = config();
        change(&mut config);
        let message = config.check().expect_err(names).to_string();
        assert!(
            message.contains(names),
            "{message:?} does not name {names:?}"
        );
        assert!(!message.contains('\n'), "{message:?} is more than one line");
    }
}

/// A snapshot would take the memory file's name, or wait until the memory file is not locked.
#[test]
fn a_memory_file_and_a_snapshot_are_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    let check = |memory_file: &str| {
        let both = Config {
            memory_file: Some(folder.path().join(memory_file)),
            snapshot: Some(folder.path().join("items")),
            ..config()
        };
        both.check()
    };
    for same in [
        "items",
        "items.unfinished",
        "link/items",
        "./link/items.unfinished",
    ] {
        let message = check(same).expect_err(same).to_string();
        assert!(message.contains("a file each"), "{same}: {message}");
    }
    for other in ["items.memory", "unfinished", "none/items"] {
        assert_eq!(check(other), Ok(()), "{other}");
    }
}

#[test]
fn names_read_back() {
    for &mode in AccessMode::ALL {
        assert_eq!(mode.name().parse(), Ok(mode));
    }
    for &table in TableKind::ALL {
        assert_eq!(table.name().parse(), Ok(table));
    }
    for &rule in RULES {
        assert_eq!(rule.name.parse(), Ok(rule));
    }
    for &policy in HugepagePolicy::ALL {
        assert_eq!(policy.name().parse(), Ok(policy));
    }
    let unknown = "mru".parse::<Rule>().unwrap_err();
    assert!(RULES.iter().all(|rule| unknown.contains(rule.name)));
}

/// A port may have one use where addresses meet, and any free port is another one each time.
#[test]
fn no_port_has_two_uses() {
    let at = |text: &str| vec![text.parse::<SocketAddr>().unwrap()];
    let same = |flags, port| Err(ConfigError::SamePort { flags, port });
    let cases = [
        (
            "127.0.0.1:11211",
            "127.0.0.1:11211",
            same("--http and -p", 11211),
        ),
        (
            "0.0.0.0:11211",
            "127.0.0.1:11211",
            same("--http and -p", 11211),
        ),
        ("127.0.0.1:11211", "127.0.0.2:11211", Ok(())),
        ("[::]:11211", "0.0.0.0:11211", Ok(())),
        ("127.0.0.1:0", "127.0.0.1:0", Ok(())),
    ];
    for (http, tcp, expected) in cases {
        let mut config = config();
        (config.http, config.tcp) = (at(http), at(tcp));
        assert_eq!(config.check_ports(), expected, "{http} and {tcp}");
    }
    let mut config = config();
    (config.native, config.udp) = (at("127.0.0.1:11300"), at("0.0.0.0:11300"));
    let refused = config.check_ports();
    assert_eq!(refused, same("--native-port and -U", 11300));
}
