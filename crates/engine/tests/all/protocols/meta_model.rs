//! Random meta commands, and classic ones on the same items, beside a plain map that knows what
//! each reply must be, byte for byte but for the numbers of CAS uniques: of those it knows that
//! they change with every mutation and with nothing else.

use super::{Server, servers};
use glimmer_base::{Expiry, Moment};
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::fmt::Write;

const KEYS: usize = 6;
const COMMANDS: usize = 20_000;

#[derive(Clone)]
struct Item {
    value: String,
    flags: u32,
    expiry: Expiry,
    /// Known once a reply has shown it, or if a client has chosen it.
    cas: Option<u64>,
    stale: bool,
    won: bool,
    fetched: bool,
}

impl Default for Item {
    fn default() -> Item {
        Item {
            value: String::new(),
            flags: 0,
            expiry: Expiry::NEVER,
            cas: None,
            stale: false,
            won: false,
            fetched: false,
        }
    }
}

#[derive(Default)]
struct Model {
    items: HashMap<String, Item>,
    shown: HashMap<String, Vec<u64>>,
}

/// A command as it is sent.
struct Command {
    name: &'static str,
    key: String,
    flags: Vec<(char, String)>,
    value: String,
}

impl Command {
    fn token(&self, flag: char) -> Option<&str> {
        let found = self.flags.iter().find(|(other, _)| *other == flag);
        found.map(|(_, token)| &**token)
    }

    fn has(&self, flag: char) -> bool {
        self.token(flag).is_some()
    }

    fn number(&self, flag: char) -> Option<u64> {
        self.token(flag).map(|token| token.parse().unwrap())
    }

    fn expiry(&self, flag: char, now: Moment) -> Option<Expiry> {
        let exptime = self.token(flag)?.parse().unwrap();
        Some(match self.has('m') {
            false => Expiry::from_memcached(exptime, now),
            true => Expiry::from_memcached_ms(exptime, now),
        })
    }

    fn unit_ms(&self) -> u64 {
        if self.has('m') { 1 } else { 1000 }
    }

    fn line(&self) -> String {
        let mut line = format!("{} {}", self.name, self.key);
        if self.name == "ms" {
            write!(line, " {}", self.value.len()).unwrap();
        }
        for (flag, token) in &self.flags {
            write!(line, " {flag}{token}").unwrap();
        }
        line.push_str("\r\n");
        if self.name == "ms" {
            write!(line, "{}\r\n", self.value).unwrap();
        }
        line
    }
}

fn ttl(expiry: Expiry, now: Moment, unit_ms: u64) -> String {
    match expiry {
        Expiry::NEVER => "-1".into(),
        expiry => expiry
            .ms()
            .saturating_sub(now.ms)
            .div_ceil(unit_ms)
            .to_string(),
    }
}

impl Model {
    /// The reply, with `c?` for a CAS unique that is shown.
    fn reply(&mut self, command: &Command, now: Moment) -> String {
        self.items.retain(|_, item| !item.expiry.is_due(now));
        match command.name {
            "mg" => self.get(command, now),
            "ms" => self.store(command, now),
            "md" => self.delete(command, now),
            _ => self.count(command, now),
        }
    }

    /// What every reply repeats.
    fn repeated(command: &Command) -> String {
        let shown = command.flags.iter().filter_map(|(flag, token)| match flag {
            'O' => Some(format!(" O{token}")),
            'k' => Some(format!(" k{}", command.key)),
            _ => None,
        });
        shown.collect::<String>() + "\r\n"
    }

