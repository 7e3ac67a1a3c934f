//! Decides which of several servers has a key.
//!
//! The placement is consistent hashing: adding or removing a server moves only that server's share
//! of the keys. Ketama reproduces libmemcached point by point, so that native clients and clients
//! based on libmemcached (pylibmc, PHP's memcached) find each other's items.

use glimmer_base::Seed;
use md5::{Digest, Md5};

/// libmemcached leaves this port out of a server's name.
const DEFAULT_PORT: u16 = 11211;
/// Points of a server on the circle, without and with weights.
const POINTS: u32 = 100;
const POINTS_WEIGHTED: f32 = 160.0;
/// Points taken from one digest on the weighted circle.
const POINTS_PER_DIGEST: usize = 4;

/// One of several servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its host, spelled as other clients spell it. Keys are placed by this name, so `localhost`
    /// and `127.0.0.1` are different servers.
    pub host: String,
    /// Its TCP port, which is part of the name by which keys are placed.
    pub port: u16,
    /// Its first native port.
    pub native_port: u16,
    /// Its share of the keys relative to the other servers. Zero counts as one.
    pub weight: u32,
}

impl Member {
    /// A server with memcached's port and no weight.
    pub fn of(host: impl Into<String>, native_port: u16) -> Member {
        Member {
            host: host.into(),
            port: DEFAULT_PORT,
            native_port,
            weight: 1,
        }
    }
}

/// How keys are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// libmemcached's `MEMCACHED_BEHAVIOR_KETAMA` with its default hash, Jenkins' one-at-a-time. In
    /// pylibmc: `ketama`.
    Ketama,
    /// libmemcached's `MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED` with MD5. In pylibmc: `ketama_weighted`;
    /// in PHP: `OPT_LIBKETAMA_COMPATIBLE`.
    KetamaWeighted,
    /// Rendezvous hashing (highest random weight): the most even placement, exact by weight. The
    /// cost of placing a key grows with the number of servers.
    Rendezvous,
}

/// Chooses the server for each request of a client.
#[derive(Clone, Debug)]
pub struct Choice {
    /// `None` if there is only one server.
    places: Option<Places>,
    /// Whether the keys of servers that are away are placed on the remaining servers.
    ejects: bool,
}

impl Choice {
    /// The only server.
    pub fn one() -> Choice {
        Choice {
            places: None,
            ejects: false,
        }
    }

    /// A choice among these servers.
    pub fn among(placement: Placement, members: &[Member], ejects: bool) -> Choice {
        if members.len() == 1 {
            return Choice::one();
        }
        Choice {
            places: Some(Places::new(placement, members)),
            ejects,
        }
    }

    /// The server to ask for a key. If all servers are away, it is the server that owns the key.
    pub fn of(&self, key: &[u8], is_away: impl Fn(usize) -> bool) -> usize {
        match &self.places {
            None => 0,
            Some(places) if self.ejects => {
                let answers = places.among(key, |server| !is_away(server));
                answers.unwrap_or_else(|| places.of(key))
            }
            Some(places) => places.of(key),
        }
    }
}

/// Maps keys to servers.
#[derive(Clone, Debug)]
pub enum Places {
    /// Each server has points on a circle.
    Circle(Circle),
    /// Seed and weight of each server. A key belongs to the server with the highest score.
    Scores(Vec<(Seed, f64)>),
}

/// Points on a circle in ascending order, each with its server. A key belongs to the first point at
/// or after its hash.
#[derive(Clone, Debug)]
pub struct Circle {
    points: Vec<(u32, u32)>,
    hash: fn(&[u8]) -> u32,
}

impl Places {
    /// A map to these servers.
    pub fn new(placement: Placement, members: &[Member]) -> Places {
        // As in libmemcached: if any server has a weight, the circle is the weighted one, for every
        // hash.
        let has_weights = members.iter().any(|member| member.weight > 1);
        let (mut points, hash): (_, fn(&[u8]) -> u32) = match placement {
            Placement::Ketama if has_weights => (weighted(members), one_at_a_time),
            Placement::Ketama => (unweighted(members), one_at_a_time),
            Placement::KetamaWeighted => (weighted(members), md5),
            Placement::Rendezvous => {
                let score = |member: &Member| {
                    let name = format!("{}:{}", member.host, member.port);
                    let seed = Seed(Seed(0).keyhash(name.as_bytes()).0);
                    (seed, f64::from(member.weight.max(1)))
                };
                return Places::Scores(members.iter().map(score).collect());
            }
        };
        points.sort_unstable();
        Places::Circle(Circle { points, hash })
    }

