//! A server with costs, a link and bounded queues, under any dispatch policy.

use crate::{
    Adaptive, Bounds, Costs, Design, Held, Outcome, Run, Steer, Wire, Workload,
    search::{highest, within},
};
use glimmer_base::limits::SLICE_BYTES;
use glimmer_dispatch::{
    AccessMode, ByKeyhash, Controller, Handoff, LargeCores, Layout, PACKET_BYTES, PartitionMap,
    Policy, Settings, SizeAware, Stealing,
};
use rand::{SeedableRng, rngs::SmallRng};

/// Requests of an epoch. The paper's epochs of a second have millions; with this number the cost of
/// large requests is known to a few percent.
const EPOCH_REQUESTS: u64 = 200_000;

/// Requests from which the bound of a server's load is computed.
const BOUND_REQUESTS: u64 = 400_000;
/// The bound is above what was computed by this factor, since large requests are few.
const ABOVE: f64 = 1.05;

/// How requests are spread over cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dispatch {
    /// Where they arrive.
    Keyhash,
    /// By this number of cores that do nothing else.
    Handoff(usize),
    /// Where they arrive, or on an idle core.
    Stealing,
    /// By size, with this rule for the number of large cores.
    SizeAware(LargeCores),
    /// By size, with the plan of the first epoch, after which no request is counted.
    Static(LargeCores),
    /// By size, with this number of large cores, which take small requests too ([`Design`]).
    LargeTakeSmall(usize),
    /// By size, with the paper's formula and small requests sharded too ([`Design`]).
    SmallBySize,
}

/// A server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    /// Number of cores.
    pub cores: usize,
    /// CPU time of each step.
    pub costs: Costs,
    /// Its link; without one, requests and replies take no time on their way.
    pub wire: Option<Wire>,
    /// Lengths of its queues.
    pub bounds: Bounds,
    /// The share of replies that are sent.
    pub reply_share: f64,
    /// Requests of an epoch, on average.
    pub epoch_requests: u64,
    /// Bytes of a slice ([`Run::slice_bytes`]).
    pub slice_bytes: u32,
    /// Requests that arrive together ([`Run::burst`]).
    pub burst: u32,
    /// For how long cores keep others away from a queue ([`Run::held`]).
    pub held: Option<Held>,
}

/// One simulation of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Requests that arrive in a second, on average.
    pub offered_per_s: f64,
    /// Requests that are measured.
    pub requests: u64,
    /// The run repeats exactly from the same seed.
    pub seed: u64,
}

impl Server {
    /// A server of this many cores whose queues are bounded.
    pub fn new(cores: usize, costs: Costs, wire: Wire) -> Server {
        Server {
            cores,
            wire: Some(wire),
            ..Server::alone(costs)
        }
    }

    /// A server of one core without a link.
    pub fn alone(costs: Costs) -> Server {
        Server {
            cores: 1,
            costs,
            wire: None,
            bounds: Bounds::SERVER,
            reply_share: 1.0,
            epoch_requests: EPOCH_REQUESTS,
            slice_bytes: u32::MAX,
            burst: 1,
            held: None,
        }
    }

    /// The same server with slices as long as those of the live server, in whole packets.
    pub fn slicing(self) -> Server {
        let packets = SLICE_BYTES as u32 / PACKET_BYTES;
        Server {
            slice_bytes: packets * PACKET_BYTES,
            ..self
        }
    }

    /// The same server, of whose replies only a share is sent.
    pub fn sending(self, reply_share: f64) -> Server {
        Server {
            reply_share,
            ..self
        }
    }

