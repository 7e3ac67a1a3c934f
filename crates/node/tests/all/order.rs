//! Replies keep each connection's order, whatever crosses to whom.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::thread;

use crate::support::{Access, Client, Habits, start};
use glimmer_base::Seed;
use glimmer_base::limits::REPLY_BYTES_HIGH;
use glimmer_dispatch::{Ask, Decision, Layout, POLICIES, PartitionMap, Plan, Policy, Role};
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// What the server should answer, computed one request after the other.
#[derive(Default)]
struct Oracle {
    items: HashMap<String, String>,
    requests: Vec<u8>,
    replies: Vec<u8>,
}

impl Oracle {
    fn endpoint(&mut self, request: &str, reply: &str) {
        self.requests.extend_from_slice(request.as_bytes());
        self.replies.extend_from_slice(reply.as_bytes());
    }

    fn store(&mut self, name: &str, key: &str, value: String, quiet: bool) {
        let stores = match name {
            "set" => true,
            "add" => !self.items.contains_key(key),
            _ => self.items.contains_key(key),
        };
        let noreply = if quiet { " noreply" } else { "" };
        let request = format!("{name} {key} 0 0 {}{noreply}\r\n{value}\r\n", value.len());
        let reply = match (quiet, stores) {
            (true, _) => "",
            (false, true) => "STORED\r\n",
            (false, false) => "NOT_STORED\r\n",
        };
        self.endpoint(&request, reply);
        if stores {
            let old = self.items.entry(key.to_string()).or_default();
            if name != "append" {
                old.clear();
            }
            old.push_str(&value);
        }
    }

    fn get(&mut self, keys: &[String]) {
        let mut reply = String::new();
        for key in keys {
            if let Some(value) = self.items.get(key) {
                reply += &format!("VALUE {key} 0 {}\r\n{value}\r\n", value.len());
            }
        }
        self.endpoint(&format!("get {}\r\n", keys.join(" ")), &(reply + "END\r\n"));
    }

    fn delete(&mut self, key: &str) {
        let found = self.items.remove(key).is_some();
        let reply = if found {
            "DELETED\r\n"
        } else {
            "NOT_FOUND\r\n"
        };
        self.endpoint(&format!("delete {key}\r\n"), reply);
    }

    /// One random request for the keys of one client.
    fn step(&mut self, client: usize, rng: &mut SmallRng) {
        let key = |rng: &mut SmallRng| format!("client{client}:{}", rng.random_range(0..24));
        let some_key = key(rng);
        match rng.random_range(0..100) {
            0..30 => {
                let name = ["set", "set", "add", "replace", "append"][rng.random_range(0..5)];
                let bytes_max = if rng.random_ratio(1, 50) { 20_000 } else { 100 };
                let value = "v".repeat(rng.random_range(0..bytes_max));
                self.store(name, &some_key, value, rng.random_ratio(1, 4));
            }
            30..80 => self.get(&[some_key]),
            80..88 => {
                let keys: Vec<String> = (0..rng.random_range(2..40)).map(|_| key(rng)).collect();
                self.get(&keys);
            }
            88..94 => self.delete(&some_key),
            94..97 => self.endpoint("nonsense\r\n", "ERROR\r\n"),
            97..99 => self.endpoint("stats here\r\n", "STAT argument here\r\nEND\r\n"),
            _ => self.endpoint("verbosity 1\r\n", "OK\r\n"),
        }
    }
}

/// Several clients with pipelines of random lengths, cut into random pieces; every byte of every
/// reply is compared.
fn random_pipelines(workers: usize, habits: Habits) {
    pipelines_with_switches(workers, habits, &[]);
}

/// Number of switches that a test makes at least.
const SWITCHES: usize = 400;
/// Pipelines of each client. `cargo xtask soak` takes many more seeds.
const ROUNDS: usize = 12;

/// Puts one policy after another in force, while others send requests.
fn switch(node: &glimmer_node::Node, policies: &[&str], seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut client = Client::connect(node);
    for _ in 0..SWITCHES {
        let wanted = policies[rng.random_range(0..policies.len())];
        client.send(format!("dispatch {wanted}\r\n"));
        assert_eq!(client.line(), "OK\r\n", "dispatch {wanted}");
        let view = node.figures().dispatch().unwrap();
        let (policy, access) = wanted.split_once(' ').unwrap_or((wanted, ""));
        assert!(policy.starts_with(view.policy.name()));
        assert!(access.is_empty() || view.access.name() == access);
        assert!(view.taken.iter().all(|&taken| taken == view.version));
    }
}

