//! A client that computes keys which collide with another client's, from the seed that every native
//! client is told.

use crate::{PATIENCE, Server, directory, start};
use glimmer_base::{Keyhash, Seed};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// Far more keys than a chain of the index has entries.
const COLLIDING: usize = 1_000;

/// What XXH3 adds to a key of 4 to 8 bytes and to its length, and how it mixes them, backwards: the
/// key of 8 bytes with this hash. (The mixing is `XXH3_rrmxmx` of its reference implementation.)
fn key_of(seed: Seed, Keyhash(hash): Keyhash) -> [u8; 8] {
    const FACTOR: u64 = 0x9FB2_1C65_1E98_DF25;
    const SECRET: u64 = 0x1CAD_21F7_2C81_017C ^ 0xDB97_9083_E96D_D4DE;
    // Newton's iteration doubles the number of bits that are right.
    let mut inverse = FACTOR;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(FACTOR.wrapping_mul(inverse)));
    }
    let mut mixed = hash ^ hash >> 28 ^ hash >> 56;
    mixed = mixed.wrapping_mul(inverse);
    mixed ^= (mixed >> 35) + 8;
    mixed = mixed.wrapping_mul(inverse);
    // The step is its own inverse when it is made 64 times.
    for _ in 0..63 {
        mixed ^= mixed.rotate_left(49) ^ mixed.rotate_left(24);
    }
    let Seed(seed) = seed;
    let seed = seed ^ u64::from((seed as u32).swap_bytes()) << 32;
    (mixed ^ SECRET.wrapping_sub(seed))
        .rotate_right(32)
        .to_le_bytes()
}

#[test]
fn the_hash_of_clients_can_be_inverted() {
    for number in 0..1_000u64 {
        let seed = Seed(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let key = (!number).wrapping_mul(0xD6E8_FEB8_6659_FD93).to_le_bytes();
        assert_eq!(key_of(seed, seed.keyhash(&key)), key);
    }
}

/// Keys whose public keyhashes differ from that of a key in nothing but the tag, as far as a line
/// of memcached's text protocol can have them.
fn colliding(seed: Seed, victim: &[u8]) -> impl Iterator<Item = [u8; 8]> {
    let Keyhash(of_victim) = seed.keyhash(victim);
    (0..=u16::MAX)
        .map(move |tag| key_of(seed, Keyhash(of_victim & !0xFFFF | u64::from(tag))))
        .filter(|key| key.iter().all(|&byte| byte > b' ' && byte != 0x7F))
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn of(server: &Server) -> Client {
        let stream = TcpStream::connect(&server.text).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(BufReader::new(stream))
    }

    fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.0.get_mut().write_all(request).unwrap();
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line).unwrap();
        line
    }

    fn set(&mut self, key: &[u8]) -> Vec<u8> {
        self.ask(&[b"set ", key, b" 0 0 1\r\nx\r\n"].concat())
    }

    fn has(&mut self, key: &[u8]) -> bool {
        self.ask(&[b"mg ", key, b"\r\n"].concat()) == b"HD\r\n"
    }
}

/// Attacks a server with memory for some hundred thousand such items.
fn attack(arguments: &[&str]) {
    const VICTIM: &[u8] = b"victim";
    let server = start(&[&["-m", "64", "-t", "1"], arguments].concat());
    let seed = directory(&server).0.seed;
    let mut client = Client::of(&server);
    assert_eq!(client.set(VICTIM), b"STORED\r\n");
    for key in colliding(seed, VICTIM).take(COLLIDING) {
        assert_eq!(client.set(&key), b"STORED\r\n", "{arguments:?}");
        assert!(client.has(&key), "{arguments:?}");
    }
    assert!(client.has(VICTIM), "{arguments:?}");
}

#[test]
fn no_client_can_compute_keys_that_displace_another() {
    attack(&[]);
    attack(&["--table", "memc3"]);
}

#[test]
fn no_client_can_compute_keys_that_block_a_bucket() {
    attack(&["-M"]);
}
