//! Users with rights and limits, and limits of addresses, while a test says what time it is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::{Habits, TestClock, config, engines};
use glimmer_base::Moment;
use glimmer_base::limits::{LOGIN_DELAY_MS, REFUSED_MAX, THROTTLE_BURST_MS, THROTTLE_WAIT_MS_MAX};
use glimmer_engine::Engine;
use glimmer_node::{
    AdminHandler, Devices, DrivenNode, Login, NodeConfig, Part, Quotas, Rest, Tenants, UserRules,
};
use glimmer_proto::text::{Shutdown, lines};
use glimmer_proto::{Accepts, Rights, Rules, resp};
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};
use glimmer_transport::{Received, Sent};
use rand::{Rng, SeedableRng, rngs::SmallRng};

const OVER: &str = lines::OVER_LIMIT;
pub const MISS: &str = "END\r\n";

/// Admits users by the numbers that are their names, with every password but one.
struct Door(Arc<Tenants>);

impl AdminHandler for Door {
    fn stats(&self, _: &[u8], _: u64, _: Moment, out: &mut Vec<u8>) -> Part {
        out.extend_from_slice(MISS.as_bytes());
        Part::Last
    }

    fn admits(&self, _: &[u8], password: &[u8]) -> bool {
        password != b"wrong"
    }

    fn log_in(&self, user: &[u8], password: &[u8]) -> Login {
        if !self.admits(user, password) {
            return Login::Wrong;
        }
        let number = std::str::from_utf8(user).unwrap().parse().unwrap();
        match number == 0 || self.0.enter(number) {
            true => Login::Admitted(number),
            false => Login::Full,
        }
    }

    fn verbosity(&self, _: u32) {}

    fn shutdown(&self, _: Shutdown, _: &mut Vec<u8>) -> bool {
        false
    }
}

pub struct Rig {
    pub node: DrivenNode,
    listener: LocalListener,
    pub clock: Arc<TestClock>,
    pub tenants: Arc<Tenants>,
    connected: u64,
}

impl Rig {
    pub fn new(workers: usize, habits: Habits, change: impl FnOnce(&mut NodeConfig)) -> Rig {
        Rig::with(workers, |_| engines(workers, habits), change)
    }

    /// With engines that are made for a configuration.
    pub fn with(
        workers: usize,
        engines: impl FnOnce(&NodeConfig) -> Vec<Box<dyn Engine>>,
        change: impl FnOnce(&mut NodeConfig),
    ) -> Rig {
        let (clock, tenants) = (Arc::<TestClock>::default(), Arc::<Tenants>::default());
        let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], 1)));
        let mut devices: Vec<_> = (0..workers).map(|_| Devices::default()).collect();
        let mut config = config();
        (config.clock, config.tenants) = (clock.clone(), tenants.clone());
        change(&mut config);
        let at_listener: Box<LocalListener> = Box::new(listener.clone());
        devices[0].listeners.push((at_listener, config.accepts));
        let engines = engines(&config);
        let door = Arc::new(Door(tenants.clone()));
        let node = DrivenNode::new(config, devices, engines, door).unwrap();
        Rig {
            node,
            listener,
            clock,
            tenants,
            connected: 0,
        }
    }

    /// A connection from an address that ends with this number.
    pub fn connect(&mut self, from: u8) -> LocalStream {
        self.connected += 1;
        let from = SocketAddr::from(([10, 0, 0, from], 1));
        let faults = StreamFaults::default();
        self.listener.connect(from, faults, self.connected)
    }

    /// Lets the workers take turns until nothing is left to do at this time. Returns for how many
    /// milliseconds they may sleep, if that is bounded.
    pub fn settle(&mut self) -> Option<u64> {
        for _ in 0..10_000 {
            let rests: Vec<_> = (self.node.workers.iter_mut())
                .map(|worker| (worker.rest(), worker.is_called()))
                .collect();
            let is_busy = |(rest, is_called): &(Rest, bool)| *rest == Rest::Busy || *is_called;
            if !rests.iter().any(is_busy) {
                let sleep = |(rest, _): &(Rest, bool)| match rest {
                    Rest::Asleep(Some(time)) => Some(time.as_millis() as u64),
                    _ => None,
                };
                return rests.iter().filter_map(sleep).min();
            }
            self.node.workers.iter_mut().for_each(|worker| {
                worker.turn();
            });
        }
        panic!("the workers never rest");
    }

    /// Sleeps as the workers would, until this time.
    pub fn sleep_until(&mut self, end_ms: u64) {
        loop {
            let now_ms = self.clock.0.load(Ordering::Relaxed);
            let sleep_ms = self.settle().unwrap_or(u64::MAX);
            if now_ms >= end_ms {
                return;
            }
            let next_ms = now_ms.saturating_add(sleep_ms).min(end_ms);
            self.clock.0.store(next_ms, Ordering::Relaxed);
            self.node.workers.iter_mut().for_each(|worker| {
                worker.turn();
            });
        }
    }
}

