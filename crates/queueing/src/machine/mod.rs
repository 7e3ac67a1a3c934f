//! The events: an arrival, a core that is free, a link that is free, and the end of an epoch.

mod arrive;
mod work;

use crate::{
    core::{Core, Work},
    costs::{Costs, Wire},
    design::Design,
    link::Link,
    outcome::Outcome,
    shared::Held,
    workload::{Steer, Workload},
};
use glimmer_dispatch::{Busy, Controller, Histogram, Plan};
use rand::{SeedableRng, rngs::SmallRng};
use rand_distr::{Distribution, Exp1};

/// Lengths of the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Requests in an RX queue. One that finds it full is lost.
    pub rx: usize,
    /// Requests in a software queue. One that is handed over and finds it full is lost. A core that
    /// moves requests to its own queue reads no more of them than there is room for.
    pub queue: usize,
    /// Packets in a TX queue. A core whose reply finds no room waits.
    pub tx: u32,
}

impl Bounds {
    /// No request is ever lost.
    pub const NONE: Bounds = Bounds {
        rx: usize::MAX,
        queue: usize::MAX,
        tx: u32::MAX,
    };
    /// The queues of the network card and of the server.
    pub const SERVER: Bounds = Bounds {
        rx: 4096,
        queue: 512,
        tx: 4096,
    };
}

/// A plan that follows the sizes of the requests.
#[derive(Clone, Debug)]
pub struct Adaptive {
    /// Makes the plans.
    pub controller: Controller,
    /// Length of an epoch, in nanoseconds.
    pub epoch_ns: f64,
    /// After this many epochs the plan stays, and no request is counted any more.
    pub epochs_max: usize,
    /// What becomes of each plan.
    pub design: Design,
}

/// What is simulated.
#[derive(Clone)]
pub struct Run<'a> {
    /// Where requests execute, at first.
    pub plan: Plan,
    /// What changes the plan.
    pub adaptive: Option<Adaptive>,
    /// Which requests arrive.
    pub workload: &'a dyn Workload,
    /// To which RX queue clients send them.
    pub steer: Steer,
    /// CPU time of each step.
    pub costs: Costs,
    /// The link by which requests come and replies leave; without one, they take no time.
    pub wire: Option<Wire>,
    /// The share of replies that are sent. The others are dropped when they are ready.
    pub reply_share: f64,
    /// A core that serves small requests as well handles a value in slices of this many bytes, and
    /// looks for small requests after each. `u32::MAX`: every value as a whole.
    pub slice_bytes: u32,
    /// Lengths of the queues.
    pub bounds: Bounds,
    /// Requests that arrive at the same time, in one RX queue where there is no link.
    pub burst: u32,
    /// For how long a core that reads the RX queue of another core, or puts a request into its
    /// software queue, keeps others from doing the same; `None`: for no time. Cores wait for their
    /// turn, and do nothing else meanwhile. A core that finds an RX queue empty keeps nobody away.
    pub held: Option<Held>,
    /// Requests that arrive in a second, on average.
    pub offered_per_s: f64,
    /// Requests before the measurement.
    pub warm_up: u64,
    /// Requests that are measured.
    pub requests: u64,
    /// Latencies are also kept by windows of this length, in nanoseconds.
    pub window_ns: Option<f64>,
    /// The run repeats exactly from the same seed.
    pub seed: u64,
}

impl Run<'_> {
    /// Runs the simulation.
    pub fn simulate(&self) -> Outcome {
        let mut machine = Machine::new(self);
        machine.run();
        machine.outcome
    }
}

struct Machine<'a> {
    run: &'a Run<'a>,
    plan: Plan,
    adaptive: Option<Adaptive>,
    /// The end of the epoch; infinite if the plan stays.
    epoch_ns: f64,
    /// By core: the requests of this epoch.
    histograms: Vec<Histogram>,
    /// CPU time of this epoch, in nanoseconds.
    busy_ns: Busy,
    now_ns: f64,
    /// When each core is free; infinite while it is idle.
    free_ns: Vec<f64>,
    cores: Vec<Core>,
    /// By core: the others that may find work when a request comes to one of its queues, in order.
    helpers: Vec<Vec<usize>>,
    /// Of equal idle cores, this one looks for work first.
    next_awake: usize,
    /// Number of requests in each RX queue and in each software queue, for the plan.
    rx_depths: Vec<u32>,
    queue_depths: Vec<u32>,
    tx_depths: Vec<u32>,
    /// When each RX queue and each software queue is free for another core.
    rx_free_ns: Vec<f64>,
    queue_free_ns: Vec<f64>,
    /// Requests on their way to the server, with a queue for each client.
    inward: Option<Link>,
    /// Replies on their way out, with a queue for each core.
    outward: Option<Link>,
    rng: SmallRng,
    outcome: Outcome,
}

