//! Decides where a request executes, and forwards it to another worker.

use glimmer_base::Keyhash;
use glimmer_base::limits::REORDER_SLOTS_MAX;
use glimmer_dispatch::{Ask, Decision};
use glimmer_engine::Job;
use glimmer_proto::{Request, Verb};

use super::member::{Member, Stop};
use super::reorder::ReorderBuffer;
use crate::core::Core;
use crate::forward::batch::CompletionTag;
use crate::forward::port::Port;

/// A request that was forwarded during a batch.
pub(super) struct Forwarded {
    pub member: u8,
    /// The member's last job before this request. Its own reply follows that job's reply.
    pub after: Option<u8>,
    pub slot: u16,
    pub step: u16,
}

/// A request on its way to another worker.
pub(super) struct Outbound<'a> {
    pub to: usize,
    pub keyhash: Keyhash,
    pub request: Request<'a>,
}

/// The worker that executes a member's request.
#[inline]
pub(super) fn destination(
    member: &Member,
    keyhash: Keyhash,
    request: &Request<'_>,
    core: &Core,
) -> Decision {
    if core.is_alone {
        return Decision::Run;
    }
    if let Some(worker) = member.hand_to {
        return Decision::HandTo(worker.into());
    }
    let ask = ask(&request.verb);
    let decision = core.plan.on_arrival(core.me, keyhash, ask);
    if decision == Decision::Run
        && ask == Ask::Read
        && let Some(reorder) = &member.reorder
    {
        // A read that any worker could execute follows an unanswered write of its key to the owner.
        let home = core.plan.layout().home(core.me, keyhash);
        if home != core.me && reorder.written.contains(home) {
            return Decision::HandTo(home);
        }
    }
    decision
}

/// The question to the plan for a verb.
#[inline]
fn ask(verb: &Verb<'_>) -> Ask {
    match verb {
        verb if verb.is_read() => Ask::Read,
        Verb::Store { value, .. } | Verb::Meta { value, .. } => Ask::Write {
            bytes: value.len() as u32,
        },
        _ => Ask::Write { bytes: 0 },
    }
}

/// Decides where to execute a read whose value is too large to be copied before the plan was asked.
/// `Ok` means this worker.
#[cold]
pub(super) fn elsewhere(member: &mut Member, bytes: u32, core: &Core) -> Stop {
    match core.plan.on_sized(core.me, bytes) {
        Decision::HandTo(worker) => member.hand_to = Some(worker as u16),
        Decision::Run if member.awaits_first_reply() => return Stop::Large(bytes),
        Decision::Run => member.copy_max = Job::ANY_SIZE,
    }
    Stop::Live
}

impl Member {
    /// Forwards a request and reserves a slot for its reply at offset `at` of the local replies.
    /// (If jobs precede it, the offset is corrected when they are done.) Otherwise returns why it
    /// must wait.
    pub(super) fn forward(
        &mut self,
        outbound: &Outbound<'_>,
        at: usize,
        open: impl FnOnce() -> Box<ReorderBuffer>,
        port: &mut Port,
    ) -> Result<u16, Stop> {
        let reorder = self.reorder.as_ref();
        if reorder.is_some_and(|reorder| reorder.len() >= REORDER_SLOTS_MAX) {
            return Err(Stop::Reorder);
        }
        if !port.has_credit(outbound.to) {
            return Err(Stop::OutOfCredit);
        }
        let reorder = self.reorder.get_or_insert_with(open);
        if !outbound.request.verb.is_read() {
            reorder.written.insert(outbound.to);
        }
        let slot = reorder.reserve(at);
        let client = self.client;
        let tag = CompletionTag {
            asker: self.asker,
            slot,
            client,
        };
        port.put(outbound.to, tag, outbound.keyhash, &outbound.request);
        self.hand_to = None;
        Ok(slot)
    }
}