pub fn send(stream: &mut LocalStream, text: &str) {
    assert_eq!(stream.send(text.as_bytes()), Sent::All);
}

/// What has come of a stream.
pub fn received(stream: &mut LocalStream) -> String {
    let mut all = Vec::with_capacity(1 << 20);
    while let Received::Full(1..) | Received::Drained(1..) = stream.receive(&mut all) {}
    String::from_utf8(all).unwrap()
}

fn answers(stream: &mut LocalStream) -> usize {
    received(stream).matches(MISS).count()
}

pub fn quotas(requests: u64) -> Quotas {
    Quotas {
        requests,
        ..Quotas::default()
    }
}

#[test]
fn what_exceeds_a_limit_waits_while_others_are_served() {
    let mut rig = Rig::new(1, Habits::EREW, |config| config.turn_requests = 20);
    rig.tenants.limit_addresses(quotas(1_000));
    let (mut greedy, mut good) = (rig.connect(2), rig.connect(3));
    rig.settle();
    send(&mut greedy, &"get k\r\n".repeat(800));
    rig.settle();
    let first = answers(&mut greedy);
    let burst = THROTTLE_BURST_MS as usize;
    assert!((burst..=burst + 20).contains(&first), "{first} at once");
    let mut all = first;
    for ms in (50..=700).step_by(50) {
        rig.sleep_until(ms);
        all += answers(&mut greedy);
        let due = burst + ms as usize;
        assert!((due - 20..=due + 20).contains(&all), "{all} after {ms} ms");
        send(&mut good, "get k\r\n");
        rig.settle();
        assert_eq!(received(&mut good), MISS, "nobody else waits");
    }
    // The worker does not look after them in the meantime.
    let turns = rig.node.figures().tallies()[0].turns;
    assert!(turns < 500, "{turns} turns");
}

#[test]
fn a_wait_ends_with_an_error_and_the_connection_goes_on() {
    let mut rig = Rig::new(1, Habits::EREW, |config| config.turn_requests = 20);
    rig.tenants.limit_addresses(quotas(10));
    let mut greedy = rig.connect(2);
    rig.settle();
    // Twenty requests of ten a second, and further ones that have to wait for two seconds.
    send(&mut greedy, &"get k\r\n".repeat(20));
    rig.settle();
    assert_eq!(received(&mut greedy), MISS.repeat(20));
    send(&mut greedy, &"get k l m\r\nset k 0 0 1\r\nx\r\n".repeat(10));
    send(&mut greedy, "get k\r\n");
    rig.sleep_until(THROTTLE_WAIT_MS_MAX - 1);
    assert_eq!(received(&mut greedy), "");
    rig.sleep_until(THROTTLE_WAIT_MS_MAX);
    // A command with several keys is refused once, and its value is no command.
    assert_eq!(received(&mut greedy), OVER.repeat(20));
    rig.sleep_until(2 * THROTTLE_WAIT_MS_MAX - 200);
    assert_eq!(received(&mut greedy), "", "it waits again");
    rig.sleep_until(2 * THROTTLE_WAIT_MS_MAX);
    assert_eq!(received(&mut greedy), MISS, "what was owed is paid");
    let tally = rig.node.figures().tallies()[0];
    assert_eq!((tally.requests_over_limit, tally.throttled), (20, 2));
}

