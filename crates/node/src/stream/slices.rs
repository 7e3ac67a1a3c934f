//! Large values that leave slice by slice, so that small requests of other connections do not wait
//! for them.
//!
//! While a worker serves small requests, a `get` of a value of more than [`SLICE_BYTES`] does not
//! enter a batch. Its connection waits with the other large ones. In its first turn the value is
//! borrowed from the table, and each turn sends one slice from where the value lies.
//!
//! Where the table does not lend the value, each turn copies one slice. The request stays in the
//! receive buffer until the last slice is copied; nothing leaves before. Then the reply leaves in
//! slices as well. The connection that has begun is served before others that have not, so that few
//! replies are being made at a time.
//!
//! A request whose item changes meanwhile, or for whose reply there is no memory, is executed as a
//! whole.
//!
//! [`SLICE_BYTES`]: glimmer_base::limits::SLICE_BYTES

use glimmer_dispatch::{Ask, Decision};
use glimmer_engine::{Job, Sliced};
use glimmer_proto::Step;

use super::Streams;
use super::connection::Continuation;
use super::copying::Copying;
use super::key::ConnectionKey;
use super::lending::Lending;
use super::registry::Activity;
use crate::core::Core;

impl Streams {
    /// Sends the first slice, or copies the next one. Returns how many bytes it had at most.
    #[cold]
    pub(super) fn advance_slices(
        &mut self,
        key: ConnectionKey,
        mut copying: Box<Copying>,
        core: &mut Core,
    ) -> usize {
        let (bytes, slice_bytes) = (copying.bytes as usize, core.shared.config.slice_bytes);
        let is_first = !copying.has_begun();
        if is_first && core.memory.room() < bytes && !self.claim(key, bytes, core) {
            self.copy_whole(key, *copying, core);
            return 0;
        }
        let connection = &mut self.connections[key];
        let mut parser = connection.parser;
        let step = parser.next(&connection.rx[connection.rx_start..]);
        let (Step::Request { used, request }, false) = (step, connection.closing) else {
            self.copy_whole(key, *copying, core);
            return 0;
        };
        let job = Job {
            keyhash: core.hasher.keyhash(request.key),
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
        if is_first && is_here {
            let mut around = core.memory.pool.take();
            if let Some(reply) = core.engine.lend(core.now, &job, &mut around) {
                let lending = Lending::new(reply, copying.timed_since_ns);
                connection.parser = parser;
                connection.rx_start += used;
                core.profile(lending.value_bytes());
                self.begin_to_leave(key, around, Some(lending), core);
                return slice_bytes;
            }
            core.memory.pool.give(around);
            copying.read.reply = core.memory.pool.take_large(bytes).unwrap_or_default();
        }
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
                connection.parser = parser;
                connection.rx_start += used;
                let value_bytes = copying.read.value_bytes();
                core.profile(value_bytes);
                core.note_service_time(value_bytes, copying.timed_since_ns);
                self.begin_to_leave(key, copying.read.reply, None, core);
            }
        }
        slice_bytes
    }

    /// The reply is sent from here on.
    fn begin_to_leave(
        &mut self,
        key: ConnectionKey,
        reply: Vec<u8>,
        lending: Option<Box<Lending>>,
        core: &mut Core,
    ) {
        let connection = &mut self.connections[key];
        connection.trim(&mut core.memory.pool);
        connection.end_hold();
        connection.entry.note(Activity::Read);
        connection.tx = reply;
        connection.lending = lending;
        let bytes = connection.unsent_bytes();
        connection.note_reply_bytes(bytes);
        connection.burst_reply_bytes = bytes;
        connection.has_been_served |= connection.visit.is_some();
        core.tally.requests += 1;
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
