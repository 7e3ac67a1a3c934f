//! Handles received datagrams: answers, fragments of answers, refusals, and the directory.

use super::{
    AnyPort, Failure, Known, Left, Question, SEQUENCE_STEP, SLOT_BITS, Session, is_between,
};
use crate::channel::Channel;
use crate::download::{Download, Progress};
use crate::in_flight::Phase;
use glimmer_base::limits::ITEM_BYTES_MAX;
use glimmer_dispatch::PartitionMap;
use glimmer_proto::native::directory::Direction;
use glimmer_proto::native::fragment::DATA_BYTES;
use glimmer_proto::native::reply::found_head_bytes;
use glimmer_proto::native::{Directory, Fragment, Kind, Reply, ReplyHeader, Status};

impl<T> Session<T> {
    /// Handles a received datagram. Calls `on_answer` for each request that it answers.
    #[inline]
    pub fn receive(
        &mut self,
        datagram: &[u8],
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        let Some(header) = ReplyHeader::read(datagram) else {
            self.counters.ignored += 1;
            return;
        };
        self.health.hear(now_us);
        let rest = &datagram[ReplyHeader::BYTES..];
        if header.kind == Kind::DirectoryReply {
            return self.take_directory(&header, rest, now_us, on_answer);
        }
        if self.shared_datagrams.has_mark(header.sequence) {
            return self.take_several(&header, rest, now_us, on_answer);
        }
        let Some(slot) = self.slot_of(header.sequence, header.timestamp, now_us) else {
            self.counters.ignored += 1;
            return;
        };
        match header.kind {
            Kind::Replies => match Reply::read(rest) {
                Some((reply, _)) => self.take_reply(slot, &reply, header.timestamp, on_answer),
                None => self.counters.ignored += 1,
            },
            Kind::Progress => self.take_progress(slot, rest),
            Kind::FragmentReply => {
                self.take_fragment(slot, rest, (header.timestamp, now_us), on_answer)
            }
            _ => self.counters.ignored += 1,
        }
    }

    /// Handles the replies to a datagram with several requests. Requests without a reply are
    /// retransmitted when they time out.
    fn take_several(
        &mut self,
        header: &ReplyHeader,
        mut rest: &[u8],
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        if header.kind != Kind::Replies {
            self.counters.ignored += 1;
            return;
        }
        let contents = (self.shared_datagrams).end(header.sequence, header.timestamp);
        if contents.is_empty() {
            self.counters.ignored += 1;
            return;
        }
        let mut has_fitted = true;
        for sequence in contents {
            let Some((reply, bytes)) = Reply::read(rest) else {
                break;
            };
            rest = &rest[bytes..];
            has_fitted &= reply.status != Status::AskAlone;
            if let Some(slot) = self.slot_of(sequence, header.timestamp, now_us) {
                self.take_reply(slot, &reply, header.timestamp, on_answer);
            }
        }
        self.packing.learn(has_fitted);
    }

    #[inline]
    fn take_reply(
        &mut self,
        slot: u32,
        reply: &Reply<'_>,
        timestamp: u32,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        if reply.status.is_executed() {
            return self.finish(slot, Ok(reply), on_answer);
        }
        let request = &mut self.requests[slot as usize];
        request.refuse(reply.status, timestamp);
        match reply.status {
            Status::Superseded if !request.is_read && request.may_turn() => self.renumber(slot),
            Status::Forgotten => self.fail(slot, Failure::Forgotten, on_answer),
            // Retransmitting at once would not help. If another copy is in flight, its answer
            // decides.
            Status::TooManyWriters if request.open == 0 => {
                self.fail(slot, Failure::TooManyWriters, on_answer);
            }
            Status::AskOwner if request.is_read && request.may_turn() => self.direct(slot),
            Status::AskAlone if request.phase == Phase::Waiting && request.may_turn() => {
                self.retransmit(slot);
            }
            // The token or the directory's version is out of date: only a new directory helps.
            Status::NewDirectory | Status::NoToken | Status::WrongPartition
                if request.phase == Phase::Waiting && request.may_turn() =>
            {
                self.await_directory(slot);
            }
            // It is retransmitted when it times out: the server may have room by then, and a
            // truncated datagram may arrive whole.
            _ => {}
        }
    }

