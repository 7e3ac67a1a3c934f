//! Large values that are copied slice by slice, so that small requests of other connections do not
//! wait for them.
//!
//! While a worker serves small requests, a `get` of a value of more than [`SLICE_BYTES`] does not
//! enter a batch. Its connection waits with the other large ones, and each of its turns copies one
//! slice. The request stays in the receive buffer until the last slice is copied; nothing leaves
//! before. Then the reply leaves in slices as well. The connection that has begun is served before
//! others that have not, so that few replies are being made at a time.
//!
//! A request whose item changes meanwhile, or for whose reply there is no memory, is executed as a
//! whole.
//!
//! [`SLICE_BYTES`]: glimmer_base::limits::SLICE_BYTES

use glimmer_dispatch::{Ask, Decision, SizeClass};
use glimmer_engine::{Job, Sliced};
use glimmer_proto::Step;

use super::Streams;
use super::connection::Continuation;
use super::copying::Copying;
use super::key::ConnectionKey;
use super::registry::Activity;
use crate::core::Core;

impl Streams {
    /// Copies the next slice. Returns how many bytes it had at most.
    #[cold]
    pub(super) fn advance_slices(
        &mut self,
        key: ConnectionKey,
        mut copying: Box<Copying>,
        core: &mut Core,
    ) -> usize {
        let (bytes, slice_bytes) = (copying.bytes as usize, core.shared.config.slice_bytes);
        if !copying.has_begun() {
            if core.memory.room() < bytes && !self.claim(key, bytes, core) {
                self.copy_whole(key, *copying, core);
                return 0;
            }
            copying.read.reply = core.memory.pool.take_large(bytes).unwrap_or_default();
        }
        let connection = &mut self.connections[key];
        let mut parser = connection.parser;
        let step = parser.next(&connection.rx[connection.rx_start..]);
        let (Step::Request { used, request }, false) = (step, connection.closing) else {
            self.copy_whole(key, *copying, core);
            return 0;
        };
        let job = Job {
            keyhash: core.seed.keyhash(request.key),
            request,
            out: 0,
            copy_max: Job::ANY_SIZE,
            client: connection.entry.fd,
        };
        let plan = &core.plan;
        let is_here = match connection.visit {
            Some(_) => !plan.keeps_order(),
            None => plan.on_arrival(core.me, job.keyhash, Ask::Read) == Decision::Run,
        };
        let sliced = match is_here {
            true => (core.engine).read_slice(core.now, &job, slice_bytes, &mut copying.read),
            false => Sliced::Whole,
        };
        match sliced {
            Sliced::Whole => self.copy_whole(key, *copying, core),
            Sliced::More => {
                connection.continuation = Some(Continuation::Slices(copying));
                self.settle(key, core);
            }
            Sliced::Done => {
                if core.counting.is_profiled() {
                    let profile = core.shared.plans.profile(core.me);
                    profile.record(copying.read.value_bytes() as u32);
                }
                connection.parser = parser;
                connection.rx_start += used;
                self.finish_slices(key, *copying, core);
            }
        }
        slice_bytes
    }

    /// The reply is complete: it is sent from here on.
    fn finish_slices(&mut self, key: ConnectionKey, copying: Copying, core: &mut Core) {
        let (bytes, reply) = (copying.read.value_bytes(), copying.read.reply);
        let connection = &mut self.connections[key];
        connection.trim(&mut core.memory.pool);
        connection.end_hold();
        connection.entry.note(Activity::Read);
        connection.note_reply_bytes(reply.len());
        connection.burst_reply_bytes = reply.len();
        connection.tx = reply;
        connection.has_been_served |= connection.visit.is_some();
        core.tally.requests += 1;
        if let Some(since_ns) = copying.timed_since_ns {
            let now_ns = core.shared.config.clock.ns();
            let times = core.shared.plans.times(core.me);
            times.record(SizeClass::of(bytes as u32), 1, now_ns - since_ns, now_ns);
        }
        self.send_and_settle(key, core);
    }

    /// Has the connection's next request executed as a whole.
    fn copy_whole(&mut self, key: ConnectionKey, copying: Copying, core: &mut Core) {
        core.memory.pool.give(copying.read.reply);
        let connection = &mut self.connections[key];
        connection.copies_whole = true;
        connection.burst_reply_bytes = copying.bytes as usize;
        self.settle(key, core);
    }
}