/// A value that is refused is one request, in however many pieces it arrives.
#[test]
fn a_refused_value_is_one_request() {
    let mut rig = Rig::new(1, Habits::EREW, |_| {});
    rig.tenants.limit_addresses(quotas(1_000));
    let mut client = rig.connect(2);
    rig.settle();
    let pieces = 4 * THROTTLE_BURST_MS as usize;
    send(&mut client, &format!("set k 0 0 {}\r\n", pieces * 10_000));
    for _ in 0..pieces {
        send(&mut client, &"x".repeat(10_000));
        rig.settle();
    }
    send(&mut client, "\r\nget k\r\n");
    rig.settle();
    assert_eq!(received(&mut client), format!("{}{MISS}", lines::TOO_LARGE));
    assert_eq!(rig.node.figures().tallies()[0].throttled, 0);
}

#[test]
fn many_connections_of_one_user_share_its_limit_and_have_their_turns() {
    let mut rig = Rig::new(2, Habits::CREW, |config| {
        (config.turn_requests, config.locked) = (4, true);
    });
    let user = user(Rules {
        rights: Rights::ALL,
        ..Rules::default()
    });
    let user = UserRules {
        quotas: quotas(500),
        ..user
    };
    rig.tenants.set_users(&[user]).unwrap();
    let mut streams: Vec<_> = (0..50).map(|_| rig.connect(2)).collect();
    rig.settle();
    for stream in &mut streams {
        send(stream, "set auth 0 0 3\r\n1 x\r\n");
        send(stream, &"get k\r\n".repeat(12));
    }
    let mut counts = vec![0; streams.len()];
    for ms in (10..=900).step_by(10) {
        rig.sleep_until(ms);
        for (count, stream) in counts.iter_mut().zip(&mut streams) {
            *count += answers(stream);
        }
        let (all, due) = (counts.iter().sum::<usize>(), 50 + ms as usize / 2);
        // What one burst of each worker takes before it is counted.
        assert!(all <= due + 2 * 50 * 4, "{all} after {ms} ms");
    }
    // Their logins count, too.
    let all = counts.iter().sum::<usize>() + streams.len();
    assert!(all >= 50 + 450 - 20, "{all} of 500");
    // The worker that takes its turns first serves more; each connection has had some.
    let least = counts.iter().min().unwrap();
    assert!(*least > 0, "{counts:?}");
}

#[test]
fn addresses_have_as_many_connections_as_they_may() {
    let mut rig = Rig::new(1, Habits::EREW, |_| {});
    let mut before = rig.connect(2);
    rig.settle();
    let two = Quotas {
        connections: 2,
        ..Quotas::default()
    };
    rig.tenants.limit_addresses(two);
    // Those that are open are counted within a second.
    send(&mut before, "get k\r\n");
    rig.sleep_until(1_000);
    assert_eq!(received(&mut before), MISS);
    let (mut second, mut third, mut other) = (rig.connect(2), rig.connect(2), rig.connect(3));
    for stream in [&mut second, &mut other] {
        send(stream, "get k\r\n");
    }
    rig.settle();
    assert_eq!(received(&mut second), MISS);
    assert_eq!(received(&mut other), MISS);
    // A client that is refused is told in its own protocol, or a little later in memcached's.
    let mut of_redis = rig.connect(2);
    send(&mut of_redis, "*1\r\n$4\r\nPING\r\n");
    rig.settle();
    assert_eq!(received(&mut of_redis), resp::lines::ADDRESS_CONNECTIONS);
    assert_eq!(received(&mut third), "");
    rig.sleep_until(1_100);
    assert_eq!(received(&mut third), lines::ADDRESS_CONNECTIONS);
    assert!(third.ready().hung_up && of_redis.ready().hung_up);
    // Those that may still say something have a bound.
    let mut many: Vec<_> = (0..=REFUSED_MAX).map(|_| rig.connect(2)).collect();
    rig.settle();
    let told = |streams: &mut Vec<LocalStream>| {
        let answers = streams.iter_mut().map(received);
        answers.filter(|answer| !answer.is_empty()).count()
    };
    assert_eq!(told(&mut many), 1);
    rig.sleep_until(1_200);
    assert_eq!(told(&mut many), REFUSED_MAX);
    drop(second);
    rig.settle();
    let mut next = rig.connect(2);
    send(&mut next, "get k\r\n");
    rig.settle();
    assert_eq!(received(&mut next), MISS);
    let tallies = rig.node.figures().tallies();
    let refused: u64 = tallies
        .iter()
        .map(|it| it.address_connections_refused)
        .sum();
    assert_eq!(refused, 2 + REFUSED_MAX as u64 + 1);
}

