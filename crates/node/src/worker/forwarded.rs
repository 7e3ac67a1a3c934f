//! What other workers sent: requests, and replies to the requests of this worker.

use glimmer_base::limits::BUFFER_BYTES_KEPT_MAX;

use crate::budget::homeward::InFlight;
use crate::core::Core;
use crate::forward::batch::{Asker, ForwardedBatch};
use crate::forward::port::Port;
use crate::packet::Packets;
use crate::stream::Streams;

/// Takes what other workers sent: executes their requests, and passes replies to the connections
/// and datagrams that asked. Returns whether there were native datagrams.
pub(super) fn take(
    core: &mut Core,
    port: &mut Port,
    streams: &mut Streams,
    packets: &mut Packets,
) -> bool {
    let mut has_native = false;
    port.drain(|batch| match batch.home() == core.me {
        true => {
            unpack(batch, core, streams, packets);
            if let Some(in_flight) = batch.in_flight.take() {
                core.shared.arrive(in_flight);
            }
        }
        false if batch.has_datagrams() => {
            core.note_small_request();
            let since_ns = core.begin_large();
            packets.answer_forwarded(batch, core);
            core.end_large(since_ns);
            has_native = true;
        }
        false => {
            core.note_small_request();
            if core.shared.homeward.is_full(core.me) {
                batch.run_none();
                return;
            }
            let is_profiled = core.counting.is_profiled();
            let profile = is_profiled.then(|| core.shared.plans.profile(core.me));
            let executed = batch.run(&mut *core.engine, core.now, profile);
            core.pass_time(executed);
            if batch.reply_bytes() >= BUFFER_BYTES_KEPT_MAX {
                let in_flight = InFlight {
                    worker: core.me,
                    bytes: batch.reply_bytes(),
                };
                core.shared.homeward.leave(in_flight);
                batch.in_flight = Some(in_flight);
            }
        }
    });
    port.account(&mut core.memory, &mut core.tally);
    port.wake_peers();
    streams.advance_replies(core);
    resume_out_of_credit(port, streams, packets);
    if port.has_unfinished() {
        core.memory.is_short = true;
    }
    has_native
}

/// Passes the replies of a batch that came home to those who asked.
fn unpack(
    batch: &mut ForwardedBatch,
    core: &mut Core,
    streams: &mut Streams,
    packets: &mut Packets,
) {
    for (tag, kind) in batch.parts() {
        match tag.asker {
            Asker::Connection(key) => streams.add_part(key, kind),
            Asker::Datagram(number) => packets.add_part(number, kind),
        }
    }
    batch.take_replies(|tag, reply, lent| match tag.asker {
        Asker::Connection(key) => streams.join(key, tag.slot, (reply, lent), &mut core.memory),
        Asker::Datagram(number) => packets.join(number, tag.slot, reply, core),
    });
}

/// Gives those who are out of credit another turn, if a batch came back. Only some datagrams go on
/// then. They may need no batch after all, as when the plan has changed, so that none comes back
/// for the other datagrams. Those go on as long as there is credit with every worker.
pub(super) fn resume_out_of_credit(port: &mut Port, streams: &mut Streams, packets: &mut Packets) {
    let has_freed = port.take_freed();
    if has_freed {
        streams.resume_out_of_credit();
    }
    if has_freed || (packets.awaits_only_credit() && port.has_all_credit()) {
        packets.resume_out_of_credit();
    }
}