    /// The server of a key, by index; 0 if there is no server.
    pub fn of(&self, key: &[u8]) -> usize {
        self.among(key, |_| true).unwrap_or(0)
    }

    /// The server of a key if only the servers that satisfy `has_any` take part; `None` if no
    /// server does. Keys whose own server takes part do not move.
    pub fn among(&self, key: &[u8], has_any: impl Fn(usize) -> bool) -> Option<usize> {
        match self {
            Places::Circle(Circle { points, hash }) => {
                let at = hash(key);
                let point = points.partition_point(|&(point, _)| point < at);
                let (before, from_point) = points.split_at(point);
                let members = from_point.iter().chain(before);
                let mut members = members.map(|&(_, member)| member as usize);
                members.find(|&member| has_any(member))
            }
            Places::Scores(members) => {
                let members = members.iter().enumerate();
                let scores = members.filter(|&(member, _)| has_any(member)).map(
                    |(member, &(seed, weight))| {
                        // In the open interval from 0 to 1.
                        let drawn = (seed.keyhash(key).0 >> 11) as f64 + 0.5;
                        (member, -weight / (drawn / (1u64 << 53) as f64).ln())
                    },
                );
                let best = scores.max_by(|a, b| a.1.total_cmp(&b.1));
                best.map(|(member, _)| member)
            }
        }
    }
}

fn unweighted(members: &[Member]) -> Vec<(u32, u32)> {
    let points = members.iter().enumerate().flat_map(|(index, member)| {
        let point = move |n| (one_at_a_time(member.point(n).as_bytes()), index as u32);
        (0..POINTS).map(point)
    });
    points.collect()
}

fn weighted(members: &[Member]) -> Vec<(u32, u32)> {
    let weights = members.iter().map(|member| u64::from(member.weight.max(1)));
    let total: u64 = weights.sum();
    let mut points = Vec::new();
    for (index, member) in members.iter().enumerate() {
        // Rounded exactly as in libmemcached: one point more or fewer would move keys.
        let share = member.weight.max(1) as f32 / total as f32;
        let digests = share * POINTS_WEIGHTED / POINTS_PER_DIGEST as f32 * members.len() as f32;
        let digests = (f64::from(digests) + 1e-10) as f32;
        for n in 0..digests as u32 {
            let digest = Md5::digest(member.point(n));
            let words = digest.chunks(size_of::<u32>()).take(POINTS_PER_DIGEST);
            points.extend(words.map(|word| (first_word(word), index as u32)));
        }
    }
    points
}

impl Member {
    /// The string that libmemcached hashes for one point of a server.
    fn point(&self, n: u32) -> String {
        let Member { host, port, .. } = self;
        match *port {
            DEFAULT_PORT => format!("{host}-{n}"),
            port => format!("{host}:{port}-{n}"),
        }
    }
}

fn md5(key: &[u8]) -> u32 {
    first_word(&Md5::digest(key))
}

fn first_word(digest: &[u8]) -> u32 {
    u32::from_le_bytes(*digest.first_chunk().expect("a digest has four words"))
}

