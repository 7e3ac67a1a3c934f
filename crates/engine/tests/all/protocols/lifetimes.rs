//! Lifetimes in seconds and in milliseconds, by every protocol that has both, beside a map that
//! knows when each item expires: in every table, with a clock that stands still at the edges.

use super::resp::command;
use super::{Server, shown, tables};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;

const KEYS: u32 = 8;
const STEPS: usize = 4_000;

/// The value of an item, and the millisecond in which it expires.
type Item = (String, Option<u64>);
type Items = HashMap<String, Item>;

/// A request, with what is replied and what is there afterwards.
struct Step {
    said: Vec<u8>,
    reply: String,
    after: Item,
}

impl Step {
    fn new(said: String, reply: &str, after: Item) -> Step {
        Step {
            said: said.into_bytes(),
            reply: reply.into(),
            after,
        }
    }

    fn resp(said: &str, reply: &str, after: Item) -> Step {
        Step {
            said: command(said),
            ..Step::new(String::new(), reply, after)
        }
    }
}

/// A lifetime of 1 to some thousand milliseconds, in two units of which the first is whole.
struct Drawn {
    seconds: u64,
    ms: u64,
}

fn draw(rng: &mut SmallRng) -> Drawn {
    Drawn {
        seconds: rng.random_range(1..4),
        ms: *[1, 2, 3, 7, 500, 999, 1000, 1001, 3000]
            .choose(rng)
            .unwrap(),
    }
}

/// A store, whatever is there.
fn store(rng: &mut SmallRng, key: &str, now_ms: u64) -> Step {
    let value = rng.random_range(10..99).to_string();
    let Drawn { seconds, ms } = draw(rng);
    let (in_seconds, in_ms) = (Some(now_ms + 1000 * seconds), Some(now_ms + ms));
    let ok = "+OK\r\n";
    match rng.random_range(0..9) {
        0 => Step::new(
            format!("set {key} 0 {seconds} 2\r\n{value}\r\n"),
            "STORED\r\n",
            (value, in_seconds),
        ),
        1 => Step::new(
            format!("ms {key} 2 T{seconds}\r\n{value}\r\n"),
            "HD\r\n",
            (value, in_seconds),
        ),
        2..5 => Step::new(
            format!("ms {key} 2 T{ms} m\r\n{value}\r\n"),
            "HD\r\n",
            (value, in_ms),
        ),
        5 => Step::new(
            format!("set {key} 0 0 2\r\n{value}\r\n"),
            "STORED\r\n",
            (value, None),
        ),
        6 => Step::resp(&format!("SET {key} {value} PX {ms}"), ok, (value, in_ms)),
        7 => Step::resp(
            &format!("SETEX {key} {seconds} {value}"),
            ok,
            (value, in_seconds),
        ),
        _ => Step::resp(&format!("PSETEX {key} {ms} {value}"), ok, (value, in_ms)),
    }
}

/// A change of an item that is there, of which most keep its lifetime or replace it.
fn change(
    rng: &mut SmallRng,
    key: &str,
    (value, expiry): (&str, Option<u64>),
    (now_ms, epoch_unix_ms): (u64, u64),
) -> Step {
    let Drawn { seconds, ms } = draw(rng);
    let (in_seconds, in_ms) = (Some(now_ms + 1000 * seconds), Some(now_ms + ms));
    let kept = |value: String| (value, expiry);
    let touched = |expiry| (value.to_string(), expiry);
    let old = value.to_string();
    let one_if = |holds: bool| if holds { ":1\r\n" } else { ":0\r\n" };
    let latest = expiry.unwrap_or(u64::MAX);
    match rng.random_range(0..18) {
        0 => Step::new(
            format!("touch {key} {seconds}\r\n"),
            "TOUCHED\r\n",
            touched(in_seconds),
        ),
        1 => Step::new(
            format!("gat {seconds} {key}\r\n"),
            &format!("VALUE {key} 0 {}\r\n{value}\r\nEND\r\n", value.len()),
            touched(in_seconds),
        ),
        2 => Step::new(
            format!("mg {key} T{seconds}\r\n"),
            "HD\r\n",
            touched(in_seconds),
        ),
        3 | 4 => Step::new(format!("mg {key} m T{ms}\r\n"), "HD\r\n", touched(in_ms)),
        5 => Step::new(format!("ma {key} D0 T{ms} m\r\n"), "HD\r\n", touched(in_ms)),
        6 => Step::new(
            format!("append {key} 0 0 1\r\n7\r\n"),
            "STORED\r\n",
            kept(old + "7"),
        ),
        7 => Step::new(
            format!("prepend {key} 0 0 1\r\n7\r\n"),
            "STORED\r\n",
            kept(format!("7{value}")),
        ),
        8 => Step::new(
            format!("incr {key} 0\r\n"),
            &format!("{value}\r\n"),
            kept(old),
        ),
        9 => Step::resp(
            &format!("SET {key} 55 KEEPTTL"),
            "+OK\r\n",
            kept("55".into()),
        ),
        10 => Step::resp(&format!("PEXPIRE {key} {ms}"), ":1\r\n", touched(in_ms)),
        11 => Step::resp(
            &format!("PEXPIREAT {key} {}", epoch_unix_ms + now_ms + ms),
            ":1\r\n",
            touched(in_ms),
        ),
        12 => {
            let is_later = now_ms + ms > latest;
            let after = if is_later { in_ms } else { expiry };
            let said = format!("PEXPIRE {key} {ms} GT");
            Step::resp(&said, one_if(is_later), touched(after))
        }
        13 => {
            let is_earlier = now_ms + ms < latest;
            let after = if is_earlier { in_ms } else { expiry };
            let said = format!("PEXPIRE {key} {ms} LT");
            Step::resp(&said, one_if(is_earlier), touched(after))
        }
        14 => {
            let after = expiry.or(in_ms);
            let said = format!("PEXPIRE {key} {ms} NX");
            Step::resp(&said, one_if(expiry.is_none()), touched(after))
        }
        15 => Step::resp(
            &format!("PERSIST {key}"),
            one_if(expiry.is_some()),
            touched(None),
        ),
        16 => Step::resp(
            &format!("GETEX {key} PX {ms}"),
            &format!("${}\r\n{value}\r\n", value.len()),
            touched(in_ms),
        ),
        _ => Step::resp(
            &format!("EXPIRE {key} {seconds}"),
            ":1\r\n",
            touched(in_seconds),
        ),
    }
}