fn pipelines_with_switches(workers: usize, habits: Habits, switches: &[&str]) {
    println!("{workers} workers, {habits:?}");
    let seed = glimmer_seeds::seed();
    let node = start(workers, habits);
    thread::scope(|scope| {
        if !switches.is_empty() {
            scope.spawn(|| switch(&node, switches, seed));
        }
        for client in 0..6 {
            let node = &node;
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed ^ (client as u64 + 1));
                let mut oracle = Oracle::default();
                let connection = Client::connect(node);
                for round in 0..ROUNDS {
                    for _ in 0..rng.random_range(1..200) {
                        oracle.step(client, &mut rng);
                    }
                    let requests = std::mem::take(&mut oracle.requests);
                    let replies = std::mem::take(&mut oracle.replies);
                    let mut writer = connection.stream.try_clone().unwrap();
                    let mut cuts = SmallRng::seed_from_u64(rng.random());
                    thread::scope(|scope| {
                        scope.spawn(move || {
                            let mut rest = &requests[..];
                            while !rest.is_empty() {
                                let cut = cuts.random_range(1..=rest.len().min(5_000));
                                writer.write_all(&rest[..cut]).unwrap();
                                rest = &rest[cut..];
                            }
                        });
                        let mut got = vec![0; replies.len()];
                        (&connection.stream).read_exact(&mut got).unwrap();
                        if got != replies {
                            let at = got.iter().zip(&replies).position(|(a, b)| a != b).unwrap();
                            let near = |bytes: &[u8]| {
                                let end = bytes.len().min(at + 80);
                                let near = &bytes[at.saturating_sub(80)..end];
                                String::from_utf8_lossy(near).into_owned()
                            };
                            panic!(
                                "seed {seed}, client {client}, round {round}, byte {at}:\n{}\n\
                                 instead of\n{}",
                                near(&got),
                                near(&replies)
                            );
                        }
                    });
                }
            });
        }
    });
    if !switches.is_empty() {
        node.stop();
        node.join();
        return;
    }
    let crossed: u64 = node
        .figures()
        .tallies()
        .iter()
        .map(|tally| tally.requests_crossed + tally.visits)
        .sum();
    let layout = Layout {
        map: PartitionMap::new(workers, workers),
        access: habits.access,
    };
    let plan = habits.dispatch.plan(layout);
    let travels = |key: u32| {
        let keyhash = Seed(7).keyhash(&key.to_le_bytes());
        let is_elsewhere =
            |bytes| plan.on_arrival(0, keyhash, Ask::Write { bytes }) != Decision::Run;
        is_elsewhere(100) || is_elsewhere(10_000)
    };
    assert_eq!(
        crossed > 0,
        (0..100).any(travels),
        "requests cross if the plan sends them to another worker"
    );
    node.stop();
    node.join();
}

#[test]
fn one_worker() {
    for _ in 0..3 {
        random_pipelines(1, Habits::EREW);
    }
}

#[test]
fn erew() {
    for workers in [2, 3, 4, 7] {
        random_pipelines(workers, Habits::EREW);
    }
}

#[test]
fn crew_with_reads_that_ask_the_owner() {
    for workers in [2, 3, 4] {
        random_pipelines(workers, Habits::CREW);
    }
}

/// The last workers take values by their size, whatever the key.
#[derive(Debug)]
struct BySize;

impl Policy for BySize {
    fn name(&self) -> &'static str {
        "by-size"
    }

    fn summary(&self) -> &'static str {
        "one of the last workers, for large values"
    }

    fn plan(&self, layout: Layout) -> Plan {
        let mut roles = vec![Role::default(); layout.map.cores()];
        if let [.., large, largest] = &mut roles[..] {
            large.sizes = 60..5_000;
            largest.sizes = 5_000..u32::MAX;
        }
        Plan::by_size(layout, 60, roles)
    }
}

#[test]
fn requests_are_handed_over_by_the_size_of_their_values() {
    for workers in [1, 2, 4] {
        for room in [300, REPLY_BYTES_HIGH] {
            let habits = Habits {
                access: Access::Crcw,
                room,
                asks_one_in: Some(3),
                dispatch: &BySize,
            };
            random_pipelines(workers, habits);
        }
    }
}

/// Every policy that a server can be told to use.
#[test]
fn every_policy_in_every_access_mode_it_works_with() {
    for &dispatch in POLICIES {
        for &access in Access::ALL {
            if dispatch.check(access).is_ok() {
                let habits = Habits {
                    access,
                    asks_one_in: (access != Access::Erew).then_some(4),
                    dispatch,
                    ..Habits::EREW
                };
                random_pipelines(3, habits);
            }
        }
    }
}

/// Policies change while clients wait for replies that other workers make. Nothing is lost,
/// repeated or out of order.
#[test]
fn policies_that_change_at_random_moments() {
    for room in [REPLY_BYTES_HIGH, 300] {
        let habits = Habits {
            access: Access::Crcw,
            asks_one_in: Some(4),
            room,
            ..Habits::EREW
        };
        let policies = [
            "keyhash",
            "owner",
            "size-aware",
            "size-aware:60",
            "handoff",
            "handoff:2",
            "stealing",
        ];
        pipelines_with_switches(3, habits, &policies);
    }
}

/// Access modes change with the policies.
#[test]
fn access_modes_that_change_at_random_moments() {
    for room in [REPLY_BYTES_HIGH, 300] {
        let habits = Habits {
            access: Access::Crew,
            asks_one_in: Some(4),
            room,
            ..Habits::EREW
        };
        let wanted = [
            "keyhash erew",
            "keyhash crew",
            "keyhash crcw",
            "owner crcw",
            "size-aware:60 crcw",
            "handoff crcw",
            "stealing crcw",
        ];
        pipelines_with_switches(3, habits, &wanted);
    }
}

/// Reply buffers that are full after a few replies: requests are put back, and what crossed is
/// taken back or resumed.
#[test]
fn little_room() {
    for access in [Access::Erew, Access::Crew] {
        for room in [1, 300] {
            let habits = Habits {
                access,
                room,
                asks_one_in: Some(3),
                ..Habits::EREW
            };
            random_pipelines(1, habits);
            random_pipelines(3, habits);
        }
    }
}