/// Jenkins' one-at-a-time hash. libmemcached adds each byte as a `char`, which has a sign on x86:
/// the bytes of letters beyond ASCII are negative.
fn one_at_a_time(key: &[u8]) -> u32 {
    let mut hash = 0u32;
    for &byte in key {
        hash = hash.wrapping_add_signed(byte.cast_signed().into());
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(weights: &[u32]) -> Vec<Member> {
        let member = |(n, &weight): (usize, &u32)| Member {
            host: format!("10.0.0.{n}"),
            port: 11211 + n as u16,
            native_port: 11300,
            weight,
        };
        weights.iter().enumerate().map(member).collect()
    }

    fn shares(placement: Placement, members: &[Member]) -> Vec<f64> {
        let places = Places::new(placement, members);
        let mut counts = vec![0.0; members.len()];
        const KEYS: u32 = 20_000;
        for key in 0..KEYS {
            counts[places.of(&key.to_le_bytes())] += 1.0 / f64::from(KEYS);
        }
        counts
    }

    const ALL: [Placement; 3] = [
        Placement::Ketama,
        Placement::KetamaWeighted,
        Placement::Rendezvous,
    ];

    /// A placement, the weights, and the expected server of each key: `key:0` to `key:39`, and
    /// `straße:0` to `straße:39`.
    type Known = (Placement, [u32; 4], [&'static str; 2]);

    const LIBMEMCACHED: [Known; 4] = [
        (
            Placement::Ketama,
            [1, 1, 1, 1],
            [
                "1211110120301001000231300023300012021301",
                "0220022202323011300221032132100300300230",
            ],
        ),
        (
            Placement::KetamaWeighted,
            [1, 1, 1, 1],
            [
                "1213002302030122233020120313001113302232",
                "3211320201310022033112311331010121210203",
            ],
        ),
        (
            Placement::Ketama,
            [3, 1, 2, 1],
            [
                "0000302322003022222332100202201022202200",
                "2220013300002022222212232101000020222322",
            ],
        ),
        (
            Placement::KetamaWeighted,
            [3, 1, 2, 1],
            [
                "0213002300030222233000020313002102300222",
                "0211020200000022013212303031010120020203",
            ],
        ),
    ];

    /// The server indices that pylibmc 1.6.3 (libmemcached 1.0.16, x86-64) used for the keys, per
    /// set of weights. They were recorded with servers on loopback that noted the keys requested
    /// from them.
    #[test]
    fn keys_are_where_libmemcached_has_them() {
        let hosts = [
            ("127.0.0.21", 21211),
            ("127.0.0.22", 11299),
            ("127.0.0.23", 21211),
            ("127.0.0.24", 11211),
        ];
        for (placement, weights, expected) in LIBMEMCACHED {
            let members: Vec<_> = hosts
                .iter()
                .zip(weights)
                .map(|(&(host, port), weight)| Member {
                    host: host.to_owned(),
                    port,
                    native_port: 0,
                    weight,
                })
                .collect();
            let places = Places::new(placement, &members);
            for (name, expected) in ["key", "straße"].into_iter().zip(expected) {
                let found: String = (0..40)
                    .map(|n| places.of(format!("{name}:{n}").as_bytes()).to_string())
                    .collect();
                assert_eq!(found, expected, "{placement:?} {weights:?}");
            }
        }
    }

    #[test]
    fn a_server_less_moves_its_own_keys_only() {
        let all = members(&[1, 1, 1, 1, 1]);
        for placement in ALL {
            let before = Places::new(placement, &all);
            let after = Places::new(placement, &all[..4]);
            for key in 0..2_000u32 {
                let key = key.to_le_bytes();
                if before.of(&key) < 4 {
                    assert_eq!(after.of(&key), before.of(&key), "{placement:?}");
                }
            }
        }
    }

    #[test]
    fn the_keys_of_a_server_that_is_left_out_go_where_they_would_without_it() {
        let all = members(&[1, 1, 1, 1, 1]);
        for placement in ALL {
            let places = Places::new(placement, &all);
            let without = Places::new(placement, &all[..4]);
            let mut moved = [0; 4];
            for key in 0..2_000u32 {
                let key = key.to_le_bytes();
                let place = places.among(&key, |member| member != 4).unwrap();
                match places.of(&key) {
                    4 => moved[place] += 1,
                    own => assert_eq!(place, own, "{placement:?}"),
                }
                // With weights, the circle of fewer servers has different points.
                if placement != Placement::KetamaWeighted {
                    assert_eq!(place, without.of(&key), "{placement:?}");
                }
            }
            assert!(
                moved.iter().all(|&keys| keys > 20),
                "{placement:?} {moved:?}"
            );
            assert_eq!(places.among(b"key", |_| false), None);
        }
    }

    #[test]
    fn keys_are_spread_by_weight() {
        for share in shares(Placement::Ketama, &members(&[1; 4])) {
            assert!((0.18..0.33).contains(&share), "{share}");
        }
        let weights = [1, 2, 4, 8];
        for (placement, slack) in [
            (Placement::KetamaWeighted, 0.35),
            (Placement::Rendezvous, 0.08),
        ] {
            let shares = shares(placement, &members(&weights));
            for (share, weight) in shares.iter().zip(weights) {
                let due = f64::from(weight) / 15.0;
                assert!(
                    (share / due - 1.0).abs() < slack,
                    "{placement:?} {shares:?}"
                );
            }
        }
    }

    #[test]
    fn weights_may_have_any_sum() {
        for placement in ALL {
            let places = Places::new(placement, &members(&[u32::MAX, 1]));
            assert_eq!(places.of(b"key"), 0, "{placement:?}");
            for share in shares(placement, &members(&[u32::MAX; 4])) {
                assert!((0.15..0.36).contains(&share), "{placement:?} {share}");
            }
        }
    }

    #[test]
    fn one_server_has_everything_and_none_is_no_crash() {
        for placement in ALL {
            assert_eq!(Places::new(placement, &members(&[3])).of(b"key"), 0);
            assert_eq!(Places::new(placement, &[]).of(b"key"), 0);
        }
    }
}