    /// The server executed a newer change of the key first, so it never executes this one under its
    /// present number. A new number places it after the mutations already executed.
    #[cold]
    fn renumber(&mut self, slot: u32) {
        let request = &mut self.requests[slot as usize];
        let (owner, mutation) = (usize::from(request.owner), request.mutation());
        request.restart(SEQUENCE_STEP);
        if request.phase != Phase::AwaitingDirectory {
            self.direct(slot);
        }
        self.counters.resent += 1;
        self.settle(owner, mutation);
    }

    /// The server has received part of a fragmented request.
    fn take_progress(&mut self, slot: u32, rest: &[u8]) {
        let request = &mut self.requests[slot as usize];
        let (Some(upload), Some(next)) = (&mut request.upload, rest.first_chunk()) else {
            return;
        };
        let next = u32::from_le_bytes(*next) as usize;
        let is_sound = next < request.record.len() && next.is_multiple_of(DATA_BYTES);
        // The server may have less than before: it dropped the fragments, so the upload starts
        // again.
        let is_other = is_sound && next != upload.next && request.phase == Phase::Waiting;
        if is_other && upload.go_on(next) {
            request.sends = 0;
            self.retransmit(slot);
        }
    }

    /// Handles a fragment of a reply that is longer than a datagram.
    fn take_fragment(
        &mut self,
        slot: u32,
        rest: &[u8],
        (timestamp, now_us): (u32, u64),
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        let reply_bytes_max = self.reply_bytes_max();
        let request = &mut self.requests[slot as usize];
        let Some(fragment) = Fragment::read(rest).filter(|_| request.is_read) else {
            self.counters.ignored += 1;
            return;
        };
        if fragment.message_bytes as usize > reply_bytes_max {
            return self.fail(slot, Failure::Protocol, on_answer);
        }
        let download = request
            .reply
            .get_or_insert_with(|| Box::new(Download::new(&fragment)));
        match download.join(&fragment) {
            Progress::Complete => {
                let Some(download) = request.reply.take() else {
                    return;
                };
                match Reply::read(download.bytes()) {
                    Some((reply, _)) => self.take_reply(slot, &reply, timestamp, on_answer),
                    None => self.fail(slot, Failure::Protocol, on_answer),
                }
            }
            Progress::More { is_window } => {
                request.sends = 0;
                if request.phase == Phase::Waiting {
                    let timeout_us = self.settings.resend_first_us;
                    request.until_us = now_us.saturating_add(timeout_us);
                    // The window is complete: the next one is requested at once.
                    if is_window {
                        self.retransmit(slot);
                    }
                }
            }
            Progress::Hopeless => self.fail(slot, Failure::Protocol, on_answer),
            Progress::None => {}
        }
    }

    /// Length of the longest reply: that to a read of the largest item of the directory. A server
    /// cannot have a larger one than any server may have.
    fn reply_bytes_max(&self) -> usize {
        let item_bytes_max = self.directory().map_or(0, |known| known.item_bytes_max);
        let head_bytes = found_head_bytes(u32::MAX, Some(u64::MAX));
        (item_bytes_max as usize).min(ITEM_BYTES_MAX) + head_bytes
    }

    /// The slot of the request that this sequence number and timestamp answer. The timestamp must
    /// be that of one of the request's copies, because the slot may have been reused. A request
    /// that was never sent has no answer.
    #[inline]
    pub(super) fn slot_of(&self, sequence: u32, timestamp: u32, now_us: u64) -> Option<u32> {
        let slot = sequence & ((1 << SLOT_BITS) - 1);
        let request = self.requests.get(slot as usize)?;
        (request.sequence == sequence
            && !matches!(request.phase, Phase::Free | Phase::Queued)
            && is_between(timestamp, request.asked_us, now_us))
        .then_some(slot)
    }