impl<'a> Machine<'a> {
    fn new(run: &'a Run<'a>) -> Machine<'a> {
        let cores = run.plan.layout().map.cores();
        Machine {
            run,
            plan: run.plan.clone(),
            adaptive: run.adaptive.clone(),
            epoch_ns: match &run.adaptive {
                Some(adaptive) => adaptive.epoch_ns,
                None => f64::INFINITY,
            },
            busy_ns: Busy::default(),
            histograms: vec![Histogram::default(); cores],
            now_ns: 0.0,
            free_ns: vec![f64::INFINITY; cores],
            cores: (0..cores).map(|_| Core::default()).collect(),
            helpers: helpers(&run.plan),
            next_awake: 0,
            rx_depths: vec![0; cores],
            queue_depths: vec![0; cores],
            tx_depths: vec![0; cores],
            rx_free_ns: vec![0.0; cores],
            queue_free_ns: vec![0.0; cores],
            inward: run.wire.map(|wire| Link::new(wire, wire.clients)),
            outward: run.wire.map(|wire| Link::new(wire, cores)),
            rng: SmallRng::seed_from_u64(run.seed),
            outcome: Outcome {
                plans: vec![(0.0, run.plan.clone())],
                ..Outcome::new(cores, run.window_ns)
            },
        }
    }

    fn run(&mut self) {
        let burst = u64::from(self.run.burst);
        let gap_ns = 1e9 / self.run.offered_per_s * burst as f64;
        let free_ns =
            |link: &Option<Link>| link.as_ref().map_or(f64::INFINITY, |link| link.free_ns);
        let mut arrival_ns = 0.0_f64;
        let (mut arrived, mut began_ns) = (0, None);
        loop {
            let (core, core_ns) = self.next_free();
            let (in_ns, out_ns) = (free_ns(&self.inward), free_ns(&self.outward));
            let others_ns = core_ns.min(in_ns).min(out_ns).min(self.epoch_ns);
            self.now_ns = arrival_ns.min(others_ns);
            if self.now_ns == arrival_ns {
                if arrived >= self.run.warm_up + self.run.requests {
                    break;
                }
                if began_ns.is_none() && arrived >= self.run.warm_up {
                    self.begin_measurement();
                    began_ns = Some(self.now_ns);
                }
                arrived += burst;
                self.on_requests();
                let gap: f64 = Exp1.sample(&mut self.rng);
                arrival_ns = self.now_ns + gap * gap_ns;
            } else if self.now_ns == core_ns {
                self.on_core_free(core);
            } else if self.now_ns == self.epoch_ns {
                self.on_epoch();
            } else if self.now_ns == in_ns {
                self.on_inward();
            } else {
                self.on_outward();
            }
        }
        self.outcome.measured_ns = self.now_ns - began_ns.unwrap_or_default();
        let busy_ns = |link: &Option<Link>| link.as_ref().map_or(0.0, |link| link.busy_ns);
        self.outcome.link_busy_ns = busy_ns(&self.outward);
        self.outcome.inward_busy_ns = busy_ns(&self.inward);
    }

    fn begin_measurement(&mut self) {
        self.outcome = Outcome {
            plans: std::mem::take(&mut self.outcome.plans),
            ..Outcome::new(self.cores.len(), self.run.window_ns)
        };
        for link in [&mut self.inward, &mut self.outward].into_iter().flatten() {
            link.busy_ns = 0.0;
        }
    }

    /// Core 0 merges the histograms of all cores, and the plan may change. Requests that a core
    /// holds stay with it.
    fn on_epoch(&mut self) {
        let adaptive = self.adaptive.as_mut().expect("it has an epoch");
        let mut all = Histogram::default();
        for histogram in &mut self.histograms {
            all.merge(&std::mem::take(histogram));
        }
        let busy = std::mem::take(&mut self.busy_ns);
        let busy = Busy {
            small: busy.small / adaptive.epoch_ns,
            large: busy.large / adaptive.epoch_ns,
        };
        let next = adaptive.controller.epoch(&all, Some(busy));
        let next = adaptive.design.of(next);
        adaptive.epochs_max -= 1;
        self.epoch_ns = match adaptive.epochs_max {
            0 => f64::INFINITY,
            _ => self.now_ns + adaptive.epoch_ns,
        };
        if next.version() != self.plan.version() {
            self.plan = next;
            self.helpers = helpers(&self.plan);
            self.outcome.plans.push((self.now_ns, self.plan.clone()));
            for core in 0..self.cores.len() {
                self.cores[core].next_read = 0;
                if self.cores[core].work == Work::Idle {
                    self.find_work(core);
                }
            }
        }
    }

    /// The core that is free first.
    fn next_free(&self) -> (usize, f64) {
        let mut first = (0, self.free_ns[0]);
        for (core, &free_ns) in self.free_ns.iter().enumerate().skip(1) {
            if free_ns < first.1 {
                first = (core, free_ns);
            }
        }
        first
    }
}

/// By core: those that may find work in its queues besides itself. Those that look beside large
/// replies are among them wherever they look: a reply that has left may let them.
fn helpers(plan: &Plan) -> Vec<Vec<usize>> {
    let cores = 0..plan.layout().map.cores();
    let of = |at: usize| {
        let helps = |&core: &usize| {
            let role = plan.role(core);
            let reads = role.reads.iter().any(|read| read.rx == at);
            let takes = &role.takes;
            let takes = takes.queues.contains(&at) || takes.rx.contains(&at);
            (reads && core != at) || takes || role.takes.beside_large
        };
        cores.clone().filter(helps).collect()
    };
    cores.clone().map(of).collect()
}
