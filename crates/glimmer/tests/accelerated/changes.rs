//! Changes of items by every protocol. The keys of one residue are changed by one thread alone, so
//! it knows which number comes next.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use glimmer_client::{Client, StoreError};

use crate::hammer::{Random, Rig, patient};
use crate::keys::{KEYS, MORTAL, UP, counts, name, number, value};
use crate::server::{PATIENCE, Server, Text};

/// Reads to a change.
const READS_PER_CHANGE: u64 = 20;
/// Bytes of small values at most.
const SMALL_BYTES: u64 = 300;
/// Bytes of large values. They fit into no slot, and are written slice by slice.
const LARGE_BYTES: usize = 20_000;

/// The numbers of verbs that remove an item.
const REMOVALS: [u64; 4] = [11, 12, 16, 17];

/// What somebody was told of a change.
enum Answer {
    /// This number is stored.
    Stored(u64),
    /// The item has gone.
    Gone,
    Other,
}

/// Connections of one thread.
struct Changer {
    text: Text,
    resp: Text,
    binary: TcpStream,
    native: Client,
    random: Random,
}

impl Rig<'_> {
    /// Changes keys of one residue, at a rate that the reads set.
    pub fn change(&self, part: usize, seed: u64) {
        let mut changer = Changer::connect(self.server, seed);
        let mut next = [1u64; KEYS];
        let mut due = 0;
        while !self.is_over.load(SeqCst) {
            if self.reads.load(SeqCst) < due {
                std::thread::sleep(Duration::from_micros(200));
                continue;
            }
            due += READS_PER_CHANGE;
            let key = changer.choose(part);
            let told = &self.keys[key];
            let is_counted = counts(key) && changer.random.below(2) > 0;
            let answer = match is_counted {
                true => changer.count(key),
                false => {
                    next[key] += 1;
                    changer.store_or_remove(key, next[key])
                }
            };
            match answer {
                Answer::Stored(number) => {
                    next[key] = next[key].max(number);
                    told.of(number);
                }
                Answer::Gone => told.gone(next[key]),
                Answer::Other => {}
            }
        }
    }
}

impl Changer {
    fn connect(server: &Server, seed: u64) -> Changer {
        let binary = TcpStream::connect(server.address).unwrap();
        binary.set_nodelay(true).unwrap();
        binary.set_read_timeout(Some(PATIENCE)).unwrap();
        Changer {
            text: Text::connect(server),
            resp: Text::connect(server),
            binary,
            native: Client::connect_with(server.native(), patient()).unwrap(),
            random: Random(seed),
        }
    }

    /// A key of this residue. Two keys are changed so rarely that their items are evicted.
    fn choose(&mut self, part: usize) -> usize {
        let key = 2 * self.random.below(KEYS as u64 / 2) as usize + part;
        let is_rare = key < 2 && self.random.below(16) > 0;
        if is_rare { key + 2 } else { key }
    }

    /// Stores a value with this number, or changes the item in another way.
    fn store_or_remove(&mut self, key: usize, number: u64) -> Answer {
        let rest = match self.random.below(16) {
            0 => LARGE_BYTES,
            _ => self.random.below(SMALL_BYTES) as usize,
        };
        let value = value(key, number, rest);
        let (name, bytes) = (name(key), value.len());
        let expiry = if key == MORTAL { 1 } else { 0 };
        let store = |verb: &str| format!("{verb} {name} 0 {expiry} {bytes}\r\n{value}\r\n");
        let text = &mut self.text;
        let mut verb = self.random.below(19);
        // A key that has gone stays out of the slots for a while, and then nothing is tested.
        if REMOVALS.contains(&verb) && self.random.below(4) > 0 {
            verb = 0;
        }
        let answer = match verb {
            0..3 => text.say(&store("set"), &[]),
            3 => text.say(&store("add"), &[]),
            4 => text.say(&store("replace"), &[]),
            5 if !counts(key) => {
                let bytes = bytes + 1;
                text.say(&format!("append {name} 0 0 {bytes}\r\n:{value}\r\n"), &[])
            }
            6 if !counts(key) => {
                let bytes = bytes + 1;
                text.say(&format!("prepend {name} 0 0 {bytes}\r\n{value}:\r\n"), &[])
            }
            7 => {
                let store = format!("ms {name} {bytes} T{expiry}\r\n{value}\r\n");
                match &*text.say(&store, &[]) {
                    "HD\r\n" => return Answer::Stored(number),
                    _ => return Answer::Other,
                }
            }
            8 => {
                let put = (self.native).put(name.as_bytes(), value.as_bytes(), 0, expiry as u32);
                match put {
                    Ok(()) => return Answer::Stored(number),
                    Err(StoreError::OutOfMemory) => return Answer::Other,
                    Err(error) => panic!("{error}"),
                }
            }
            9 => text.say(&format!("touch {name} {expiry}\r\n"), &[]),
            10 => text.say(&format!("gat {expiry} {name}\r\n"), &["END"]),
            11 => match &*text.say(&format!("md {name}\r\n"), &[]) {
                "HD\r\n" => return Answer::Gone,
                _ => return Answer::Other,
            },
            12 => text.say(&format!("delete {name}\r\n"), &[]),
            13 | 14 => self.compare_and_swap(&name, expiry, &value),
            15 => return self.set_in_binary(&name, expiry, &value, number),
            16 => match self.ask_in_binary(0x04, &[], &name, "").0 {
                0 => return Answer::Gone,
                _ => return Answer::Other,
            },
            17 => match &*self.resp.say(&command(&["DEL", &name]), &[]) {
                ":1\r\n" => return Answer::Gone,
                _ => return Answer::Other,
            },
            _ => {
                let mut words = vec!["SET", &name, &value];
                if key == MORTAL {
                    words.extend(["EX", "1"]);
                }
                match &*self.resp.say(&command(&words), &[]) {
                    "+OK\r\n" => return Answer::Stored(number),
                    _ => return Answer::Other,
                }
            }
        };
        match &*answer {
            "STORED\r\n" => Answer::Stored(number),
            "DELETED\r\n" => Answer::Gone,
            _ => Answer::Other,
        }
    }