pub fn user(rules: Rules) -> UserRules {
    UserRules {
        name: b"user".as_slice().into(),
        rules,
        quotas: Quotas::default(),
    }
}

/// What a client of RESP is answered to a line, after the time that a wrong login takes.
pub fn answer(rig: &mut Rig, stream: &mut LocalStream, said: &str) -> String {
    send(stream, &format!("{said}\r\n"));
    let now_ms = rig.clock.0.load(Ordering::Relaxed);
    rig.sleep_until(now_ms + LOGIN_DELAY_MS);
    received(stream)
}

/// As in Redis. The user may have one connection, which is counted once.
#[test]
fn a_wrong_login_leaves_a_client_of_resp_who_it_is() {
    let mut rig = Rig::new(1, Habits::EREW, |config| {
        (config.locked, config.accepts) = (true, Accepts::Resp);
    });
    let rules = Rules {
        rights: Rights::DEFAULT,
        prefix: b"my".as_slice().into(),
    };
    let mut limited = user(rules);
    limited.quotas.connections = 1;
    rig.tenants.set_users(&[limited]).unwrap();
    let mut stream = rig.connect(2);
    for (said, reply) in [
        ("PING", resp::lines::NO_AUTH),
        ("AUTH 1 wrong", resp::lines::WRONG_PASS),
        ("PING", resp::lines::NO_AUTH),
        ("AUTH 1 x", resp::lines::OK),
        ("AUTH 1 wrong", resp::lines::WRONG_PASS),
        ("PING", resp::lines::PONG),
        ("HELLO 3 AUTH 1 wrong", resp::lines::WRONG_PASS),
        ("PING", resp::lines::PONG),
        ("GET other", resp::lines::KEY_DENIED),
        ("AUTH 1 x", resp::lines::OK),
        ("PING", resp::lines::PONG),
    ] {
        assert_eq!(answer(&mut rig, &mut stream, said), reply, "{said}");
    }
    assert_eq!(rig.tenants.views()[0].usage.connections, 1);
    let mut second = rig.connect(2);
    let said = answer(&mut rig, &mut second, "AUTH 1 x");
    assert_eq!(said, resp::lines::USER_CONNECTIONS);
    drop(stream);
    rig.settle();
    assert_eq!(rig.tenants.views()[0].usage.connections, 0);
}

#[test]
fn a_login_by_hello_says_the_number_of_the_connection() {
    for (locked, user) in [(true, "0"), (false, "default")] {
        let mut rig = Rig::new(1, Habits::EREW, |config| {
            (config.locked, config.accepts) = (locked, Accepts::Resp);
        });
        let mut stream = rig.connect(2);
        let hello = answer(&mut rig, &mut stream, &format!("HELLO 2 AUTH {user} x"));
        let id = answer(&mut rig, &mut stream, "CLIENT ID");
        assert!(id.starts_with(':') && id != ":0\r\n", "{id}");
        assert!(hello.contains(&format!("$2\r\nid\r\n{id}")), "{hello}");
    }
}

/// Nobody counts as admitted while the answer to a wrong login is withheld.
#[test]
fn logins_are_counted_by_their_outcome() {
    let mut rig = Rig::new(1, Habits::EREW, |config| config.locked = true);
    let counted = |rig: &Rig| {
        let tally = rig.node.figures().tallies()[0];
        (tally.auth_cmds, tally.auth_admitted)
    };
    let mut stream = rig.connect(2);
    send(&mut stream, "set auth 0 0 7\r\n0 wrong\r\n");
    rig.settle();
    assert_eq!(received(&mut stream), "");
    assert_eq!(counted(&rig), (1, 0));
    rig.sleep_until(LOGIN_DELAY_MS);
    assert_eq!(received(&mut stream), lines::WRONG_PASSWORD);
    send(&mut stream, "set auth 0 0 3\r\n0 x\r\n");
    rig.settle();
    assert_eq!(received(&mut stream), lines::STORED);
    assert_eq!(counted(&rig), (2, 1));
}