    /// Whether the session replaced this version of the directory so recently that a datagram with
    /// it may be late. A server that keeps showing the version afterwards is believed.
    fn has_left(&self, version: u32, now_us: u64) -> bool {
        let deadline_us = self.settings.deadline_us;
        let is_recent = |left: Left| now_us.saturating_sub(left.at_us) < deadline_us;
        self.left
            .is_some_and(|left| left.version == version && is_recent(left))
    }

    fn take_directory(
        &mut self,
        header: &ReplyHeader,
        rest: &[u8],
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        let is_answer = |question: &Question| question.is_answered_by(header, now_us);
        let is_answer = self.question.as_ref().is_some_and(is_answer);
        if !is_answer || self.has_left(header.directory, now_us) {
            self.counters.ignored += 1;
            return;
        }
        let Some(directory) = Directory::read(rest) else {
            self.counters.ignored += 1;
            return;
        };
        self.question = None;
        self.directory_us = Some(now_us);
        self.is_refused = false;
        self.counters.directories += 1;
        let is_other = self
            .directory
            .as_ref()
            .is_none_or(|known| known.version != header.directory || known.differs(&directory));
        let renew_us = now_us + u64::from(directory.token_s) * 500_000;
        let (seed, cores) = (directory.seed, directory.ports.len());
        let map = PartitionMap::new(directory.partitions.into(), cores);
        if let Some(begun_s) = directory.begun_s.filter(|_| is_other) {
            let begun_us = now_us.saturating_sub(1_000_000 * u64::from(begun_s));
            self.give_up_changes(begun_us, on_answer);
        }
        if is_other {
            self.channels.clear();
            let ports = directory.ports.iter();
            self.channels
                .extend(ports.map(|&port| Channel::new(port, 0)));
            self.groups.reset(cores);
            // A different server, or the same server restarted: it knows none of this client's
            // changes.
            self.client = self.client.wrapping_add(1);
            self.left = self.directory.as_ref().map(|known| Left {
                version: known.version,
                at_us: now_us,
            });
        }
        // Where the cores share a port, the server steers each datagram by its first key.
        let ports = &directory.ports;
        let has_choice = ports.iter().any(|port| *port != ports[0]);
        let spreads = self.settings.round_robin && directory.direction == Direction::Server;
        let any_port = AnyPort {
            reads: has_choice && (directory.shares_reads() || spreads),
            changes: has_choice && spreads,
        };
        self.directory = Some(Known {
            directory,
            map,
            version: header.directory,
            renew_us,
            any_port,
        });
        if is_other {
            self.awaiting_directory.clear();
            self.ready.clear();
            self.uploads.clear();
            for slot in 0..self.requests.len() {
                let request = &mut self.requests[slot];
                match request.phase {
                    Phase::Free => {}
                    Phase::Queued => request.rehash(seed),
                    _ => {
                        request.restart(SEQUENCE_STEP);
                        request.rehash(seed);
                        self.direct(slot as u32);
                    }
                }
            }
        } else {
            for slot in std::mem::take(&mut self.awaiting_directory) {
                if self.requests[slot as usize].phase == Phase::AwaitingDirectory {
                    self.direct(slot);
                }
            }
        }
    }

    /// Another server has the items of the one before, which had ended by this time, and which knew
    /// this client's changes. One that was sent earlier and not answered may have been executed, so
    /// it is not sent again. That the server has refused it says nothing of the one before, to
    /// which the network may have brought a copy of the same datagram.
    #[cold]
    fn give_up_changes(
        &mut self,
        ended_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        for slot in 0..self.requests.len() {
            let request = &self.requests[slot];
            let is_sent = !matches!(request.phase, Phase::Free | Phase::Queued);
            if is_sent && !request.is_read && request.asked_us < ended_us {
                self.fail(slot as u32, Failure::Silent, on_answer);
            }
        }
    }
}
