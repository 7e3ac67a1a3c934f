use std::{cell::Cell, collections::VecDeque, rc::Rc, sync::mpsc};

use super::*;
use crate::{
    driver::{Meaning, Reply},
    load::{
        CountBy, Pace, Plan, Recorder, Requests, Window,
        by_size::LARGE_FROM,
        record::Glance,
        run::{Share, Shared},
    },
    workload::{Drawn, Workload, trace::Trace},
};

/// A connection that answers at once, and what it was asked for: when it was due, and its length.
#[derive(Default)]
struct Connection {
    asked: Vec<(u64, u32)>,
    /// When it was asked, on this clock.
    asked_at: Vec<u64>,
    now: Rc<Cell<u64>>,
    reply: Option<Reply>,
    /// Whether every second request has no reply.
    is_lossy: bool,
    /// The replies that never arrive.
    lost: VecDeque<Reply>,
}

impl Link for Connection {
    fn ask(&mut self, ask: &Ask, tag: u64) {
        self.asked.push((tag, ask.value_bytes));
        self.asked_at.push(self.now.get());
        let reply = Reply {
            tag,
            verb: ask.verb,
            key: ask.keys[0],
            meaning: Meaning::Hit,
            last: true,
            then: ask.then,
            value_bytes: ask.value_bytes,
            item_bytes: ask.value_bytes,
            arrived_ns: 0,
            ttl_s: 0,
        };
        match self.is_lossy && self.asked.len().is_multiple_of(2) {
            true => self.lost.push_back(Reply {
                meaning: Meaning::Lost,
                ..reply
            }),
            false => self.reply = Some(reply),
        }
    }

    fn send(&mut self) -> Result<()> {
        Ok(())
    }

    fn is_blocked(&self) -> bool {
        false
    }

    fn receive(&mut self, on_step: &mut impl FnMut(Reply)) -> Result<()> {
        self.reply.take().into_iter().for_each(on_step);
        Ok(())
    }

    fn expire(&mut self, tag: u64, on_step: &mut impl FnMut(Reply)) {
        while let Some(reply) = self.lost.pop_front_if(|reply| reply.tag < tag) {
            on_step(reply);
        }
    }

    fn under_way(&self) -> usize {
        usize::from(self.reply.is_some()) + self.lost.len()
    }
}

/// A clock that goes on while the client waits, and may jump once.
#[derive(Default)]
struct Clock {
    now: Rc<Cell<u64>>,
    /// From when on, and to when.
    jump: Option<(u64, u64)>,
}