/// Also where a user of this name has come again: its client has to log in for that.
#[test]
fn connections_of_a_user_that_is_gone_are_closed_with_an_answer() {
    let anything = Rules {
        rights: Rights::ALL,
        prefix: Box::default(),
    };
    for request in ["get k", "set k 0 0 1\r\nx", "mg k v", "flush_all"] {
        let mut rig = Rig::new(2, Habits::EREW, |config| config.locked = true);
        let named = [user(anything.clone())];
        rig.tenants.set_users(&named).unwrap();
        let mut before = rig.connect(2);
        send(&mut before, "set auth 0 0 3\r\n1 x\r\nget k\r\n");
        rig.settle();
        assert_eq!(received(&mut before), format!("{}{MISS}", lines::STORED));
        rig.tenants.set_users(&[]).unwrap();
        assert_eq!(rig.tenants.set_users(&named), Ok(vec![2]));
        send(&mut before, &format!("{request}\r\nget k\r\n"));
        rig.settle();
        assert_eq!(received(&mut before), lines::COMMAND_DENIED, "{request}");
        assert!(before.ready().hung_up, "{request}");
        let mut again = rig.connect(2);
        send(&mut again, "set auth 0 0 3\r\n2 x\r\nget k\r\n");
        rig.settle();
        assert_eq!(received(&mut again), format!("{}{MISS}", lines::STORED));
    }
}

/// Whatever a user may do and may not, in whatever pieces it arrives and whichever worker executes
/// it: each command has its reply, in order, and what is denied has no effect.
#[test]
fn replies_keep_their_order_around_what_is_denied() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    for habits in [Habits::EREW, Habits::CREW] {
        for _ in 0..20 {
            let mut rig = Rig::new(2, habits, |config| {
                (config.turn_requests, config.locked) = (16, true);
            });
            let rules = Rules {
                rights: Rights::DEFAULT,
                prefix: b"my".as_slice().into(),
            };
            rig.tenants.set_users(&[user(rules)]).unwrap();
            let (input, expected) = conversation(&mut rng);
            let mut stream = rig.connect(2);
            // The first piece may come with the login.
            let input = format!("set auth 0 0 3\r\n1 x\r\n{input}");
            let expected = format!("{}{expected}", lines::STORED);
            let (mut rest, mut replies) = (&input[..], String::new());
            while !rest.is_empty() {
                let piece = rng.random_range(1..=rest.len().min(400));
                send(&mut stream, &rest[..piece]);
                rest = &rest[piece..];
                rig.settle();
                replies += &received(&mut stream);
            }
            assert_eq!(replies, expected, "{input}");
        }
    }
}

/// Commands, and their replies.
fn conversation(rng: &mut SmallRng) -> (String, String) {
    let (mut input, mut replies) = (String::new(), String::new());
    let mut items = BTreeMap::new();
    let key = |rng: &mut SmallRng| {
        let owner = if rng.random_ratio(3, 4) {
            "my"
        } else {
            "other"
        };
        format!("{owner}{}", rng.random_range(0..6))
    };
    for number in 0..rng.random_range(1..60) {
        match rng.random_range(0..10) {
            0..4 => {
                let (key, is_quiet) = (key(rng), rng.random_ratio(1, 4));
                let value = format!("get my{number}\r\n").repeat(rng.random_range(0..4));
                let noreply = if is_quiet { " noreply" } else { "" };
                input += &format!("set {key} 0 0 {}{noreply}\r\n{value}\r\n", value.len());
                let is_mine = key.starts_with("my");
                if !is_quiet {
                    replies += if is_mine {
                        lines::STORED
                    } else {
                        lines::KEY_DENIED
                    };
                }
                if is_mine {
                    items.insert(key, value);
                }
            }
            4..9 => {
                let keys: Vec<_> = (0..rng.random_range(1..5)).map(|_| key(rng)).collect();
                input += &format!("get {}\r\n", keys.join(" "));
                if keys.iter().any(|key| !key.starts_with("my")) {
                    replies += lines::KEY_DENIED;
                    continue;
                }
                for key in keys {
                    if let Some(value) = items.get(&key) {
                        replies += &format!("VALUE {key} 0 {}\r\n{value}\r\n", value.len());
                    }
                }
                replies += MISS;
            }
            _ => {
                input += "flush_all\r\n";
                replies += lines::COMMAND_DENIED;
            }
        }
    }
    (input, replies)
}
