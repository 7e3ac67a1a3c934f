//! Open loop: requests are sent when they are due, whether or not earlier ones have been answered,
//! and a latency counts from the moment the request was due. A server that stalls is charged for
//! every request that had to wait, which a closed loop would not even send (Tene: coordinated
//! omission; Schroeder et al., NSDI 2006: open versus closed).

use anyhow::Result;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use rand_distr::{Distribution, Exp1};
use serde::Serialize;

use super::{Drive, World};
use crate::{
    driver::Link,
    workload::{Ask, Source, key_part},
};

/// Arrivals sent before the client looks for replies again, when it is behind.
const SENDS_MAX: u32 = 16;
/// The same where they leave together.
const GATHERED_MAX: u32 = 256;
/// Requests of a thread without a reply: beyond this, and beyond what is due in a second, the
/// server will not catch up, and the run ends.
const UNDER_WAY_MAX: usize = 1 << 18;
/// A client that is so late at the window's end with what was due before it will not catch up
/// either.
const LATE_NS_MAX: u64 = 2_000_000_000;
/// Nanoseconds between two looks at silent connections.
const PATIENCE_NS: u64 = 10_000_000;

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Independently of one another: a Poisson process with this many arrivals per second.
    Poisson(f64),
    /// At equal distances, this many per second.
    Fixed(f64),
    /// As a trace recorded them, faster by this factor.
    Recorded(f64),
}

impl Arrivals {
    /// Requests without a reply that are no reason to give up.
    fn under_way_max(self, burst: u32) -> usize {
        match self {
            Arrivals::Poisson(rate) | Arrivals::Fixed(rate) => {
                ((rate * f64::from(burst)) as usize).max(UNDER_WAY_MAX)
            }
            Arrivals::Recorded(_) => UNDER_WAY_MAX,
        }
    }

    /// Those of one of `parts` threads, which together make up all.
    pub fn part(self, parts: usize) -> Arrivals {
        match self {
            Arrivals::Poisson(rate) => Arrivals::Poisson(rate / parts as f64),
            Arrivals::Fixed(rate) => Arrivals::Fixed(rate / parts as f64),
            Arrivals::Recorded(speed) => Arrivals::Recorded(speed),
        }
    }
}

/// How the client passes the time until the next request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// It looks again at once, so that its own waking up is not measured. Wants a core to itself.
    Spin,
    /// It sleeps, so that others may have the core.
    Sleep,
}

/// The arrivals of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// When.
    pub arrivals: Arrivals,
    /// Requests that arrive together, on one connection.
    pub burst: u32,
    /// What happens in between.
    pub idle: Idle,
    /// Nanoseconds until the first of equal distances, so that threads take turns.
    pub offset_ns: u64,
    /// Seed of arrivals and of their connections.
    pub seed: u64,
}

/// Draws the moments at which requests are due.
struct Clock {
    arrivals: Arrivals,
    rng: SmallRng,
    /// In nanoseconds; a fraction is kept, so that equal distances do not drift.
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

/// Drives the connections by the schedule until the window ends and all has been answered, or the
/// requests end.
pub fn run<L: Link, W: World<L>>(
    mut drive: Drive<'_, '_, L, W>,
    source: &mut dyn Source,
    schedule: &Schedule,
) -> Result<()> {
    let mut ask = Ask::default();
    let start = drive.world.now_ns();
    let mut clock = Clock {
        arrivals: schedule.arrivals,
        rng: SmallRng::seed_from_u64(!schedule.seed),
        due: (start + schedule.offset_ns) as f64,
    };
    let recorded = matches!(schedule.arrivals, Arrivals::Recorded(_));
    let under_way_max = schedule.arrivals.under_way_max(schedule.burst);
    let mut more = source.next(&mut ask);
    clock.advance(&ask, start);
    drive.recorder.tick(start)?;
    let sends_max = if L::GATHERS { GATHERED_MAX } else { SENDS_MAX };
    let mut gathered: Vec<usize> = Vec::new();
    loop {
        let mut now = drive.world.now_ns();
        let mut sends = 0;
        while more
            && clock.due as u64 <= now
            && (clock.due as u64) < drive.recorder.window().to()
            && sends < sends_max
        {
            let due = clock.due as u64;
            // A trace's requests of one key keep their order.
            let place = match recorded {
                true => key_part(
                    ask.keys[0].number().rotate_left(32),
                    drive.links.len() as u64,
                ) as usize,
                false => clock.rng.random_range(0..drive.links.len()),
            };
            for turn in 1..=schedule.burst {
                drive.links[place].ask(&ask, due);
                more = more && source.next(&mut ask);
                if !more && turn < schedule.burst {
                    break;
                }
            }
            match L::GATHERS {
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
            clock.advance(&ask, start);
            sends += 1;
            now = drive.world.now_ns();
        }
        for place in gathered.drain(..) {
            drive.send(place)?;
        }

        let to = drive.recorder.window().to();
        let due = clock.due as u64;
        let patience_ns = match schedule.idle {
            _ if more && due <= now && due < to => 0,
            Idle::Spin => 0,
            Idle::Sleep if more && due < to => (due - now).min(PATIENCE_NS),
            Idle::Sleep => PATIENCE_NS,
        };
        for turn in 0..drive.wait(patience_ns)? {
            if let (place, Some(_)) = drive.receive(turn, source)? {
                drive.send(place)?;
            }
        }
        let now = drive.world.now_ns();
        drive.recorder.tick(now)?;
        let behind = more && (clock.due as u64) < to && now > to.saturating_add(LATE_NS_MAX);
        if behind || drive.inspect(now)? && drive.under_way() > under_way_max {
            drive.recorder.saturated = true;
            drive.recorder.window().end_by(now);
        }
        let ended = now >= to || !more;
        // Every reply is waited for; how many are missing is a sum over all connections, so it is
        // asked only after the end.
        if ended && drive.under_way() == 0 || drive.recorder.saturated {
            return Ok(());
        }
    }
}
