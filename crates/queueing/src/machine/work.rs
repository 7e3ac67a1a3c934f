//! What the cores do.

use super::Machine;
use crate::{
    core::{Part, Work},
    request::Request,
    shared::Held,
};
use glimmer_base::limits::DISPATCH_BATCH;
use glimmer_dispatch::{Decision, Depths, Idle, Intake};

impl Machine<'_> {
    /// Idle cores look for work: a request has come to a queue of core `at`. That core looks first
    /// if the queue is its own to serve, then those that read RX queues in every turn, then those
    /// that take what they find. Among equals they take turns, since all of them poll.
    pub(super) fn wake(&mut self, at: usize) {
        let role = self.plan.role(at);
        let serves = self.queue_depths[at] > 0 && role.serves_queue();
        let reads = role.reads.iter().any(|read| read.rx == at);
        if (serves || reads) && self.cores[at].work == Work::Idle && self.find_work(at) {
            return;
        }
        let helpers = self.helpers[at].len();
        if helpers == 0 {
            return;
        }
        let first = self.helpers[at].partition_point(|&core| core < self.next_awake);
        for readers in [true, false] {
            for place in 0..helpers {
                let core = self.helpers[at][(first + place) % helpers];
                let reads = !self.plan.role(core).reads.is_empty();
                let looks = reads == readers && self.cores[core].work == Work::Idle;
                if looks && self.find_work(core) {
                    self.next_awake = core + 1;
                    return;
                }
            }
        }
    }

    pub(super) fn on_core_free(&mut self, core: usize) {
        let work = std::mem::take(&mut self.cores[core].work);
        self.free_ns[core] = f64::INFINITY;
        match work {
            Work::Idle | Work::Send(_) => {}
            Work::Serve(part) => self.reply(core, part),
            Work::HandTo(request, to) => match self.wait_to_put(to) {
                wait_ns if wait_ns > 0.0 => self.begin(core, Work::Put(request, to), wait_ns),
                _ => self.enqueue(request, to),
            },
            Work::Put(request, to) => self.enqueue(request, to),
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

    /// A core puts a request into its own software queue, or hands it to another core.
    fn enqueue(&mut self, request: Request, to: usize) {
        if self.cores[to].queue.len() >= self.run.bounds.queue {
            self.outcome.lost += 1;
            return;
        }
        self.cores[to].queue.push_back(request);
        self.queue_depths[to] += 1;
        self.wake(to);
    }

    /// Gives a core its next work. Returns whether there is any.
    pub(super) fn find_work(&mut self, core: usize) -> bool {
        if self.cores[core].since_slice >= DISPATCH_BATCH && self.go_on(core) {
            return true;
        }
        if let Some(request) = self.cores[core].batch.pop_front() {
            self.begin_received(core, request, 0.0);
            return true;
        }
        let role = self.plan.role(core);
        if role.serves_queue() && self.queue_depths[core] > 0 {
            let shared_ns = match role.intake {
                Intake::Execute => 0.0,
                Intake::Enqueue | Intake::HandOff => self.run.costs.steal_ns,
            };
            self.take_queued(core, core, shared_ns);
            return true;
        }
        let reads = role.reads.len();
        for _ in 0..reads {
            let place = self.cores[core].next_read % reads;
            self.cores[core].next_read = place + 1;
            let read = self.plan.role(core).reads[place];
            let budget = read.budget.min(self.room(core));
            if self.rx_depths[read.rx] > 0 && budget > 0 {
                self.read(core, read.rx, budget);
                return true;
            }
        }
        if self.go_on(core) {
            return true;
        }
        let depths = Depths {
            queues: &self.queue_depths,
            rx: &self.rx_depths,
            tx: &self.tx_depths,
        };
        let steal_ns = self.run.costs.steal_ns;
        match self.plan.when_idle(core, depths) {
            Idle::Wait => return false,
            Idle::TakeQueued(from) => {
                self.outcome.stolen += u64::from(from != core);
                self.take_queued(core, from, steal_ns);
            }
            Idle::TakeReceived(rx) => {
                self.outcome.stolen += u64::from(rx != core);
                let request = self.take_received(rx);
                self.begin_received(core, request, self.run.costs.poll_ns + steal_ns);
            }
        }
        true
    }

    /// A core goes on with the value that has waited longest for its next slice, if there is one.
    fn go_on(&mut self, core: usize) -> bool {
        let Some(part) = self.cores[core].sliced.pop_front() else {
            return false;
        };
        self.cores[core].since_slice = 0;
        let part = part.next(self.run.slice_bytes);
        let costs = self.run.costs;
        let packets_ns = costs.service(part.request.is_read).packets_ns(part.bytes);
        self.begin(core, Work::Serve(part), costs.poll_ns + packets_ns);
        true
    }

    /// The first part of a request. A core whose turns begin with an RX queue serves small requests
    /// as well, and so it handles large values in slices.
    fn first_part(&self, core: usize, request: Request) -> Part {
        let slice_bytes = match self.plan.role(core).reads.is_empty() {
            true => u32::MAX,
            false => self.run.slice_bytes,
        };
        Part::first(request, slice_bytes)
    }

    /// Requests that a core may read: those that it moves need a place in its software queue.
    fn room(&self, core: usize) -> usize {
        match self.plan.role(core).intake {
            Intake::Execute => usize::MAX,
            _ => self.run.bounds.queue - self.cores[core].queue.len(),
        }
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
        let service = costs.service(request.is_read);
        let part = self.first_part(core, request);
        let served_ns = service.execute_ns + service.packets_ns(part.bytes);
        let time_ns = extra_ns + costs.dequeue_ns + served_ns;
        self.begin(core, Work::Serve(part), time_ns);
        if self.cores[from].work == Work::Idle {
            // It may have waited for a place in its queue.
            self.find_work(from);
        }
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
            let waited_ns = self.wait_to_read(core, rx, count);
            return self.begin_received(core, first, costs.poll_ns + waited_ns);
        }
        for _ in 0..count {
            let request = self.take_received(rx);
            self.cores[core].batch.push_back(request);
        }
        let each_ns = costs.receive_ns + costs.enqueue_ns;
        self.begin(core, Work::Move, costs.poll_ns + each_ns * count as f64);
    }

    /// For how long a core waits before it reads this many requests from an RX queue.
    fn wait_to_read(&mut self, core: usize, rx: usize, count: usize) -> f64 {
        let Some(held) = self.run.held.filter(|_| rx != core) else {
            return 0.0;
        };
        let held_ns = held.look_ns + held.receive_ns * count as f64;
        let accesses = &mut self.outcome.shared_reads;
        accesses.add(&mut self.rx_free_ns[rx], self.now_ns, held_ns)
    }

    /// For how long a core waits that would have put a request into the queue of another by now.
    fn wait_to_put(&mut self, to: usize) -> f64 {
        let Some(Held { put_ns, .. }) = self.run.held else {
            return 0.0;
        };
        let accesses = &mut self.outcome.shared_puts;
        accesses.add(&mut self.queue_free_ns[to], self.now_ns - put_ns, put_ns)
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
        let service = costs.service(request.is_read);
        let found_ns = received_ns + service.execute_ns;
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
                let part = self.first_part(core, request);
                let time_ns = found_ns + service.packets_ns(part.bytes);
                self.begin(core, Work::Serve(part), time_ns);
            }
        }
    }

    fn begin(&mut self, core: usize, work: Work, time_ns: f64) {
        match work {
            Work::Serve(part) if part.request.bytes >= self.plan.large_from() => {
                self.busy_ns.large += time_ns;
            }
            _ => self.busy_ns.small += time_ns,
        }
        self.cores[core].since_slice += 1;
        self.cores[core].work = work;
        self.free_ns[core] = self.now_ns + time_ns;
        self.outcome.cores[core].busy_ns += time_ns;
    }
}
