//! Open loop: requests are sent when they are due, whether or not earlier ones have been answered,
//! and latency counts from the time a request was due. A stall is therefore charged to every
//! request that had to wait; a closed loop would not even send them (Tene: coordinated omission;
//! Schroeder et al., NSDI 2006: open versus closed).

use anyhow::Result;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use rand_distr::{Distribution, Exp1};
use serde::Serialize;

use super::{
    Drive, KeyPart, Lanes, World,
    lanes::{DRAWN_MAX, connection_of},
};
use crate::{
    driver::Link,
    workload::{Ask, Source},
};

/// Arrivals that are sent before a late client looks for replies again.
const SENDS_MAX: u32 = 16;
/// The same limit for requests that are sent together.
const GATHERED_MAX: u32 = 256;
/// Unanswered requests of a thread. Beyond this number, and beyond the requests due in one second,
/// the server cannot catch up, and the run ends.
const UNDER_WAY_MAX: usize = 1 << 18;
/// Beyond this number the run ends also if more requests are due in one second: they need memory.
const UNDER_WAY_FAST_MAX: usize = 1 << 22;
/// At the end of the window, a client that is this late cannot catch up either, and the run ends.
const LATE_NS_MAX: u64 = 2_000_000_000;
/// Nanoseconds between two checks for silent connections.
const PATIENCE_NS: u64 = 10_000_000;

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Independently of each other: a Poisson process with this many arrivals per second.
    Poisson(f64),
    /// At equal intervals, this many per second.
    Fixed(f64),
    /// As recorded in a trace, accelerated by this factor.
    Recorded(f64),
}

impl Arrivals {
    /// Unanswered requests up to which the run continues.
    fn under_way_max(self, burst: u32) -> usize {
        match self {
            Arrivals::Poisson(rate) | Arrivals::Fixed(rate) => {
                ((rate * f64::from(burst)) as usize).clamp(UNDER_WAY_MAX, UNDER_WAY_FAST_MAX)
            }
            Arrivals::Recorded(_) => UNDER_WAY_MAX,
        }
    }

    /// The arrivals of one of `parts` threads. The parts together make up all arrivals.
    pub fn part(self, parts: usize) -> Arrivals {
        match self {
            Arrivals::Poisson(rate) => Arrivals::Poisson(rate / parts as f64),
            Arrivals::Fixed(rate) => Arrivals::Fixed(rate / parts as f64),
            Arrivals::Recorded(speed) => Arrivals::Recorded(speed),
        }
    }
}

/// How the client waits for the next due request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// It polls in a loop, so that its own wake-up time is not measured. Needs a core of its own.
    Spin,
    /// It sleeps and leaves the core to others.
    Sleep,
}

/// The arrivals of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// When requests arrive.
    pub arrivals: Arrivals,
    /// Requests that arrive together on one connection.
    pub burst: u32,
    /// Requests that a connection gathers before it sends them.
    pub gather: u32,
    /// How the client waits.
    pub idle: Idle,
    /// Which of the arrivals the thread sends, and on which connections.
    pub lanes: Lanes,
    /// The keys whose requests it sends.
    pub keys: KeyPart,
    /// Nanoseconds until the first arrival with equal intervals, so that threads take turns.
    pub offset_ns: u64,
    /// Seed of the arrivals and of their connections.
    pub seed: u64,
}

/// Draws the times at which requests are due.
struct Clock {
    arrivals: Arrivals,
    rng: SmallRng,
    /// In nanoseconds, with a fraction so that equal intervals do not drift.
    due: f64,
}

impl Clock {
    fn advance(&mut self, ask: &Ask, start: u64) {
        match self.arrivals {
            Arrivals::Poisson(rate) => {
                let gap: f64 = Exp1.sample(&mut self.rng);
                self.due += gap * 1e9 / rate;
            }
            Arrivals::Fixed(rate) => self.due += 1e9 / rate,
            Arrivals::Recorded(speed) => self.due = start as f64 + ask.at_ns as f64 / speed,
        }
    }
}

/// The next request and when it is due.
struct Next {
    ask: Ask,
    clock: Clock,
    /// Whether there is one.
    more: bool,
    lanes: Lanes,
    keys: KeyPart,
    /// The start of the run.
    start: u64,
}

impl Next {
    fn due(&self) -> u64 {
        self.clock.due as u64
    }

    /// Whether this thread sends it.
    #[inline]
    fn is_ours(&self) -> bool {
        self.lanes.takes(&self.ask) && self.keys.takes(&self.ask)
    }

    fn draw(&mut self, source: &mut dyn Source) {
        self.more = source.next(&mut self.ask);
        self.clock.advance(&self.ask, self.start);
    }

    /// Goes on to a request that this thread sends. It may stop at an earlier one, which is then
    /// passed over when it is due.
    #[inline]
    fn pass_over(&mut self, source: &mut dyn Source) {
        for _ in 0..DRAWN_MAX {
            if !self.more || self.is_ours() {
                return;
            }
            self.draw(source);
        }
    }
}

