//! A core: what it holds, and what it does at the moment.

use crate::request::Request;
use std::collections::VecDeque;

/// A core of the simulated server.
#[derive(Debug, Default)]
pub struct Core {
    /// Its RX queue.
    pub rx: VecDeque<Request>,
    /// Its software queue.
    pub queue: VecDeque<Request>,
    /// Requests that it has read and not begun.
    pub batch: VecDeque<Request>,
    /// Which of the RX queues in its role it reads next.
    pub next_read: usize,
    /// What it does until it is free.
    pub work: Work,
}

/// What a core does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Work {
    /// Nothing.
    #[default]
    Idle,
    /// It executes a request, and sends the reply at the end.
    Serve(Request),
    /// It waits until its TX queue has room for a reply.
    Send(Request),
    /// It hands a request to another core.
    HandTo(Request, usize),
    /// It moves what it has read to its software queue.
    Move,
}