    fn get(&mut self, command: &Command, now: Moment) -> String {
        let made = Item {
            won: true,
            cas: command.number('E'),
            ..Item::default()
        };
        let is_new = !self.items.contains_key(&command.key);
        if is_new && !command.has('N') {
            let miss = format!("EN{}", Self::repeated(command));
            return if command.has('q') {
                String::new()
            } else {
                miss
            };
        }
        let item = self.items.entry(command.key.clone()).or_insert(made);
        let (mut line, mut wins) = (String::new(), is_new);
        for (flag, token) in &command.flags {
            match flag {
                'T' => item.expiry = command.expiry('T', now).unwrap(),
                'N' if is_new => item.expiry = command.expiry('N', now).unwrap(),
                'R' if !is_new => {
                    let (limit, unit_ms) = (command.expiry('R', now).unwrap(), command.unit_ms());
                    let left_ms = item.expiry.ms().saturating_sub(now.ms);
                    let shown_ms = left_ms.next_multiple_of(unit_ms);
                    let is_due = now.ms + shown_ms < limit.ms();
                    wins |= !item.won && item.expiry != Expiry::NEVER && is_due;
                }
                's' => write!(line, " s{}", item.value.len()).unwrap(),
                't' => write!(line, " t{}", ttl(item.expiry, now, command.unit_ms())).unwrap(),
                'c' => line.push_str(" c?"),
                'f' => write!(line, " f{}", item.flags).unwrap(),
                'h' => write!(line, " h{}", u8::from(item.fetched)).unwrap(),
                'O' => write!(line, " O{token}").unwrap(),
                'k' => write!(line, " k{}", command.key).unwrap(),
                _ => {}
            }
        }
        if !is_new {
            line.push_str(if item.won { " Z" } else { "" });
            line.push_str(if item.stale { " X" } else { "" });
            wins |= item.stale && !item.won;
        }
        line.push_str(if wins { " W" } else { "" });
        item.won |= wins;
        item.fetched |= !command.has('u');
        let is_known = command.number('C').is_some() && command.number('C') == item.cas;
        if command.has('v') && !is_known {
            format!("VA {}{line}\r\n{}\r\n", item.value.len(), item.value)
        } else {
            format!("HD{line}\r\n")
        }
    }

    fn store(&mut self, command: &Command, now: Moment) -> String {
        let old = self.items.get(&command.key).cloned();
        let compare = command.number('C');
        let new = Item {
            value: command.value.clone(),
            flags: command.number('F').unwrap_or(0) as u32,
            expiry: command.expiry('T', now).unwrap_or(Expiry::NEVER),
            cas: command.number('E'),
            ..Item::default()
        };
        let joins = matches!(command.token('M'), Some("A" | "P"));
        let outcome = match (command.token('M').unwrap_or("S"), old) {
            ("E", Some(_)) => Err("NS"),
            ("E", None) => Ok(new),
            ("A" | "P", None) => match command.expiry('N', now) {
                Some(expiry) => Ok(Item { expiry, ..new }),
                None => Err("NS"),
            },
            ("A" | "P", Some(old)) if compare.is_some() && compare != old.cas => Err("EX"),
            (mode @ ("A" | "P"), Some(old)) => {
                let (first, second) = match mode {
                    "A" => (&old.value, &new.value),
                    _ => (&new.value, &old.value),
                };
                Ok(Item {
                    value: format!("{first}{second}"),
                    flags: old.flags,
                    expiry: old.expiry,
                    ..new
                })
            }
            (_, None) if compare.is_some() => Err("NF"),
            ("R", None) => Err("NS"),
            (_, Some(old)) if compare.is_some() && compare != old.cas => {
                match command.has('I') && compare < old.cas {
                    true => Ok(Item {
                        expiry: old.expiry,
                        stale: true,
                        won: old.won,
                        ..new
                    }),
                    false => Err("EX"),
                }
            }
            _ => Ok(new),
        };
        let shown_bytes = match &outcome {
            Ok(item) if joins => item.value.len(),
            _ => command.value.len(),
        };
        let cas = if outcome.is_ok() { " c?" } else { " c0" };
        let line: String = (command.flags.iter())
            .filter_map(|(flag, token)| match flag {
                'O' => Some(format!(" O{token}")),
                'k' => Some(format!(" k{}", command.key)),
                'c' => Some(cas.into()),
                's' => Some(format!(" s{shown_bytes}")),
                _ => None,
            })
            .collect();
        match outcome {
            Ok(item) => {
                self.items.insert(command.key.clone(), item);
                match command.has('q') {
                    true => String::new(),
                    false => format!("HD{line}\r\n"),
                }
            }
            Err(code) => format!("{code}{line}\r\n"),
        }
    }

