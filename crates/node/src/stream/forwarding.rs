//! Where a request executes, and how it leaves for another worker.

use glimmer_base::Keyhash;
use glimmer_base::limits::REORDER_SLOTS_MAX;
use glimmer_engine::Place;
use glimmer_proto::Request;

use super::member::{Input, Member, Stop};
use super::reorder::ReorderBuffer;
use crate::core::Core;
use crate::forward::batch::CompletionTag;
use crate::forward::port::Port;

/// A request that was forwarded during a batch.
pub(super) struct Forwarded {
    pub member: u8,
    /// The member's last job before it, whose reply its own follows.
    pub behind: Option<u8>,
    pub slot: u16,
    pub step: u16,
}

/// A request on its way to another worker.
pub(super) struct Outbound<'a> {
    pub owner: usize,
    pub keyhash: Keyhash,
    pub request: Request<'a>,
}

/// Where a member's request is executed.
#[inline]
pub(super) fn destination(
    member: &Member,
    keyhash: Keyhash,
    request: &Request<'_>,
    core: &Core,
) -> Place {
    if core.is_alone {
        return Place::Here;
    }
    let is_read = request.verb.is_read();
    let place = core.engine.place(keyhash, is_read);
    if place == Place::Here && is_read && (member.ask_owner || member.reorder.is_some()) {
        // A read that may run anywhere follows an unanswered write of its key to the owner.
        let owner = core.engine.owner(keyhash);
        let written = member
            .reorder
            .as_ref()
            .is_some_and(|reorder| reorder.written.contains(owner));
        if owner != core.me && (member.ask_owner || written) {
            return Place::Owner(owner);
        }
    }
    place
}

impl Member {
    /// Forwards a request and reserves a slot for its reply at offset `at` of the local ones (with
    /// jobs before it, the right offset is known when they are done), or says why that has to wait.
    pub(super) fn forward(
        &mut self,
        outbound: &Outbound<'_>,
        at: usize,
        open: impl FnOnce() -> Box<ReorderBuffer>,
        port: &mut Port,
    ) -> Result<u16, Stop> {
        let Input::Connection(connection) = self.input else {
            return Err(Stop::Forward);
        };
        let reorder = self.reorder.as_ref();
        if reorder.is_some_and(|reorder| reorder.len() >= REORDER_SLOTS_MAX) {
            return Err(Stop::Reorder);
        }
        if !port.has_credit(outbound.owner) {
            return Err(Stop::OutOfCredit);
        }
        let reorder = self.reorder.get_or_insert_with(open);
        if !outbound.request.verb.is_read() {
            reorder.written.insert(outbound.owner);
        }
        let slot = reorder.reserve(at);
        let tag = CompletionTag { connection, slot };
        port.put(outbound.owner, tag, outbound.keyhash, &outbound.request);
        self.ask_owner = false;
        Ok(slot)
    }
}
