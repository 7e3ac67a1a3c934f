//! What a server with a packet program wakes, and what it leaves behind.

use std::io::Read;
use std::net::{Ipv4Addr, Shutdown};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::bpf::is_loaded;
use crate::hammer;
use crate::link::{Driver, Link, has, ip};
use crate::reader::{Reader, make_hot};
use crate::server::{PATIENCE, Server, Text};

/// Starts of one test, and of one in a long run.
const STARTS: usize = 5;
const STARTS_LONG: usize = 100;
/// Seconds in one of which nobody is woken.
const SECONDS: usize = 20;

fn start(body: &str, arguments: &[&str]) -> Option<(Link, Server)> {
    let link = Link::make(Driver::Xdp)?;
    let server = has(Server::at(&link, body, arguments))?;
    Some((link, server))
}

/// Requires that no program is left, once the kernel has cleared up.
#[track_caller]
fn expect_nothing(link: &Link, ids: &[u32]) {
    let begin = Instant::now();
    while !link.programs().is_empty() || ids.iter().any(|id| is_loaded(*id)) {
        assert!(begin.elapsed() < PATIENCE, "{:?}, {ids:?}", link.programs());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Pinned programs and maps.
fn pinned() -> usize {
    std::fs::read_dir("/sys/fs/bpf").map_or(0, |folder| folder.count())
}

#[test]
fn nothing_is_left_after_any_end() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let pinned_before = pinned();
    let starts = if hammer::is_long() {
        STARTS_LONG
    } else {
        STARTS
    };
    for nth in 0..starts {
        let body = ["xdp", "tcx"][nth % 2];
        let Some(mut server) = has(Server::at(&link, body, &[])) else {
            return;
        };
        make_hot(&server, "a", "1");
        let ids = link.programs();
        assert!(!ids.is_empty() && ids.iter().all(|id| is_loaded(*id)));
        match nth / 2 % 2 {
            0 => server.kill(),
            _ => assert!(server.stop().success()),
        }
        expect_nothing(&link, &ids);
    }
    assert_eq!(pinned(), pinned_before);
}

#[test]
fn another_user_keeps_it_exact() {
    let Some((link, mut server)) = start("xdp", &["-u", "nobody"]) else {
        return;
    };
    // It has become that user before it answers.
    make_hot(&server, "a", "0");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(!line("Uid:").contains("\t0\t") && line("CapEff:").ends_with("0000000000000000"));
    for value in ["1", "22", "333"] {
        make_hot(&server, "a", value);
    }
    assert!(server.figure("stats accelerator", "retracts") > 0);
    let mut text = Text::connect(&server);
    assert_eq!(text.say("flush_all\r\n", &[]), "OK\r\n");
    Reader::connect(server.udp[0]).expect("a", None);
    let ids = link.programs();
    assert!(server.stop().success());
    expect_nothing(&link, &ids);
}

#[test]
fn nothing_is_answered_while_somebody_watches() {
    let Some((_link, server)) = start("xdp", &[]) else {
        return;
    };
    make_hot(&server, "a", "1");
    let reader = Reader::connect(server.udp[0]);
    let paused = || server.text_figure("stats accelerator", "paused");
    let hits = || server.figure("stats accelerator", "hits");
    for _ in 0..3 {
        let mut watcher = Text::connect(&server);
        watcher.say("watch fetchers\r\n", &["OK"]);
        assert_eq!(paused(), "watched");
        let before = hits();
        (0..20).for_each(|_| reader.expect("a", Some("1")));
        assert_eq!(hits(), before);
        watcher.stream.shutdown(Shutdown::Write).unwrap();
        while watcher.reader.read(&mut [0; 4096]).unwrap() > 0 {}
        let begin = Instant::now();
        while paused() != "no" {
            assert!(begin.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(10));
        }
        make_hot(&server, "a", "1");
    }
}

#[test]
fn nothing_is_answered_once_the_clock_was_moved() {
    let Some((_link, server)) = start("tcx", &["--debug-commands"]) else {
        return;
    };
    make_hot(&server, "a", "1");
    let mut text = Text::connect(&server);
    text.say("touch a 10\r\n", &[]);
    text.say("debugtime 11\r\n", &[]);
    assert_eq!(
        server.text_figure("stats accelerator", "paused"),
        "clock_moved"
    );
    Reader::connect(server.udp[0]).expect("a", None);
}

/// A packet program answers without the server.
#[test]
fn hits_wake_nobody_and_count() {
    let Some((_link, server)) = start("xdp", &[]) else {
        return;
    };
    make_hot(&server, "a", "1");
    comes_to_rest(&server);
    let reader = Reader::connect(server.udp[0]);
    let before = wake_ups(&server);
    (0..1000).for_each(|_| reader.expect("a", Some("1")));
    assert_eq!(wake_ups(&server), before, "wake-ups");
    assert!(server.figure("stats accelerator", "hits_get") >= 1000);
    assert!(server.figure("stats", "get_hits") >= 1000);
    let body = ["body", "interface", "mode", "policy"];
    let is = body.map(|name| server.text_figure("stats accelerator", name));
    assert_eq!(is, ["xdp", "server", "driver", "counting"]);
    comes_to_rest(&server);
}

/// Hits are credited to the items, so that eviction keeps what is read.
#[test]
fn hits_are_credited() {
    let Some((_link, server)) = start("xdp", &[]) else {
        return;
    };
    make_hot(&server, "a", "1");
    let hits = server.figure("stats accelerator", "hits");
    let begin = Instant::now();
    while server.figure("stats accelerator", "credited") < hits {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(server.text_figure("stats hotkeys", "a").ends_with(" 1 B"));
}

/// The program goes with its interface, and the server says so.
#[test]
fn an_interface_that_goes_is_reported() {
    for body in ["xdp", "tcx"] {
        let Some((link, mut server)) = start(body, &[]) else {
            return;
        };
        make_hot(&server, "a", "1");
        assert_eq!(server.figure("stats accelerator", "live"), 1);
        server.address.set_ip(Ipv4Addr::LOCALHOST.into());
        link.beyond(|| {
            ip("link delete server");
            let begin = Instant::now();
            while server.text_figure("stats accelerator", "paused") != "device_lost" {
                assert!(begin.elapsed() < PATIENCE);
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(server.figure("stats accelerator", "live"), 0);
            assert_eq!(
                Text::connect(&server).say("get a\r\n", &["END"]),
                "VALUE a 0 1\r\n1\r\nEND\r\n"
            );
        });
        assert!(server.stop().success());
        let lines = server.lines();
        let warnings = lines.iter().filter(|it| it.contains("interface has gone"));
        assert_eq!(warnings.count(), 1, "{lines:?}");
    }
}

/// The maps are part of what the server plans to use.
#[test]
fn the_maps_count_within_the_memory() {
    let arguments = ["-m", "64", "--accelerate-slots", "8192"];
    let Some((_link, server)) = start("xdp", &arguments) else {
        return;
    };
    let planned = server.figure("stats memory", "accelerator_bytes");
    let folder = format!("/proc/{}/fdinfo", server.pid());
    let maps = std::fs::read_dir(folder).unwrap().map(|entry| {
        let info = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        let map = info.lines().find(|line| line.starts_with("map_id:"));
        let bytes = info.lines().find_map(|line| line.strip_prefix("memlock:"));
        map.and(bytes)
            .map_or(0, |bytes| bytes.trim().parse().unwrap())
    });
    let maps: u64 = maps.sum();
    println!("{maps} bytes of maps, {planned} bytes planned");
    assert!(maps <= planned);
}

/// How often threads of the server have gone to sleep.
fn wake_ups(server: &Server) -> u64 {
    let tasks = format!("/proc/{}/task", server.pid());
    let tasks = std::fs::read_dir(Path::new(&tasks)).unwrap();
    let counts = tasks.map(|task| {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let name = "voluntary_ctxt_switches:";
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse::<u64>().unwrap()
    });
    counts.sum()
}

/// Requires that there is a second in which no thread of the server is woken.
fn comes_to_rest(server: &Server) {
    let woken = || {
        let before = wake_ups(server);
        std::thread::sleep(Duration::from_secs(1));
        wake_ups(server) - before
    };
    let mut counts = std::iter::repeat_with(woken).take(SECONDS);
    assert!(counts.any(|count| count == 0), "it does not come to rest");
}