    fn delete(&mut self, command: &Command, now: Moment) -> String {
        let code = match self.items.get_mut(&command.key) {
            None => "NF",
            Some(item) if command.has('C') && command.number('C') != item.cas => "EX",
            Some(_) if !command.has('x') && !command.has('I') => {
                self.items.remove(&command.key);
                "HD"
            }
            Some(item) => {
                let chosen = command.number('E');
                if command.has('x') {
                    *item = Item {
                        flags: command.number('F').unwrap_or(0) as u32,
                        expiry: Expiry::NEVER,
                        cas: item.cas,
                        ..Item::default()
                    };
                }
                if let Some(expiry) = command.expiry('T', now) {
                    item.expiry = expiry;
                }
                if command.has('I') {
                    (item.stale, item.won, item.cas) = (true, false, None);
                }
                item.cas = chosen.or(item.cas);
                "HD"
            }
        };
        match code == "HD" && command.has('q') {
            true => String::new(),
            false => format!("{code}{}", Self::repeated(command)),
        }
    }

    fn count(&mut self, command: &Command, now: Moment) -> String {
        const NO_NUMBER: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
        let is_new = !self.items.contains_key(&command.key);
        if is_new && !command.has('N') {
            return format!("NF{}", Self::repeated(command));
        }
        let item = self.items.entry(command.key.clone()).or_default();
        let number = if is_new {
            command.number('J').unwrap_or(0)
        } else {
            if item.value.is_empty() {
                return NO_NUMBER.into();
            }
            if command.has('C') && command.number('C') != item.cas {
                return format!("EX{}", Self::repeated(command));
            }
            // As strtoull reads it: digits, and anything behind a space.
            let digits = item.value.split(' ').next().unwrap_or_default();
            let (Ok(number), true) = (digits.parse::<u64>(), item.value.len() <= 24) else {
                return NO_NUMBER.into();
            };
            let delta = command.number('D').unwrap_or(1);
            match command.token('M') {
                Some("D" | "-") => number.saturating_sub(delta),
                _ => number.wrapping_add(delta),
            }
        };
        let digits = number.to_string();
        if digits.len() > item.value.len() {
            (item.stale, item.won, item.fetched) = (false, false, false);
        }
        item.value = format!("{digits:<width$}", width = item.value.len());
        item.cas = command.number('E');
        let mut line = String::new();
        for (flag, token) in &command.flags {
            match flag {
                'T' => item.expiry = command.expiry('T', now).unwrap(),
                'N' if is_new => item.expiry = command.expiry('N', now).unwrap(),
                't' => write!(line, " t{}", ttl(item.expiry, now, command.unit_ms())).unwrap(),
                'c' => line.push_str(" c?"),
                'O' => write!(line, " O{token}").unwrap(),
                'k' => write!(line, " k{}", command.key).unwrap(),
                _ => {}
            }
        }
        match (command.has('q'), command.has('v')) {
            (true, _) => String::new(),
            (_, true) => format!("VA {}{line}\r\n{digits}\r\n", digits.len()),
            _ => format!("HD{line}\r\n"),
        }
    }