    fn compare_and_swap(&mut self, name: &str, expiry: u64, value: &str) -> String {
        let seen = self.text.say(&format!("gets {name}\r\n"), &["END"]);
        let line = seen.lines().next().unwrap();
        let unique = line.split(' ').nth(4).unwrap_or("1");
        let bytes = value.len();
        let store = format!("cas {name} 0 {expiry} {bytes} {unique}\r\n{value}\r\n");
        self.text.say(&store, &[])
    }

    fn set_in_binary(&mut self, name: &str, expiry: u64, value: &str, number: u64) -> Answer {
        let extras = [[0; 4], (expiry as u32).to_be_bytes()].concat();
        match self.ask_in_binary(0x01, &extras, name, value).0 {
            0 => Answer::Stored(number),
            _ => Answer::Other,
        }
    }

    /// Counts with a key, by one of the protocols.
    fn count(&mut self, key: usize) -> Answer {
        let name = name(key);
        let by = 1 + self.random.below(3);
        let grows = key == UP;
        let counted = match self.random.below(3) {
            0 => {
                let verb = if grows { "incr" } else { "decr" };
                self.text.say(&format!("{verb} {name} {by}\r\n"), &[])
            }
            1 => {
                let mode = if grows { "I" } else { "D" };
                let request = format!("ma {name} v M{mode} D{by}\r\n");
                let line = self.text.say(&request, &[]);
                match line.starts_with("VA ") {
                    true => self.text.say("", &[]),
                    false => line,
                }
            }
            _ => {
                let opcode = if grows { 0x05 } else { 0x06 };
                // This expiry means that a missing item is not made.
                let extras = [&by.to_be_bytes()[..], &[0; 8], &[0xff; 4]].concat();
                let (status, body) = self.ask_in_binary(opcode, &extras, &name, "");
                match status {
                    0 => u64::from_be_bytes(body.try_into().unwrap()).to_string(),
                    _ => String::new(),
                }
            }
        };
        let digits = counted.trim_end();
        match digits.parse::<u64>() {
            Ok(_) => Answer::Stored(number(key, digits.as_bytes())),
            Err(_) => Answer::Other,
        }
    }

    /// Returns the status and what follows the extras of the reply.
    fn ask_in_binary(
        &mut self,
        opcode: u8,
        extras: &[u8],
        key: &str,
        value: &str,
    ) -> (u16, Vec<u8>) {
        let body_bytes = (extras.len() + key.len() + value.len()) as u32;
        let mut request = vec![
            0x80,
            opcode,
            0,
            key.len() as u8,
            extras.len() as u8,
            0,
            0,
            0,
        ];
        request.extend(body_bytes.to_be_bytes());
        request.extend([0; 12]);
        request.extend(extras);
        request.extend(key.bytes());
        request.extend(value.bytes());
        self.binary.write_all(&request).unwrap();
        let mut header = [0; 24];
        self.binary.read_exact(&mut header).unwrap();
        assert_eq!(header[..2], [0x81, opcode]);
        let bytes = u32::from_be_bytes(header[8..12].try_into().unwrap());
        let mut body = vec![0; bytes as usize];
        self.binary.read_exact(&mut body).unwrap();
        body.drain(..usize::from(header[4]));
        (u16::from_be_bytes([header[6], header[7]]), body)
    }
}

/// A command of RESP.
fn command(words: &[&str]) -> String {
    let mut command = format!("*{}\r\n", words.len());
    for word in words {
        command.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    command
}
