//! Which connections limits hold for, in which order those go on that wait, and what counts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::{Access, Habits, config};
use crate::tenants::{MISS, Rig, quotas, received, send, user};
use glimmer_base::limits::{LARGE_REPLY_BYTES, PREPEND_REQUESTS, THROTTLE_WAIT_MS_MAX};
use glimmer_dispatch::{PartitionMap, Policy, named};
use glimmer_node::{Clock, Tally, UserRules};
use glimmer_proto::text::lines;
use glimmer_proto::{Rights, Rules};
use glimmer_transport::stream::LocalStream;

/// Any worker executes any request.
const CRCW: Habits = Habits {
    access: Access::Crcw,
    ..Habits::EREW
};

/// Ten of these requests may come at once after a rest.
const REQUESTS_PER_S: u64 = 100;

fn policy(name: &str) -> Arc<dyn Policy> {
    named(name, &Default::default()).unwrap()
}

fn set_clock(rig: &Rig, ms: u64) {
    rig.clock.0.store(ms, Ordering::Relaxed);
}

fn turn(rig: &mut Rig, worker: usize) {
    rig.node.workers[worker].rest();
    rig.node.workers[worker].turn();
}

fn total(rig: &Rig) -> Tally {
    let mut total = Tally::default();
    let tallies = rig.node.figures().tallies();
    tallies.into_iter().for_each(|tally| total += tally);
    total
}

/// A user who may do everything, at this rate.
fn limited_user() -> UserRules {
    let rules = Rules {
        rights: Rights::ALL,
        ..Rules::default()
    };
    UserRules {
        quotas: quotas(REQUESTS_PER_S),
        ..user(rules)
    }
}

/// Has a connection ask for far more than its limit, of which one turn is executed, and looks
/// whether it waits then.
fn assert_is_limited(rig: &mut Rig, stream: &mut LocalStream) {
    send(stream, &"get k\r\n".repeat(100));
    rig.settle();
    assert_eq!(received(stream), MISS.repeat(100));
    send(stream, "get k\r\n");
    rig.settle();
    assert_eq!(received(stream), "", "no limit holds for it");
    assert_eq!(total(rig).throttled, 1);
}

#[test]
fn new_limits_hold_for_a_connection_that_another_worker_serves() {
    let mut rig = Rig::new(2, CRCW, |config| config.dispatch = policy("handoff"));
    let mut stream = rig.connect(2);
    rig.settle();
    rig.tenants.limit_addresses(quotas(REQUESTS_PER_S));
    set_clock(&rig, 1_000);
    send(&mut stream, "get k\r\n");
    // The turn in which its home looks at the limits is the one in which it hands the request on.
    turn(&mut rig, 0);
    assert_eq!(received(&mut stream), "");
    rig.settle();
    assert_eq!(received(&mut stream), MISS);
    assert_eq!(total(&rig).handed_on, 1);
    assert_is_limited(&mut rig, &mut stream);
}

#[test]
fn new_limits_hold_for_a_connection_on_its_way_to_another_home() {
    let mut rig = Rig::new(2, CRCW, |_| {});
    let (_first, mut second) = (rig.connect(3), rig.connect(2));
    rig.settle();
    rig.tenants.limit_addresses(quotas(REQUESTS_PER_S));
    set_clock(&rig, 1_000);
    // The new home looks at the limits before the connection arrives, and the old one after it has
    // left.
    turn(&mut rig, 0);
    let now = rig.clock.now();
    (rig.node)
        .switch(policy("handoff"), Access::Crcw, now)
        .unwrap();
    turn(&mut rig, 1);
    assert_eq!(total(&rig).moved, 1);
    rig.settle();
    assert_is_limited(&mut rig, &mut second);
}

