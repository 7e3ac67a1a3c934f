//! Requests on their way to the server, and replies on their way out.

use super::Machine;
use crate::{
    core::{Part, Work},
    costs::packets,
    request::Request,
    workload::Steer,
};
use rand::Rng;

impl Machine<'_> {
    /// A client sends requests.
    pub(super) fn on_requests(&mut self) {
        let mut together = None;
        for _ in 0..self.run.burst {
            let request = self.run.workload.draw(self.now_ns, &mut self.rng);
            match &mut self.inward {
                None => {
                    let rx = together.unwrap_or_else(|| self.rx_of(&request));
                    together = Some(rx);
                    self.receive(rx, request);
                }
                Some(link) => {
                    let client = self.rng.random_range(0..link.queues());
                    let bytes = if request.is_read { 0 } else { request.bytes };
                    link.send(self.now_ns, client, Some(request), bytes, packets(bytes));
                }
            }
        }
        if let Some(rx) = together {
            self.wake(rx);
        }
    }

    /// The last packet of a request may have come.
    pub(super) fn on_inward(&mut self) {
        let link = self.inward.as_mut().expect("it has an event");
        if let Some(request) = link.on_free(self.now_ns).completed {
            let rx = self.rx_of(&request);
            self.receive(rx, request);
            self.wake(rx);
        }
    }

    /// The RX queue to which a request is sent.
    fn rx_of(&mut self, request: &Request) -> usize {
        match self.run.steer {
            Steer::ToFirst => 0,
            Steer::ByKey if request.is_read => self.rng.random_range(0..self.cores.len()),
            Steer::ByKey => self.plan.layout().map.owner(request.keyhash),
        }
    }

    fn receive(&mut self, rx: usize, request: Request) {
        if self.cores[rx].rx.len() >= self.run.bounds.rx {
            self.outcome.lost += 1;
            return;
        }
        self.cores[rx].rx.push_back(request);
        self.rx_depths[rx] += 1;
        self.outcome.waited += u64::from(self.cores[rx].work != Work::Idle);
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
        if let Work::Send(part) = self.cores[core].work {
            self.cores[core].work = Work::Idle;
            self.reply(core, part);
            if self.cores[core].work == Work::Idle {
                self.find_work(core);
            }
        } else if self.cores[core].work == Work::Idle {
            self.find_work(core);
        }
    }

    /// A core has executed a request or a slice of it. The core waits if its TX queue has no room.
    pub(super) fn reply(&mut self, core: usize, part: Part) {
        let request = part.request;
        let is_last = part.left == 0;
        let has_reply = is_last || request.is_read;
        let share = self.run.reply_share;
        let is_sent = has_reply && (share == 1.0 || self.rng.random_bool(share));
        if !is_sent {
            return self.executed(core, part);
        }
        let Some(link) = &mut self.outward else {
            if is_last {
                self.outcome.record(self.now_ns, &request);
            }
            return self.executed(core, part);
        };
        let bytes = if request.is_read { part.bytes } else { 0 };
        let packets = packets(bytes);
        let waiting = link.packets(core);
        if waiting > 0 && waiting.saturating_add(packets) > self.run.bounds.tx {
            self.cores[core].work = Work::Send(part);
            return;
        }
        self.tx_depths[core] += packets;
        let completes = is_last.then_some(request);
        link.send(self.now_ns, core, completes, bytes, packets);
        self.executed(core, part);
    }

    fn executed(&mut self, core: usize, part: Part) {
        match part.left {
            0 => self.outcome.executed(core, &part.request),
            _ => self.cores[core].sliced.push_back(part),
        }
    }
}