/// The requests that a connection gathers, each with the time at which it was due.
#[derive(Clone, Default)]
struct Gathering(Vec<(Ask, u64)>);

impl Gathering {
    /// Adds a request. Returns whether there are this many now.
    fn add(&mut self, ask: &Ask, due: u64, count: u32) -> bool {
        self.0.push((ask.clone(), due));
        self.0.len() >= count as usize
    }

    /// Asks for all of them. Returns whether there were any.
    fn ask<L: Link>(&mut self, link: &mut L) -> bool {
        let any = !self.0.is_empty();
        self.0.drain(..).for_each(|(ask, due)| link.ask(&ask, due));
        any
    }
}

/// Drives the connections by the schedule, until the window has ended and everything is answered,
/// or the requests end.
pub fn run<L: Link, W: World<L>>(
    mut drive: Drive<'_, '_, L, W>,
    source: &mut dyn Source,
    schedule: &Schedule,
) -> Result<()> {
    let start = drive.world.now_ns();
    let clock = Clock {
        arrivals: schedule.arrivals,
        rng: SmallRng::seed_from_u64(!schedule.seed),
        due: (start + schedule.offset_ns) as f64,
    };
    let is_recorded = source.is_recorded();
    let under_way_max = schedule.arrivals.under_way_max(schedule.burst);
    let mut next = Next {
        ask: Ask::default(),
        clock,
        more: true,
        lanes: schedule.lanes,
        keys: schedule.keys,
        start,
    };
    next.draw(source);
    next.pass_over(source);
    drive.recorder.tick(start)?;
    let sends_max = if L::GATHERS { GATHERED_MAX } else { SENDS_MAX };
    let mut gathered: Vec<usize> = Vec::new();
    let mut gatherings = vec![Gathering::default(); drive.links.len()];
    loop {
        let mut now = drive.world.now_ns();
        let mut sends = 0;
        while next.more
            && next.due() <= now
            && next.due() < drive.recorder.window().to()
            && sends < sends_max
        {
            sends += 1;
            if !next.is_ours() {
                next.pass_over(source);
                continue;
            }
            let due = next.due();
            let places = next.lanes.connections(&next.ask, drive.links.len());
            let place = match is_recorded {
                true => connection_of(&next.ask, places),
                false => next.clock.rng.random_range(places),
            };
            let mut is_full = true;
            for turn in 1..=schedule.burst {
                match schedule.gather {
                    0 | 1 => drive.links[place].ask(&next.ask, due),
                    count => is_full = gatherings[place].add(&next.ask, due, count),
                }
                next.more = next.more && source.next(&mut next.ask);
                if !next.more && turn < schedule.burst {
                    break;
                }
            }
            if is_full {
                gatherings[place].ask(&mut drive.links[place]);
            }
            match L::GATHERS {
                _ if !is_full => {}
                false => drive.send(place)?,
                true if gathered.contains(&place) => {}
                true => gathered.push(place),
            }
            if drive.recorder.window().contains(due) {
                drive
                    .recorder
                    .lateness
                    .saturating_record((now - due).max(1));
            }
            next.clock.advance(&next.ask, start);
            next.pass_over(source);
            now = drive.world.now_ns();
        }
        for place in gathered.drain(..) {
            drive.send(place)?;
        }

        let to = drive.recorder.window().to();
        let due = next.due();
        if !next.more || due >= to {
            // Nothing more comes to what was gathered.
            for (place, gathering) in gatherings.iter_mut().enumerate() {
                if gathering.ask(&mut drive.links[place]) {
                    drive.send(place)?;
                }
            }
        }
        let patience_ns = match schedule.idle {
            _ if next.more && due <= now && due < to => 0,
            Idle::Spin => 0,
            Idle::Sleep if next.more && due < to => (due - now).min(PATIENCE_NS),
            Idle::Sleep => PATIENCE_NS,
        };
        for turn in 0..drive.wait(patience_ns)? {
            if let (place, Some(_)) = drive.receive(turn, source)? {
                drive.send(place)?;
            }
        }
        let now = drive.world.now_ns();
        drive.recorder.tick(now)?;
        let lags = next.more && next.due() < to && now > to.saturating_add(LATE_NS_MAX);
        if lags || drive.inspect(now)? && drive.under_way() > under_way_max {
            drive.recorder.saturated = true;
            drive.recorder.client_saturated = lags;
            drive.recorder.window().end_by(now);
        }
        // What was due before the end is sent, however late.
        let ended = now >= to && next.due() >= to || !next.more;
        // Every reply is awaited. The number of missing replies is a sum over all connections, so
        // it is computed only after the end.
        if ended && drive.under_way() == 0 || drive.recorder.saturated {
            return Ok(());
        }
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
