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
    /// Values of which it has slices left, and after which it looks for small requests.
    pub sliced: VecDeque<Part>,
    /// Requests that it has begun since it last went on with one of these.
    pub since_slice: usize,
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
    /// It executes a request or a slice of it, and sends that part of the reply at the end.
    Serve(Part),
    /// It waits until its TX queue has room for this part of a reply.
    Send(Part),
    /// It hands a request to another core.
    HandTo(Request, usize),
    /// It waits until it may put a request into the software queue of another core.
    Put(Request, usize),
    /// It moves what it has read to its software queue.
    Move,
}

/// A request, and the bytes of its value that are handled without a break.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The request.
    pub request: Request,
    /// Bytes of the value that this part handles.
    pub bytes: u32,
    /// Bytes that are left for later.
    pub left: u32,
}

impl Part {
    /// The first part of a request, whose value is handled in slices of this many bytes.
    pub fn first(request: Request, slice_bytes: u32) -> Part {
        Part::of(request, request.bytes, slice_bytes)
    }

    /// The part after this one.
    pub fn next(self, slice_bytes: u32) -> Part {
        Part::of(self.request, self.left, slice_bytes)
    }

    fn of(request: Request, left: u32, slice_bytes: u32) -> Part {
        let bytes = left.min(slice_bytes);
        Part {
            request,
            bytes,
            left: left - bytes,
        }
    }
}
