//! Open loop: requests are sent when they are due, whether or not earlier ones have been answered, and a latency counts from the moment the
//! request was due. A server that stalls is charged for every request that had to wait, which a closed loop would not even send.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use hdrhistogram::Histogram;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use rand_distr::{Distribution, Exp1};

use super::{
    Connection, Protocol, Step, Tally,
    closed::{Burst, Bursts, Outcome, SILENCE_MAX, Sample},
    poll::Poll,
};
use crate::popularity::Popularity;

/// Latencies above this are counted as this: 100 seconds.
const LATENCY_NS_MAX: u64 = 100_000_000_000;
/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// Arrivals sent before the client looks for replies again, when it is behind.
const SENDS_MAX: u32 = 16;

/// How the client passes the time until the next request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It looks again at once, so that its own waking up is not measured. Wants a core to itself.
    Spin,
    /// It sleeps, so that a server may have the core.
    Sleep,
}

/// What to send, and when.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Connections; each arrival takes one at random.
    pub connections: usize,
    /// What arrives at a time.
    pub burst: Burst,
    /// Arrivals per second: a Poisson process.
    pub arrivals_per_s: f64,
    /// Which keys.
    pub popularity: Popularity,
    /// What to do in between.
    pub idle: Idle,
    /// Goes before and is not counted.
    pub warm_up: Duration,
    /// What is counted.
    pub measured: Duration,
    /// Seed of arrivals, keys and verbs.
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// From when an arrival was due to its last reply, in nanoseconds.
    pub latency_ns: Histogram<u64>,
    /// How late the client itself was in sending, in nanoseconds.
    pub lateness_ns: Histogram<u64>,
    /// Operations and CPU time.
    pub outcome: Outcome,
}

/// An empty histogram of nanoseconds.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS).expect("bounds that a histogram can have")
}

/// An arrival under way on a connection.
struct Arrival {
    due: Instant,
    counted: bool,
    steps_left: usize,
}

/// Drives a server at a fixed rate. `server_cpu` says how much CPU time the server has used so far.
pub fn run(
    address: SocketAddr,
    protocol: &impl Protocol,
    plan: &Plan,
    server_cpu: &dyn Fn() -> Result<Duration>,
) -> Result<Latencies> {
    ensure!(
        plan.connections > 0 && plan.arrivals_per_s > 0.0,
        "nothing would be sent"
    );
    let open = |_| Connection::open(address);
    let mut connections = (0..plan.connections)
        .map(open)
        .collect::<Result<Vec<_>>>()?;
    let mut under_way: Vec<VecDeque<Arrival>> =
        connections.iter().map(|_| VecDeque::new()).collect();
    let mut poll = Poll::new(&connections)?;
    let mut bursts = Bursts::new(plan.burst, plan.popularity, plan.seed);
    let mut rng = SmallRng::seed_from_u64(!plan.seed);
    let mut tally = Tally::default();
    let (mut latency_ns, mut lateness_ns) = (histogram(), histogram());

    let start = Instant::now();
    let (measure_from, measure_to) = (start + plan.warm_up, start + plan.warm_up + plan.measured);
    let mut first: Option<Sample> = None;
    let mut last: Option<Sample> = None;
    let mut due = start;
    let mut blocked = false;
    let mut heard = start;
    loop {
        let mut now = Instant::now();
        let mut sends = 0;
        while due <= now && due < measure_to && sends < SENDS_MAX {
            sends += 1;
            let place = rng.random_range(0..connections.len());
            let connection = &mut connections[place];
            let steps_before = connection.steps.len();
            let counted = due >= measure_from;
            bursts.build(protocol, connection);
            connection.send()?;
            blocked |= connection.has_output();
            let steps_left = connection.steps.len() - steps_before;
            under_way[place].push_back(Arrival {
                due,
                counted,
                steps_left,
            });
            if counted {
                lateness_ns.saturating_record(nanos(now - due));
            }
            let gap_s: f64 = Exp1.sample(&mut rng);
            due += Duration::from_secs_f64(gap_s / plan.arrivals_per_s);
            now = Instant::now();
        }

        let patience = match plan.idle {
            Idle::Spin => Duration::ZERO,
            // A connection that took no more output is tried again soon.
            Idle::Sleep if blocked => Duration::from_millis(1),
            Idle::Sleep if due < measure_to => due.saturating_duration_since(now),
            Idle::Sleep => Duration::from_millis(10),
        };
        let before = tally.operations();
        for place in poll.ready(patience)? {
            let connection = &mut connections[place];
            let arrivals = &mut under_way[place];
            let mut received: Option<Instant> = None;
            connection.receive(protocol, &mut tally, |_: Step| {
                let arrival = arrivals.front_mut().expect("a reply belongs to an arrival");
                arrival.steps_left -= 1;
                if arrival.steps_left == 0 {
                    let received = *received.get_or_insert_with(Instant::now);
                    if arrival.counted {
                        latency_ns.saturating_record(nanos(received - arrival.due));
                    }
                    arrivals.pop_front();
                }
            })?;
        }

        if blocked {
            connections
                .iter_mut()
                .filter(|c| c.has_output())
                .try_for_each(Connection::send)?;
            blocked = connections.iter().any(Connection::has_output);
        }
        if tally.operations() > before {
            heard = now;
        } else if now - heard > SILENCE_MAX && under_way.iter().any(|arrivals| !arrivals.is_empty())
        {
            bail!(
                "the server has not answered for {} s",
                SILENCE_MAX.as_secs()
            );
        }
        if first.is_none() && now >= measure_from {
            first = Some(Sample::take(now, tally, server_cpu)?);
        }
        if last.is_none() && now >= measure_to {
            last = Some(Sample::take(now, tally, server_cpu)?);
        }
        if let (Some(first), Some(last)) = (&first, &last)
            && under_way.iter().all(VecDeque::is_empty)
        {
            return Ok(Latencies {
                latency_ns,
                lateness_ns,
                outcome: first.until(last),
            });
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    (duration.as_nanos() as u64).max(1)
}