/// A connection with large replies is served after those with small ones, which leave it nothing.
#[test]
fn one_that_was_overtaken_waits_no_longer_for_that() {
    let mut rig = Rig::new(1, Habits::EREW, |_| {});
    rig.tenants.limit_addresses(quotas(REQUESTS_PER_S));
    let (mut large, mut greedy) = (rig.connect(2), rig.connect(2));
    let mut small: Vec<_> = (0..20).map(|_| rig.connect(2)).collect();
    rig.settle();
    let value = "v".repeat(LARGE_REPLY_BYTES);
    send(&mut large, &format!("set large 0 0 {}\r\n", value.len()));
    send(&mut large, &format!("{value}\r\n"));
    rig.settle();
    send(&mut large, "get large\r\n");
    rig.settle();
    assert!(received(&mut large).ends_with(MISS));
    // There is room for eight more, and 50 are owed, which takes half a second.
    send(&mut greedy, &"get k\r\n".repeat(58));
    rig.settle();
    send(&mut large, "get large\r\n");
    rig.settle();
    set_clock(&rig, 400);
    small
        .iter_mut()
        .for_each(|it| send(it, &"get k\r\n".repeat(100)));
    rig.settle();
    assert_eq!(total(&rig).throttled, 21);
    // Ten may go on, and what the first of the small ones has takes until 1,500 ms.
    set_clock(&rig, 600);
    turn(&mut rig, 0);
    let served = small.iter_mut().map(received);
    let served = served.filter(|replies| *replies == MISS.repeat(100));
    assert!((1..10).contains(&served.count()));
    rig.sleep_until(THROTTLE_WAIT_MS_MAX - 1);
    assert_eq!(received(&mut large), "");
    rig.sleep_until(THROTTLE_WAIT_MS_MAX);
    assert_eq!(received(&mut large), lines::OVER_LIMIT);
}

#[test]
fn one_that_waits_for_its_user_and_then_for_its_address_waits_no_longer_for_that() {
    let mut rig = Rig::new(1, Habits::EREW, |config| config.locked = true);
    rig.tenants.set_users(&[limited_user()]).unwrap();
    rig.tenants.limit_addresses(quotas(REQUESTS_PER_S));
    let (mut stream, mut of_user) = (rig.connect(2), rig.connect(3));
    let mut of_address = rig.connect(2);
    let log_in = |user| format!("set auth 0 0 3\r\n{user} x\r\n");
    send(&mut stream, &log_in(1));
    rig.settle();
    // With the two logins, 50 more than there may be.
    send(&mut of_user, &log_in(1));
    send(&mut of_user, &"get k\r\n".repeat(58));
    rig.settle();
    send(&mut stream, "get k\r\n");
    rig.sleep_until(450);
    // The rest of these waits until its second is over.
    send(&mut of_address, &log_in(0));
    send(&mut of_address, &"get k\r\n".repeat(300));
    rig.sleep_until(THROTTLE_WAIT_MS_MAX - 1);
    assert_eq!(received(&mut stream), lines::STORED);
    rig.sleep_until(THROTTLE_WAIT_MS_MAX);
    assert_eq!(received(&mut stream), lines::OVER_LIMIT);
    assert_eq!(total(&rig).throttled, 2);
}

/// It takes the place of several requests of a turn.
#[test]
fn a_prepend_is_one_request_of_its_user() {
    let mut rig = Rig::new(1, Habits::EREW, |config| config.locked = true);
    rig.tenants.set_users(&[limited_user()]).unwrap();
    let mut stream = rig.connect(2);
    send(&mut stream, "set auth 0 0 3\r\n1 x\r\n");
    rig.settle();
    assert_eq!(received(&mut stream), lines::STORED);
    send(&mut stream, &"prepend k 0 0 1\r\nx\r\n".repeat(8));
    rig.settle();
    assert_eq!(received(&mut stream), lines::NOT_STORED.repeat(8));
    assert_eq!(rig.tenants.views()[0].usage.requests, 1 + 8);
}

/// A read that the worker cannot execute has all that follows it parsed again.
#[test]
fn a_prepend_that_is_parsed_again_is_as_much_of_a_turn_as_others() {
    let habits = Habits {
        asks_one_in: Some(1),
        ..Habits::CREW
    };
    let mut rig = Rig::new(2, habits, |config| {
        config.turn_requests = 3 * PREPEND_REQUESTS;
    });
    let (hasher, map) = (config().hasher, PartitionMap::new(2, 2));
    let key_of = |worker: usize| {
        let mut keys = (0..).map(|number| format!("key{number}"));
        keys.find(|key| map.owner(hasher.keyhash(key.as_bytes())) == worker)
            .unwrap()
    };
    let mut stream = rig.connect(2);
    let prepend = format!("prepend {} 0 0 1\r\nx\r\n", key_of(0));
    send(
        &mut stream,
        &format!("get {}\r\n{}", key_of(1), prepend.repeat(2)),
    );
    rig.settle();
    let replies = format!("{MISS}{}", lines::NOT_STORED.repeat(2));
    assert_eq!(received(&mut stream), replies);
    assert_eq!(total(&rig).conn_yields, 0);
}
