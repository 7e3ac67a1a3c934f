//! What one core does in a plan: where its requests come from.

use std::ops::Range;

/// What a core does until the next plan.
///
/// In each turn a core serves its own software queue first, then the RX queues of
/// [`reads`](Role::reads) in their order. A core that has found nothing asks
/// [`Plan::when_idle`](crate::Plan::when_idle).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Sizes of the values, in bytes, whose requests are handed to this core. Empty: none are.
    pub sizes: Range<u32>,
    /// RX queues that this core reads, in this order.
    pub reads: Vec<Read>,
    /// What becomes of the requests that it reads.
    pub intake: Intake,
    /// Where it looks for requests when it has found none.
    pub takes: Takes,
    /// Requests that are handed to it take most of its time. So no connection is at home with it,
    /// although it may take datagrams: nobody but the home looks for what a connection sends.
    pub is_reserved: bool,
}

impl Role {
    /// The role of a core that executes what arrives in its own RX queue.
    pub fn reads_its_own(core: usize, batch: usize) -> Role {
        Role {
            reads: vec![Read {
                rx: core,
                budget: batch,
            }],
            ..Role::default()
        }
    }

    /// Whether the core serves its own software queue.
    pub fn serves_queue(&self) -> bool {
        self.intake != Intake::HandOff
    }
}

/// An RX queue that a core reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The RX queue: that of this core.
    pub rx: usize,
    /// Most requests that are read in one turn. It counts requests: one segment batch can hold
    /// several.
    pub budget: usize,
}

/// What becomes of requests that a core has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intake {
    /// The core asks the plan about each one, and executes it or hands it over.
    #[default]
    Execute,
    /// They go to the core's software queue, from where other cores may take them as well.
    Enqueue,
    /// They go to the core's software queue, and only other cores take them from there.
    HandOff,
}

/// Where a core looks for requests when it is idle. It takes one at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    /// Software queues of these cores, in this order.
    pub queues: Vec<usize>,
    /// After them these RX queues, in this order.
    pub rx: Vec<usize>,
    /// The core also sends large replies, and in its TX queue a small reply waits for their
    /// packets. So it takes from the longest of the RX queues, and only if more requests wait
    /// there than packets in its TX queue.
    pub beside_large: bool,
}

/// What waits in each queue.
#[derive(Clone, Copy, Debug)]
pub struct Depths<'a> {
    /// Requests in the software queue of each core.
    pub queues: &'a [u32],
    /// Requests in the RX queue of each core.
    pub rx: &'a [u32],
    /// Packets in the TX queue of each core.
    pub tx: &'a [u32],
}

/// What an idle core does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// There is nothing to do.
    Wait,
    /// It takes one request from the software queue of this core.
    TakeQueued(usize),
    /// It takes one request from this RX queue.
    TakeReceived(usize),
}
