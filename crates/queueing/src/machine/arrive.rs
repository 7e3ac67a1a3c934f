//! Requests on their way to the server, and replies on their way out.

use super::Machine;
use crate::{core::Work, costs::packets, request::Request, workload::Steer};
use rand::Rng;

impl Machine<'_> {
    /// A client sends a request.
    pub(super) fn on_request(&mut self) {
        let request = self.run.workload.draw(self.now_ns, &mut self.rng);
        match &mut self.inward {
            None => self.on_arrival(request),
            Some(link) => {
                let client = self.rng.random_range(0..link.queues());
                let bytes = if request.is_read { 0 } else { request.bytes };
                link.send(self.now_ns, client, request, bytes, packets(bytes));
            }
        }
    }

    /// The last packet of a request may have come.
    pub(super) fn on_inward(&mut self) {
        let link = self.inward.as_mut().expect("it has an event");
        if let Some(request) = link.on_free(self.now_ns).completed {
            self.on_arrival(request);
        }
    }

    fn on_arrival(&mut self, request: Request) {
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
        self.outcome.waited += u64::from(self.cores[rx].work != Work::Idle);
        self.wake(rx);
    }

    /// A packet of a reply has left.
    pub(super) fn on_outward(&mut self) {
        let link = self.outward.as_mut().expect("it has an event");
        let sent = link.on_free(self.now_ns);
        if let Some(request) = sent.completed {
            self.outcome.record(self.now_ns, &request);
        }
        let core = sent.queue;
        self.tx_depths[core] -= 1;
        if let Work::Send(request) = self.cores[core].work {
            self.cores[core].work = Work::Idle;
            self.reply(core, request);
            if self.cores[core].work == Work::Idle {
                self.find_work(core);
            }
        } else if self.cores[core].work == Work::Idle {
            self.find_work(core);
        }
    }

    /// A core has executed a request. The core waits if its TX queue has no room.
    pub(super) fn reply(&mut self, core: usize, request: Request) {
        let is_sent = self.run.reply_share == 1.0 || self.rng.random_bool(self.run.reply_share);
        if !is_sent {
            return self.outcome.executed(core, &request);
        }
        let Some(link) = &mut self.outward else {
            self.outcome.executed(core, &request);
            return self.outcome.record(self.now_ns, &request);
        };
        let bytes = if request.is_read { request.bytes } else { 0 };
        let packets = packets(bytes);
        let waiting = link.packets(core);
        if waiting > 0 && waiting.saturating_add(packets) > self.run.bounds.tx {
            self.cores[core].work = Work::Send(request);
            return;
        }
        self.outcome.executed(core, &request);
        self.tx_depths[core] += packets;
        link.send(self.now_ns, core, request, bytes, packets);
    }
}