    /// Takes the CAS unique out of a reply's line, and holds it to what is known.
    fn without_unique(&mut self, command: &Command, reply: &str) -> String {
        let Some((line, rest)) = reply.split_once("\r\n") else {
            return reply.into();
        };
        let is_unique = |word: &str| {
            let digits = word.strip_prefix('c').unwrap_or("x");
            word != "c0" && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let words: Vec<&str> = line.split(' ').collect();
        if let Some(unique) = words.iter().find(|word| is_unique(word))
            && let Some(item) = self.items.get_mut(&command.key)
        {
            let unique: u64 = unique[1..].parse().unwrap();
            let shown = self.shown.entry(command.key.clone()).or_default();
            match item.cas {
                Some(known) => assert_eq!(unique, known, "it changed by itself, or not as chosen"),
                None => assert!(!shown.contains(&unique), "a mutation did not change it"),
            }
            shown.push(unique);
            item.cas = Some(unique);
        }
        let words: Vec<&str> = words
            .into_iter()
            .map(|word| if is_unique(word) { "c?" } else { word })
            .collect();
        format!("{}\r\n{rest}", words.join(" "))
    }
}

fn draw(rng: &mut SmallRng, model: &Model) -> Command {
    let key = format!("key{}", rng.random_range(0..KEYS));
    let known = model.items.get(&key).and_then(|item| item.cas);
    let name = *["mg", "mg", "mg", "ms", "ms", "md", "ma", "ma"]
        .choose(rng)
        .unwrap();
    let letters = match name {
        "mg" => "vvvstcfhkOqumTNREC",
        "ms" => "cskOqFTTIMMENCm",
        "md" => "kOqxxIITEFCm",
        _ => "vtckOqNNJDDTMECm",
    };
    let exptimes = ["0", "1", "3", "30", "1000"];
    let mut flags: Vec<(char, String)> = Vec::new();
    for _ in 0..rng.random_range(0..7) {
        let flag = letters
            .chars()
            .collect::<Vec<_>>()
            .choose(rng)
            .copied()
            .unwrap();
        if flags.iter().any(|(other, _)| *other == flag) {
            continue;
        }
        let token = match flag {
            'T' | 'N' | 'R' => exptimes.choose(rng).unwrap().to_string(),
            'O' => format!("o{}", rng.random_range(0..100)),
            'F' => rng.random::<u32>().to_string(),
            'J' => rng.random_range(0..2000_u64).to_string(),
            'D' => [1, 7, 995, u64::MAX].choose(rng).unwrap().to_string(),
            'E' => rng.random_range(1_u64 << 41..1 << 60).to_string(),
            'M' if name == "ms" => ["S", "E", "A", "P", "R"].choose(rng).unwrap().to_string(),
            'M' => ["I", "D", "+", "-"].choose(rng).unwrap().to_string(),
            'C' => match known {
                Some(unique) if rng.random_bool(0.6) => unique.to_string(),
                // Lower than any, and known to be so only if the item's own is known.
                Some(_) => "1".into(),
                None if model.items.contains_key(&key) => continue,
                // No item's: what is made now may have 1.
                None => (1_u64 << 62).to_string(),
            },
            _ => String::new(),
        };
        flags.push((flag, token));
    }
    flags.shuffle(rng);
    let value = match rng.random_range(0..4) {
        0 => String::new(),
        1 => rng.random_range(0..1200_u64).to_string(),
        2 => u64::MAX.to_string(),
        _ => "v".repeat(rng.random_range(1..40)),
    };
    Command {
        name,
        key,
        flags,
        value,
    }
}

/// A classic command that changes what the meta commands see.
fn classic(rng: &mut SmallRng, server: &mut Server, model: &mut Model) {
    let key = format!("key{}", rng.random_range(0..KEYS));
    let now = server.now;
    model.items.retain(|_, item| !item.expiry.is_due(now));
    let item = model.items.get_mut(&key);
    let (line, reply) = match (rng.random_range(0..3), item) {
        (0, Some(item)) => {
            item.fetched = true;
            let (bytes, value) = (item.value.len(), &item.value);
            let reply = format!("VALUE {key} {} {bytes}\r\n{value}\r\nEND\r\n", item.flags);
            (format!("get {key}\r\n"), reply)
        }
        (1, Some(item)) => {
            item.fetched = true;
            item.expiry = Expiry::from_memcached(5, now);
            (format!("touch {key} 5\r\n"), "TOUCHED\r\n".into())
        }
        (0, None) => (format!("get {key}\r\n"), "END\r\n".into()),
        (1, None) => (format!("touch {key} 5\r\n"), "NOT_FOUND\r\n".into()),
        _ => {
            let value = rng.random_range(0..99).to_string();
            let line = format!("set {key} 9 0 {}\r\n{value}\r\n", value.len());
            let item = Item {
                value,
                flags: 9,
                ..Item::default()
            };
            model.items.insert(key, item);
            (line, "STORED\r\n".into())
        }
    };
    let got = server.say(line.as_bytes());
    assert_eq!(String::from_utf8(got).unwrap(), reply, "to {line:?}");
}

#[test]
fn random_commands() {
    let seed = glimmer_seeds::seed();
    for (mode, mut server) in servers().into_iter().enumerate() {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut model = Model::default();
        for number in 0..COMMANDS {
            server.now.ms += if rng.random_bool(0.1) {
                rng.random_range(0..2500)
            } else {
                0
            };
            if rng.random_bool(0.2) {
                classic(&mut rng, &mut server, &mut model);
                continue;
            }
            let command = draw(&mut rng, &model);
            let line = command.line();
            let got = String::from_utf8(server.say(line.as_bytes())).unwrap();
            let expected = model.reply(&command, server.now);
            let got = model.without_unique(&command, &got);
            assert_eq!(got, expected, "mode {mode}, command {number}: {line:?}");
        }
    }
}