/// What every protocol says of a key must be what the map has.
fn check(server: &mut Server, key: &str, item: Option<&Item>, what: &str) {
    let now_ms = server.now.ms;
    let left_ms = |expiry: Option<u64>| expiry.map_or(-1, |at| (at - now_ms) as i64);
    let (meta, left, at) = match item {
        None => ("EN\r\n".into(), -2, -2),
        Some((value, expiry)) => {
            let (bytes, left) = (value.len(), left_ms(*expiry));
            let seconds = expiry.map_or(-1, |at| (at - now_ms).div_ceil(1000) as i64);
            assert_eq!(
                shown(&server.say(format!("mg {key} t\r\n").as_bytes())),
                format!("HD t{seconds}\\r\\n"),
                "{what}"
            );
            let at = expiry.map_or(-1, |at| (at + server.now.epoch_unix_ms) as i64);
            (format!("VA {bytes} t{left}\r\n{value}\r\n"), left, at)
        }
    };
    let said = format!("mg {key} t v m\r\n");
    let shown_meta = shown(&server.say(said.as_bytes()));
    assert_eq!(shown_meta, shown(meta.as_bytes()), "{what}");
    for (name, number) in [("PTTL", left), ("PEXPIRETIME", at)] {
        let reply = server.say_apart(&command(&format!("{name} {key}")));
        assert_eq!(shown(&reply), format!(":{number}\\r\\n"), "{name}, {what}");
    }
}

/// Moves the clock on by little, or to the edge of a lifetime.
fn pass_time(rng: &mut SmallRng, server: &mut Server, items: &mut Items) {
    let expiries: Vec<u64> = items.values().filter_map(|(_, expiry)| *expiry).collect();
    let now_ms = server.now.ms;
    server.now.ms += match (rng.random_range(0..10), expiries.choose(rng)) {
        (0..6, _) => 0,
        (6..8, Some(at)) => at - now_ms - rng.random_range(0..=1),
        (8, _) => rng.random_range(0..3000),
        _ => 1,
    };
    let now_ms = server.now.ms;
    items.retain(|_, (_, expiry)| expiry.is_none_or(|at| at > now_ms));
}

#[test]
fn lifetimes_of_both_kinds_end_on_the_millisecond() {
    let seed = glimmer_seeds::seed();
    for (table, mut server) in tables() {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut items = Items::new();
        for number in 0..STEPS {
            pass_time(&mut rng, &mut server, &mut items);
            let key = format!("key{}", rng.random_range(0..KEYS));
            let now = (server.now.ms, server.now.epoch_unix_ms);
            let step = match items.get(&key) {
                Some((value, expiry)) if rng.random_bool(0.7) && value.len() < 19 => {
                    change(&mut rng, &key, (value, *expiry), now)
                }
                _ => store(&mut rng, &key, now.0),
            };
            let what = format!("{table}, step {number}: {}", shown(&step.said));
            let reply = server.say_apart(&step.said);
            assert_eq!(shown(&reply), shown(step.reply.as_bytes()), "{what}");
            items.insert(key.clone(), step.after);
            check(&mut server, &key, items.get(&key), &what);
            let other = format!("key{}", rng.random_range(0..KEYS));
            check(&mut server, &other, items.get(&other), &what);
        }
    }
}
