//! Flush, expiry and the recheck, for bodies that share the guard's memory.

use glimmer_base::{Keyhash, Seed};
use glimmer_hotset::layout::{HotItem, NEVER_NS};
use glimmer_hotset::{Filled, Guard, Pause};

/// A body with its guard.
pub trait Coherent {
    /// The guard of the body's memory.
    fn guard(&self) -> &Guard;

    /// The body's clock, in nanoseconds of CLOCK_MONOTONIC.
    fn now_ns(&self) -> u64;

    /// Sets the clock. Returns false if that is not possible.
    fn set_clock(&mut self, now_ns: u64) -> bool;

    /// The value of a key, as a client is answered; `None` if the request goes to the server.
    fn look_up(&mut self, key: &[u8]) -> Option<Vec<u8>>;
}

const HOUR_NS: u64 = 3600 * 1_000_000_000;

/// Tries everything.
///
/// # Panics
///
/// If a body does not conform.
pub fn all(make: &mut dyn FnMut() -> Box<dyn Coherent>) {
    let rules: [fn(&mut dyn Coherent); 6] = [
        a_change_is_followed,
        a_flush_ends_what_was_there,
        a_delayed_flush_ends_hits_at_its_time,
        an_item_expires,
        a_pause_passes_everything,
        a_failed_recheck_passes_everything,
    ];
    for rule in rules {
        rule(&mut *make());
    }
}

fn keyhash(key: &[u8]) -> Keyhash {
    Seed(1).keyhash(key)
}

fn fill(body: &dyn Coherent, key: &[u8], value: &[u8], deadline_ns: u64) {
    let guard = body.guard();
    let item = item(key, value, deadline_ns);
    let filled = guard.fill(guard.epoch(), keyhash(key), &item, u32::MAX, |_| 0);
    assert!(matches!(filled, Filled::Live(_)), "{filled:?}");
}

fn item<'a>(key: &'a [u8], value: &'a [u8], deadline_ns: u64) -> HotItem<'a> {
    HotItem {
        key,
        value,
        flags: 1,
        cas: 2,
        deadline_ns,
    }
}

fn a_change_is_followed(body: &mut dyn Coherent) {
    fill(body, b"k", b"one", NEVER_NS);
    assert_eq!(body.look_up(b"k").as_deref(), Some(&b"one"[..]));
    let token = body
        .guard()
        .retract(keyhash(b"k"))
        .expect("the key has a slot");
    assert_eq!(body.look_up(b"k"), None);
    let epoch = body.guard().epoch();
    body.guard()
        .refill(token, epoch, &item(b"k", b"two", NEVER_NS));
    assert_eq!(body.look_up(b"k").as_deref(), Some(&b"two"[..]));
    assert!(body.guard().evict(keyhash(b"k")));
    assert_eq!(body.look_up(b"k"), None);
}

fn a_flush_ends_what_was_there(body: &mut dyn Coherent) {
    fill(body, b"k", b"one", NEVER_NS);
    body.guard()
        .flush(None, || fill(body, b"l", b"found before", NEVER_NS));
    assert_eq!([body.look_up(b"k"), body.look_up(b"l")], [None, None]);
    fill(body, b"k", b"two", NEVER_NS);
    assert_eq!(body.look_up(b"k").as_deref(), Some(&b"two"[..]));
}

fn a_delayed_flush_ends_hits_at_its_time(body: &mut dyn Coherent) {
    let at_ns = body.now_ns() + HOUR_NS;
    body.guard().flush(Some(at_ns), || ());
    fill(body, b"k", b"one", NEVER_NS);
    assert!(body.look_up(b"k").is_some());
    if body.set_clock(at_ns - 1) {
        assert!(body.look_up(b"k").is_some());
        body.set_clock(at_ns);
        assert_eq!(body.look_up(b"k"), None);
    }
    let now_ns = body.now_ns();
    body.guard().flush(Some(now_ns), || ());
    fill(body, b"k", b"two", NEVER_NS);
    assert_eq!(body.look_up(b"k"), None);
    body.guard().flush(None, || ());
    fill(body, b"k", b"three", NEVER_NS);
    assert!(body.look_up(b"k").is_some());
}

fn an_item_expires(body: &mut dyn Coherent) {
    let deadline_ns = body.now_ns() + HOUR_NS;
    fill(body, b"k", b"one", deadline_ns);
    assert!(body.look_up(b"k").is_some());
    if body.set_clock(deadline_ns - 1) {
        assert!(body.look_up(b"k").is_some());
        body.set_clock(deadline_ns);
        assert_eq!(body.look_up(b"k"), None);
    }
    let now_ns = body.now_ns();
    fill(body, b"k", b"two", now_ns);
    assert_eq!(body.look_up(b"k"), None);
}

fn a_pause_passes_everything(body: &mut dyn Coherent) {
    fill(body, b"k", b"one", NEVER_NS);
    for reason in Pause::ALL {
        body.guard().pause(reason);
        assert_eq!(body.look_up(b"k"), None);
        body.guard().resume(reason);
        assert!(body.look_up(b"k").is_some());
    }
}

fn a_failed_recheck_passes_everything(body: &mut dyn Coherent) {
    fill(body, b"k", b"one", NEVER_NS);
    body.guard().memory().control().fail_rechecks(true);
    assert_eq!(body.look_up(b"k"), None);
    body.guard().memory().control().fail_rechecks(false);
    assert!(body.look_up(b"k").is_some());
}
