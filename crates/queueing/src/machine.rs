//! The events: an arrival, a core that is free, a link that is free.

use crate::{
    core::{Core, Work},
    costs::{Costs, Wire, packets},
    link::Link,
    outcome::Outcome,
    request::Request,
    workload::{Steer, Workload},
};
use glimmer_dispatch::{Controller, Decision, Depths, Histogram, Idle, Intake, Plan};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use rand_distr::{Distribution, Exp1};

/// Lengths of the queues. A request that finds a full one is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Requests in an RX queue.
    pub rx: usize,
    /// Requests in a software queue.
    pub queue: usize,
}

impl Bounds {
    /// No request is ever lost.
    pub const NONE: Bounds = Bounds {
        rx: usize::MAX,
        queue: usize::MAX,
    };
    /// The queues of the network card and of the server.
    pub const SERVER: Bounds = Bounds {
        rx: 4096,
        queue: 4096,
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
    /// The link by which replies leave; without one, they take no time.
    pub wire: Option<Wire>,
    /// Lengths of the queues.
    pub bounds: Bounds,
    /// Requests that arrive in a second, on average.
    pub offered_per_s: f64,
    /// Requests before the measurement.
    pub warm_up: u64,
    /// Requests that are measured.
    pub requests: u64,
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
    now_ns: f64,
    /// When each core is free; infinite while it is idle.
    free_ns: Vec<f64>,
    cores: Vec<Core>,
    /// Number of requests in each RX queue and in each software queue, for the plan.
    rx_depths: Vec<u32>,
    queue_depths: Vec<u32>,
    link: Option<Link>,
    rng: SmallRng,
    is_measured: bool,
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
            histograms: vec![Histogram::default(); cores],
            now_ns: 0.0,
            free_ns: vec![f64::INFINITY; cores],
            cores: (0..cores).map(|_| Core::default()).collect(),
            rx_depths: vec![0; cores],
            queue_depths: vec![0; cores],
            link: run.wire.map(|wire| Link::new(wire, cores)),
            rng: SmallRng::seed_from_u64(run.seed),
            is_measured: false,
            outcome: Outcome {
                plans: vec![(0.0, run.plan.clone())],
                ..Outcome::new(cores)
            },
        }
    }

    fn run(&mut self) {
        let gap_ns = 1e9 / self.run.offered_per_s;
        let mut arrival_ns = 0.0_f64;
        let (mut arrived, mut began_ns) = (0, 0.0);
        loop {
            let (core, core_ns) = self.next_free();
            let link_ns = self
                .link
                .as_ref()
                .map_or(f64::INFINITY, |link| link.free_ns);
            self.now_ns = arrival_ns.min(core_ns).min(link_ns).min(self.epoch_ns);
            if self.now_ns == arrival_ns {
                if arrived == self.run.warm_up + self.run.requests {
                    break;
                }
                if arrived == self.run.warm_up {
                    self.begin_measurement();
                    began_ns = self.now_ns;
                }
                arrived += 1;
                self.on_arrival();
                let gap: f64 = Exp1.sample(&mut self.rng);
                arrival_ns = self.now_ns + gap * gap_ns;
            } else if self.now_ns == core_ns {
                self.on_core_free(core);
            } else if self.now_ns == self.epoch_ns {
                self.on_epoch();
            } else {
                let link = self.link.as_mut().expect("it has an event");
                if let Some(request) = link.on_free(self.now_ns) {
                    self.outcome.record(self.now_ns, &request);
                }
            }
        }
        self.outcome.measured_ns = self.now_ns - began_ns;
        self.outcome.link_busy_ns = self.link.as_ref().map_or(0.0, |link| link.busy_ns);
    }

    fn begin_measurement(&mut self) {
        self.is_measured = true;
        self.outcome = Outcome {
            plans: std::mem::take(&mut self.outcome.plans),
            ..Outcome::new(self.cores.len())
        };
        if let Some(link) = &mut self.link {
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
        let next = adaptive.controller.epoch(&all);
        adaptive.epochs_max -= 1;
        self.epoch_ns = match adaptive.epochs_max {
            0 => f64::INFINITY,
            _ => self.now_ns + adaptive.epoch_ns,
        };
        if next.version() != self.plan.version() {
            self.plan = next.clone();
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

    fn on_arrival(&mut self) {
        let request = self.run.workload.draw(self.now_ns, &mut self.rng);
        let cores = self.cores.len();
        let rx = match self.run.steer {
            Steer::ToFirst => 0,
            Steer::ByKey if request.is_read => self.rng.random_range(0..cores),
            Steer::ByKey => self.plan.layout().map.owner(request.keyhash),
        };
        if self.cores[rx].rx.len() >= self.run.bounds.rx {
            self.outcome.lost += 1;
            return;
        }
        self.cores[rx].rx.push_back(request);
        self.rx_depths[rx] += 1;
        self.wake(rx);
    }

    /// Idle cores look for work, this one first: a request has come to one of its queues.
    fn wake(&mut self, at: usize) {
        let cores = self.cores.len();
        for place in 0..cores {
            let core = (at + place) % cores;
            if self.cores[core].work == Work::Idle && self.find_work(core) {
                return;
            }
        }
    }

    fn on_core_free(&mut self, core: usize) {
        let work = std::mem::take(&mut self.cores[core].work);
        self.free_ns[core] = f64::INFINITY;
        match work {
            Work::Idle => {}
            Work::Serve(request) => self.reply(core, request),
            Work::HandTo(request, to) => self.enqueue(request, to),
            Work::Move => {
                while let Some(request) = self.cores[core].batch.pop_front() {
                    self.enqueue(request, core);
                }
            }
        }
        if self.cores[core].work == Work::Idle {
            self.find_work(core);
        }
    }

    fn enqueue(&mut self, request: Request, to: usize) {
        if self.cores[to].queue.len() >= self.run.bounds.queue {
            self.outcome.lost += 1;
            return;
        }
        self.cores[to].queue.push_back(request);
        self.queue_depths[to] += 1;
        self.wake(to);
    }

    fn reply(&mut self, core: usize, request: Request) {
        self.outcome.executed(core, &request);
        match &mut self.link {
            None => self.outcome.record(self.now_ns, &request),
            Some(link) => {
                if !link.send(self.now_ns, core, request) {
                    self.outcome.lost += 1;
                }
            }
        }
    }

    /// Gives a core its next work. Returns whether there is any.
    fn find_work(&mut self, core: usize) -> bool {
        if let Some(request) = self.cores[core].batch.pop_front() {
            self.begin_received(core, request, 0.0);
            return true;
        }
        let role = self.plan.role(core);
        if role.serves_queue() && self.queue_depths[core] > 0 {
            self.take_queued(core, core, 0.0);
            return true;
        }
        let reads = role.reads.len();
        for _ in 0..reads {
            let place = self.cores[core].next_read % reads;
            self.cores[core].next_read = place + 1;
            let read = self.plan.role(core).reads[place];
            if self.rx_depths[read.rx] > 0 {
                self.read(core, read.rx, read.budget);
                return true;
            }
        }
        let depths = Depths {
            queues: &self.queue_depths,
            rx: &self.rx_depths,
        };
        let steal_ns = self.run.costs.steal_ns;
        match self.plan.when_idle(core, depths) {
            Idle::Wait => return false,
            Idle::TakeQueued(from) => self.take_queued(core, from, steal_ns),
            Idle::TakeReceived(rx) => {
                let request = self.take_received(rx);
                self.begin_received(core, request, self.run.costs.poll_ns + steal_ns);
            }
        }
        true
    }

    fn take_received(&mut self, rx: usize) -> Request {
        self.rx_depths[rx] -= 1;
        self.cores[rx].rx.pop_front().expect("the depth says so")
    }

    fn take_queued(&mut self, core: usize, from: usize, extra_ns: f64) {
        self.queue_depths[from] -= 1;
        let request = self.cores[from].queue.pop_front();
        let request = request.expect("the depth says so");
        let costs = self.run.costs;
        let time_ns = extra_ns + costs.dequeue_ns + costs.execute_ns + self.bulk_ns(&request);
        self.begin(core, Work::Serve(request), time_ns);
    }

    /// Reads a batch.
    fn read(&mut self, core: usize, rx: usize, budget: usize) {
        let costs = self.run.costs;
        let count = budget.min(self.cores[rx].rx.len());
        if self.plan.role(core).intake == Intake::Execute {
            let first = self.take_received(rx);
            for _ in 1..count {
                let request = self.take_received(rx);
                self.cores[core].batch.push_back(request);
            }
            return self.begin_received(core, first, costs.poll_ns);
        }
        for _ in 0..count {
            let request = self.take_received(rx);
            self.cores[core].batch.push_back(request);
        }
        let each_ns = costs.receive_ns + costs.enqueue_ns;
        self.begin(core, Work::Move, costs.poll_ns + each_ns * count as f64);
    }

    /// Begins a request that has come from an RX queue.
    fn begin_received(&mut self, core: usize, request: Request, extra_ns: f64) {
        let costs = self.run.costs;
        let mut received_ns = extra_ns + costs.receive_ns;
        if self.epoch_ns.is_finite() {
            self.histograms[core].record(request.bytes);
            received_ns += costs.profile_ns;
        }
        let decision = self.plan.on_arrival(core, request.keyhash, request.ask());
        if let Decision::HandTo(to) = decision {
            let time_ns = received_ns + costs.enqueue_ns;
            return self.begin(core, Work::HandTo(request, to), time_ns);
        }
        let found_ns = received_ns + costs.execute_ns;
        let decision = match request.is_read {
            true => self.plan.on_sized(core, request.bytes),
            false => Decision::Run,
        };
        match decision {
            Decision::HandTo(to) => {
                let time_ns = found_ns + costs.enqueue_ns;
                self.begin(core, Work::HandTo(request, to), time_ns);
            }
            Decision::Run => {
                let time_ns = found_ns + self.bulk_ns(&request);
                self.begin(core, Work::Serve(request), time_ns);
            }
        }
    }

    /// What depends on the size, and the lock of a write.
    fn bulk_ns(&self, request: &Request) -> f64 {
        let costs = self.run.costs;
        let lock_ns = if request.is_read { 0.0 } else { costs.lock_ns };
        lock_ns + costs.packet_ns * f64::from(packets(request.bytes))
    }

    fn begin(&mut self, core: usize, work: Work, time_ns: f64) {
        self.cores[core].work = work;
        self.free_ns[core] = self.now_ns + time_ns;
        self.outcome.cores[core].busy_ns += time_ns;
    }
}
