//! Commands that are executed as they arrive, and whose last key is denied.

use crate::bench::{Cache, Kind};
use crate::support::Habits;
use crate::tenants::{Rig, answer, received, send, user};
use glimmer_engine::{Spread, Uniques};
use glimmer_node::NodeConfig;
use glimmer_proto::text::lines;
use glimmer_proto::{Accepts, Rights, Rules, resp};
use glimmer_store::access::Erew;

/// A command that is executed as it arrives may end with the error of its last key. What its other
/// keys came to is not in the next sum, and the denial counts once.
#[test]
fn the_last_key_of_a_long_command_is_denied_with_an_error() {
    let array = |words: &[&str]| {
        let bulk = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        let bulks: String = words.iter().map(bulk).collect();
        format!("*{}\r\n{bulks}", words.len())
    };
    let keys: Vec<String> = (0..400).map(|nth| format!("my{nth:0200}")).collect();
    for (workers, command) in [
        (1, "DEL"),
        (2, "UNLINK"),
        (1, "EXISTS"),
        (2, "TOUCH"),
        (1, "MSET"),
        (2, "MSET"),
    ] {
        let spread = Spread {
            partitions: 4,
            workers,
            numa_nodes: Vec::new(),
        };
        let engines = |config: &NodeConfig| {
            Cache::<Erew>::engines(&spread, Uniques::Kept, config.hasher.clone())
        };
        let mut rig = Rig::with(workers, engines, |config| {
            (config.locked, config.accepts) = (true, Accepts::Resp);
        });
        let rules = Rules {
            rights: Rights::DEFAULT,
            prefix: b"my".as_slice().into(),
        };
        rig.tenants.set_users(&[user(rules)]).unwrap();
        let mut stream = rig.connect(2);
        assert_eq!(answer(&mut rig, &mut stream, "AUTH 1 x"), resp::lines::OK);
        assert_eq!(answer(&mut rig, &mut stream, "SET my 1"), resp::lines::OK);
        let mut words = vec![command];
        for key in &keys {
            words.push(key);
            words.extend((command == "MSET").then_some("value"));
        }
        words.push("other");
        words.extend((command == "MSET").then_some("value"));
        let input = array(&words) + &array(&["EXISTS", "my", "my2"]);
        let mut said = String::new();
        for piece in input.as_bytes().chunks(10_000) {
            send(&mut stream, std::str::from_utf8(piece).unwrap());
            rig.settle();
            said += &received(&mut stream);
        }
        assert_eq!(
            said,
            format!("{}:1\r\n", resp::lines::KEY_DENIED),
            "{command}"
        );
        let tallies = rig.node.figures().tallies();
        let denied: u64 = tallies.iter().map(|it| it.requests_denied).sum();
        assert_eq!(denied, 1, "{command}");
    }
}

/// The same in the text protocol, also with a space before the end of the line.
#[test]
fn a_long_line_whose_last_key_is_denied_is_answered_with_an_error() {
    let mut keys: Vec<String> = (0..1400).map(|nth| format!("my{nth:0200}")).collect();
    keys.push("other".to_owned());
    let keys = keys.join(" ");
    for end in ["\r\n", " \r\n", "  \n"] {
        let mut rig = Rig::new(1, Habits::EREW, |config| config.locked = true);
        let rules = Rules {
            rights: Rights::DEFAULT,
            prefix: b"my".as_slice().into(),
        };
        rig.tenants.set_users(&[user(rules)]).unwrap();
        let mut stream = rig.connect(2);
        let mut said = String::new();
        let input = format!("set auth 0 0 3\r\n1 x\r\nget {keys}{end}mn\r\n");
        for piece in input.as_bytes().chunks(10_000) {
            send(&mut stream, std::str::from_utf8(piece).unwrap());
            rig.settle();
            said += &received(&mut stream);
        }
        let expected = [lines::STORED, lines::KEY_DENIED, "MN\r\n"].concat();
        assert_eq!(said, expected, "{end:?}");
    }
}