impl<'a> World<&'a mut Connection> for Clock
where
    &'a mut Connection: Link,
{
    fn now_ns(&mut self) -> u64 {
        self.now.get()
    }

    fn ready(
        &mut self,
        links: &mut [&'a mut Connection],
        patience_ns: u64,
        places: &mut Vec<usize>,
    ) -> Result<()> {
        places.clear();
        places.extend((0..links.len()).filter(|&place| links[place].reply.is_some()));
        if places.is_empty() {
            self.now.set(self.now.get() + patience_ns.max(1));
        }
        if let Some((from, to)) = self.jump
            && self.now.get() >= from
        {
            self.now.set(to.max(self.now.get()));
        }
        Ok(())
    }

    fn watch_output(&mut self, _: usize, _: &&'a mut Connection, _: bool) -> Result<()> {
        Ok(())
    }
}

impl Link for &mut Connection {
    fn ask(&mut self, ask: &Ask, tag: u64) {
        Connection::ask(self, ask, tag);
    }

    fn send(&mut self) -> Result<()> {
        Connection::send(self)
    }

    fn is_blocked(&self) -> bool {
        Connection::is_blocked(self)
    }

    fn receive(&mut self, on_step: &mut impl FnMut(Reply)) -> Result<()> {
        Connection::receive(self, on_step)
    }

    fn expire(&mut self, tag: u64, on_step: &mut impl FnMut(Reply)) {
        Connection::expire(self, tag, on_step);
    }

    fn under_way(&self) -> usize {
        Connection::under_way(self)
    }
}

/// What each of four connections was asked for in a second of 20,000 arrivals, a tenth of them for
/// large values: when it was due, and its length.
fn asked(lanes: Lanes, seed: u64) -> Vec<Vec<(u64, u32)>> {
    const SECOND_NS: u64 = 1_000_000_000;
    let (window, glance) = (Window::closed(), Glance::default());
    window.open(0, SECOND_NS);
    let (sender, _intervals) = mpsc::channel();
    let mut recorder = Recorder::new(&window, &glance, None, sender);
    let mut links: Vec<Connection> = (0..4).map(|_| Connection::default()).collect();
    let workload = Workload::preset("etc:0.1", Some(1000)).unwrap();
    let inserted = std::sync::Arc::new(workload.keys.into());
    let mut source = Drawn::new(&workload, seed, 0, 1, &inserted);
    let world = Clock::default();
    let drive = Drive::new(
        links.iter_mut().collect(),
        world,
        &mut recorder,
        CountBy::ByDueTime,
        SECOND_NS,
    );
    let schedule = Schedule {
        arrivals: Arrivals::Fixed(20_000.0),
        burst: 1,
        gather: 1,
        idle: Idle::Sleep,
        lanes,
        keys: KeyPart::ALL,
        offset_ns: 0,
        seed,
    };
    run(drive, &mut source, &schedule).unwrap();
    links.into_iter().map(|link| link.asked).collect()
}

fn is_large(&(_, bytes): &(u64, u32)) -> bool {
    bytes >= LARGE_FROM
}

#[test]
fn large_values_are_asked_for_on_their_own_connections() {
    let mixed = asked(Lanes::Mixed, 3);
    assert!(mixed.iter().all(|link| link.iter().any(is_large)));
    assert!(mixed.iter().all(|link| !link.iter().all(is_large)));
    let apart = asked(Lanes::Apart(3), 3);
    for link in &apart[..3] {
        assert!(!link.is_empty() && !link.iter().any(is_large));
    }
    assert!(!apart[3].is_empty() && apart[3].iter().all(is_large));
}

#[test]
fn threads_for_large_and_for_other_values_send_together_what_one_thread_sends() {
    let all = |lanes| {
        let mut all = asked(lanes, 5).concat();
        all.sort_unstable();
        all
    };
    let (mixed, small, large) = (all(Lanes::Mixed), all(Lanes::Small), all(Lanes::Large));
    assert!((18_000..=20_000).contains(&mixed.len()), "{}", mixed.len());
    assert!(large.iter().all(is_large) && !small.iter().any(is_large));
    let mut together = [small, large].concat();
    together.sort_unstable();
    assert_eq!(together, mixed);
}

/// A thread whose requests never come passes over those of others, and ends with the window.
#[test]
fn a_thread_without_requests_ends() {
    let workload = Workload::preset("small", Some(10)).unwrap();
    let inserted = std::sync::Arc::new(10.into());
    let mut source = Drawn::new(&workload, 1, 0, 1, &inserted);
    let (window, glance) = (Window::closed(), Glance::default());
    window.open(0, 50_000_000);
    let (sender, _intervals) = mpsc::channel();
    let mut recorder = Recorder::new(&window, &glance, None, sender);
    let mut link = Connection::default();
    let world = Clock::default();
    let drive = Drive::new(
        vec![&mut link],
        world,
        &mut recorder,
        CountBy::ByDueTime,
        1 << 40,
    );
    let schedule = Schedule {
        arrivals: Arrivals::Poisson(100_000.0),
        burst: 1,
        gather: 1,
        idle: Idle::Sleep,
        lanes: Lanes::Large,
        keys: KeyPart::ALL,
        offset_ns: 0,
        seed: 1,
    };
    run(drive, &mut source, &schedule).unwrap();
    assert!(link.asked.is_empty());
}

const MS: u64 = 1_000_000;

/// Sends a request each millisecond for `window_ms`, over one connection that `gather`s requests.
/// Returns the connection, and whether the client could not keep up.
fn driven(window_ms: u64, gather: u32, world: Clock) -> (Connection, bool) {
    let (window, glance) = (Window::closed(), Glance::default());
    window.open(0, window_ms * MS);
    let (sender, _intervals) = mpsc::channel();
    let mut recorder = Recorder::new(&window, &glance, None, sender);
    let mut link = Connection {
        now: world.now.clone(),
        ..Connection::default()
    };
    let workload = Workload::preset("small", Some(10)).unwrap();
    let inserted = std::sync::Arc::new(10.into());
    let mut source = Drawn::new(&workload, 1, 0, 1, &inserted);
    let links = vec![&mut link];
    let drive = Drive::new(links, world, &mut recorder, CountBy::ByDueTime, 1 << 40);
    run(drive, &mut source, &each_millisecond(gather)).unwrap();
    assert_eq!(recorder.saturated, recorder.client_saturated);
    (link, recorder.client_saturated)
}

/// One request each millisecond. `gather` of them are sent at a time.
fn each_millisecond(gather: u32) -> Schedule {
    Schedule {
        arrivals: Arrivals::Fixed(1000.0),
        burst: 1,
        gather,
        idle: Idle::Sleep,
        lanes: Lanes::Mixed,
        keys: KeyPart::ALL,
        offset_ns: 0,
        seed: 1,
    }
}

/// A clock that stands still for the program from 10 ms until then.
fn stopped_until(ms: u64) -> Clock {
    Clock {
        jump: Some((10 * MS, ms * MS)),
        ..Clock::default()
    }
}

/// Otherwise a client that lost its core near the end would leave out the requests that waited.
#[test]
fn what_was_due_before_the_end_is_sent_however_late() {
    let (link, is_saturated) = driven(50, 1, stopped_until(70));
    let due: Vec<u64> = link.asked.iter().map(|(due, _)| due / MS).collect();
    assert_eq!(due, (1..50).collect::<Vec<_>>());
    assert!(!is_saturated);
}

#[test]
fn a_client_that_is_seconds_late_gives_up_and_does_not_blame_the_server() {
    let (link, is_saturated) = driven(50, 1, stopped_until(2_100));
    assert!(link.asked.len() < 49);
    assert!(is_saturated);
}

/// The last requests do not wait for more.
#[test]
fn a_connection_gathers_requests_before_it_sends_them() {
    let (link, _) = driven(7, 4, Clock::default());
    let due: Vec<u64> = link.asked.iter().map(|(due, _)| due / MS).collect();
    assert_eq!(due, [1, 2, 3, 4, 5, 6]);
    let asked_at: Vec<u64> = link.asked_at.iter().map(|at| at / MS).collect();
    assert_eq!(asked_at, [4, 4, 4, 4, 6, 6]);
}

/// A server that drops every second request loses half of those that are measured, however long the
/// warm-up was.
#[test]
fn lost_requests_count_by_the_time_at_which_they_were_due() {
    for from_ms in [0, 100, 2_000] {
        let (window, glance) = (Window::closed(), Glance::default());
        window.open(from_ms * MS, (from_ms + 200) * MS);
        let (sender, _intervals) = mpsc::channel();
        let mut recorder = Recorder::new(&window, &glance, None, sender);
        let mut link = Connection {
            is_lossy: true,
            ..Connection::default()
        };
        let workload = Workload::preset("small", Some(10)).unwrap();
        let inserted = std::sync::Arc::new(10.into());
        let mut source = Drawn::new(&workload, 1, 0, 1, &inserted);
        let world = Clock::default();
        let now = world.now.clone();
        let links = vec![&mut link];
        let counted = CountBy::ByDueTime;
        let drive = Drive::new(links, world, &mut recorder, counted, 500 * MS);
        run(drive, &mut source, &each_millisecond(1)).unwrap();
        let span = recorder.finish(now.get()).unwrap().unwrap();
        // The first request is due after 1 ms.
        let lost = (99..=100).contains(&span.lost);
        assert!(lost && span.tally.lost == span.lost, "{from_ms}: {span:?}");
        assert!((99..=100).contains(&span.in_time), "{from_ms}: {span:?}");
    }
}

#[test]
fn unanswered_requests_are_bounded_at_every_rate() {
    let max = |rate| Arrivals::Poisson(rate).under_way_max(1);
    assert_eq!(max(10.0), UNDER_WAY_MAX);
    assert_eq!(max(1e6), 1_000_000);
    assert_eq!(max(1e12), UNDER_WAY_FAST_MAX);
}

/// Nine requests in ten are for one key, and so for one thread.
#[test]
fn the_threads_of_a_trace_keep_its_rate_and_its_order_together() {
    const REQUESTS: u64 = 300;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.csv");
    // The length of a value is the number of its request.
    let line = |turn: u64| format!("0,{},{}\n", (turn % 10 / 9) * turn, 16 + turn);
    let lines: Vec<String> = (1..=REQUESTS).map(line).collect();
    std::fs::write(&file, lines.concat()).unwrap();
    for arrivals in [Arrivals::Fixed(1000.0), Arrivals::Poisson(1000.0)] {
        let sent = |threads| {
            let requests = Requests::Recorded(Trace::new(file.clone(), None).unwrap());
            let pace = Pace::Open {
                arrivals,
                burst: 1,
                idle: Idle::Sleep,
            };
            let plan = Plan {
                threads,
                ..Plan::new(requests, pace)
            };
            let shared = Shared::new(&plan, None);
            let mut sent = Vec::new();
            for part in 0..threads {
                let share = Share::of(&plan, part);
                let (window, glance) = (Window::closed(), Glance::default());
                window.open(0, 1_000_000 * MS);
                let (sender, _intervals) = mpsc::channel();
                let mut recorder = Recorder::new(&window, &glance, None, sender);
                let mut link = Connection::default();
                let links = vec![&mut link];
                let world = Clock::default();
                let counted = CountBy::ByDueTime;
                let drive = Drive::new(links, world, &mut recorder, counted, 1 << 40);
                let mut source = share.source(&shared).unwrap();
                let schedule = share.schedule(&plan, arrivals, 1, Idle::Sleep);
                run(drive, &mut *source, &schedule).unwrap();
                assert!(!link.asked.is_empty());
                sent.extend(link.asked);
            }
            sent.sort_unstable();
            sent
        };
        let alone = sent(1);
        let turns = alone.iter().map(|&(_, turn)| u64::from(turn));
        assert!(turns.eq(1..=REQUESTS));
        assert_eq!(sent(3), alone);
        if let Arrivals::Fixed(_) = arrivals {
            let due = alone.iter().map(|(due, _)| due / MS);
            assert!(due.eq(1..=REQUESTS));
        }
    }
}