    /// What is simulated.
    pub fn run<'a>(&self, dispatch: Dispatch, workload: &'a dyn Workload, trial: Trial) -> Run<'a> {
        let layout = Layout {
            map: PartitionMap::new(16 * self.cores, self.cores),
            access: AccessMode::Crcw,
        };
        let controller = |large_cores| {
            let settings = Settings {
                large_cores,
                ..Settings::DEFAULT
            };
            Controller::new(SizeAware::with(settings), layout)
        };
        let adapting = |rule| {
            let controller = controller(rule);
            (controller.plan().clone(), Some(controller), usize::MAX)
        };
        let design = match dispatch {
            Dispatch::LargeTakeSmall(_) => Design::LargeTakeSmall,
            Dispatch::SmallBySize => Design::small_by_size(workload),
            _ => Design::Plain,
        };
        let (plan, controller, epochs_max) = match dispatch {
            Dispatch::Keyhash => (ByKeyhash.plan(layout), None, 0),
            Dispatch::Handoff(dispatchers) => (Handoff { dispatchers }.plan(layout), None, 0),
            Dispatch::Stealing => (Stealing.plan(layout), None, 0),
            Dispatch::SizeAware(rule) => adapting(rule),
            Dispatch::Static(rule) => {
                let controller = controller(rule);
                (controller.plan().clone(), Some(controller), 1)
            }
            Dispatch::LargeTakeSmall(large) => adapting(LargeCores::Fixed(large)),
            Dispatch::SmallBySize => adapting(LargeCores::Paper),
        };
        Run {
            plan: design.of(&plan),
            adaptive: controller.map(|controller| Adaptive {
                controller,
                epoch_ns: self.epoch_requests as f64 / trial.offered_per_s * 1e9,
                epochs_max,
                design,
            }),
            workload,
            steer: Steer::ByKey,
            costs: self.costs,
            wire: self.wire,
            reply_share: self.reply_share,
            slice_bytes: self.slice_bytes,
            burst: self.burst,
            held: self.held,
            bounds: self.bounds,
            offered_per_s: trial.offered_per_s,
            // The plan of the first epoch is in force when the measurement begins.
            warm_up: self.epoch_requests * 5 / 4,
            requests: trial.requests,
            window_ns: None,
            seed: trial.seed,
        }
    }

    /// A load, in requests per second, that is above what the server sustains: some core or a
    /// direction of the link would be busy all the time.
    pub fn bound_per_s(&self, workload: &dyn Workload) -> f64 {
        let mut rng = SmallRng::seed_from_u64(1);
        let (mut core_ns, mut inward_ns, mut outward_ns) = (0.0, 0.0, 0.0);
        for _ in 0..BOUND_REQUESTS {
            let request = workload.draw(0.0, &mut rng);
            let service = self.costs.service(request.is_read);
            core_ns += self.costs.receive_ns + service.execute_ns;
            core_ns += service.packets_ns(request.bytes);
            let (inward, outward) = match request.is_read {
                true => (0, request.bytes),
                false => (request.bytes, 0),
            };
            let message_ns = |bytes| self.wire.map_or(0.0, |wire| wire.message_ns(bytes));
            inward_ns += message_ns(inward);
            outward_ns += self.reply_share * message_ns(outward);
        }
        let busiest_ns = (core_ns / self.cores as f64).max(inward_ns).max(outward_ns);
        ABOVE * BOUND_REQUESTS as f64 / busiest_ns * 1e9
    }

    /// The mean CPU time that a read of this workload takes, in nanoseconds, where it is executed
    /// on the core that received it.
    pub fn mean_read_ns(&self, workload: &dyn Workload) -> f64 {
        let mut rng = SmallRng::seed_from_u64(1);
        let drawn = (0..BOUND_REQUESTS).map(|_| workload.draw(0.0, &mut rng));
        let fixed_ns = self.costs.receive_ns + self.costs.get.execute_ns;
        let (mut sum_ns, mut reads) = (0.0, 0.0);
        for request in drawn.filter(|request| request.is_read) {
            sum_ns += fixed_ns + self.costs.get.packets_ns(request.bytes);
            reads += 1.0;
        }
        sum_ns / reads
    }

    /// Simulates one load.
    pub fn simulate(&self, dispatch: Dispatch, workload: &dyn Workload, trial: Trial) -> Outcome {
        self.run(dispatch, workload, trial).simulate()
    }

    /// The highest load, in requests per second, at which no request is lost.
    pub fn peak_per_s(&self, dispatch: Dispatch, workload: &dyn Workload, trial: Trial) -> f64 {
        highest(trial.offered_per_s, |offered_per_s| {
            let trial = Trial {
                offered_per_s,
                ..trial
            };
            self.simulate(dispatch, workload, trial)
                .is_sustained(offered_per_s)
        })
    }

    /// The highest load, in requests per second, at which no request is lost and the 99th
    /// percentile is within each of these bounds in nanoseconds.
    pub fn within_per_s<const N: usize>(
        &self,
        dispatch: Dispatch,
        workload: &dyn Workload,
        trial: Trial,
        p99_ns: [f64; N],
    ) -> [f64; N] {
        within(trial.offered_per_s, p99_ns, |offered_per_s| {
            let trial = Trial {
                offered_per_s,
                ..trial
            };
            let outcome = self.simulate(dispatch, workload, trial);
            match outcome.is_sustained(offered_per_s) {
                true => outcome.p99_ns(),
                false => f64::INFINITY,
            }
        })
    }
}
