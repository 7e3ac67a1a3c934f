//! What the session sends: requests in segment batches, fragmented requests, requests for the
//! directory, and retransmissions.

use super::{Failure, Known, Question, Session, is_between};
use crate::Settings;
use crate::in_flight::{InFlight, Phase};
use glimmer_base::short;
use glimmer_proto::native::fragment::{DATA_BYTES, HEAD_BYTES, WINDOW};
use glimmer_proto::native::{Fragment, Kind, Reply, ReplyHeader, RequestHeader, directory};

/// How often timed out requests are looked for within the first timeout of a request.
const INSPECTIONS_PER_WAIT: u64 = 4;
/// A request fails late by at most the deadline divided by this. Many requests may be in flight,
/// and each has a deadline of its own.
const INSPECTIONS_PER_DEADLINE: u64 = 64;

/// Unanswered copies of a request after which the client asks for the directory again.
const SILENCES_MAX: u8 = 2;

/// The destination port of a segment batch; `None` is the server's configured port.
type Port = Option<u16>;

impl<T> Session<T> {
    /// Passes every segment batch that is due to `send`: its port (`None` is the server's
    /// configured port), its datagrams, and the length of each datagram but the last.
    pub fn transmit(&mut self, now_us: u64, send: &mut impl FnMut(Port, &[u8], usize)) {
        self.ask_directory(now_us, send);
        while let Some(slot) = self.ready.pop_front() {
            let request = &mut self.requests[slot as usize];
            // The slot may have been reused, and it may be in the queue twice.
            if request.phase != Phase::Ready || request.upload.is_some() {
                continue;
            }
            if !request.may_leave(now_us) {
                self.keep(slot, now_us);
                continue;
            }
            request.phase = Phase::Waiting;
            // A retransmission is sent alone, because its reply may not have fitted beside others.
            // So is a request for the next part of a long reply.
            let is_new = request.sends == 0 && request.reply.is_none();
            let shares = self.packing.shares() && is_new;
            let bytes = request.datagram_bytes();
            let full = (self.groups).add(request.core, slot, bytes, shares);
            if let Some(group) = full {
                self.send_group(group, now_us, send);
            }
        }
        for group in 0..self.groups.count() {
            if !self.groups.is_empty(group) {
                self.send_group(group, now_us, send);
            }
        }
        while let Some(slot) = self.uploads.pop_front() {
            let request = &mut self.requests[slot as usize];
            if request.phase != Phase::Ready {
                continue;
            }
            match request.may_leave(now_us) {
                true => self.send_window(slot, now_us, send),
                false => self.keep(slot, now_us),
            }
        }
    }

    /// Retransmits requests that have timed out and gives up requests past their deadline. Call
    /// this before [`Session::transmit`]; most calls return at once.
    #[inline]
    pub fn expire(
        &mut self,
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        if now_us >= self.inspect_us {
            let oldest_us = self.inspect(now_us, on_answer);
            let Settings {
                resend_first_us,
                deadline_us,
                ..
            } = self.settings;
            let after = |us: u64| now_us.saturating_add(us.max(1));
            self.inspect_us = (oldest_us.saturating_add(deadline_us))
                .max(after(deadline_us / INSPECTIONS_PER_DEADLINE))
                .min(after(resend_first_us / INSPECTIONS_PER_WAIT));
        }
    }

    /// Ends all requests now, as their deadlines would. Those whose deadlines have not come say
    /// nothing about the server.
    pub fn give_up(
        &mut self,
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        self.inspect(now_us, on_answer);
        for slot in 0..self.requests.len() as u32 {
            if self.requests[slot as usize].phase != Phase::Free {
                self.run_out(slot, on_answer);
            }
        }
    }

    /// A request has no more time.
    fn run_out(&mut self, slot: u32, on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>)) {
        self.counters.silent += 1;
        let failure = self.requests[slot as usize].failure();
        self.fail(slot, failure, on_answer);
    }

    /// Returns the time at which the oldest request still in flight was issued, or the current time
    /// if none is.
    fn inspect(
        &mut self,
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) -> u64 {
        let mut oldest_us = now_us;
        for slot in 0..self.requests.len() as u32 {
            let request = &self.requests[slot as usize];
            if request.phase == Phase::Free {
                continue;
            }
            if now_us.saturating_sub(request.asked_us) >= self.settings.deadline_us {
                self.health.miss(request.asked_us, now_us);
                self.run_out(slot, on_answer);
                continue;
            }
            oldest_us = oldest_us.min(request.asked_us);
            if request.phase == Phase::Waiting
                && request.until_us <= now_us
                && self.settings.resends
            {
                let may_leave = request.may_leave(now_us);
                // A server that is silent twice may have been replaced by another server.
                if request.sends >= SILENCES_MAX {
                    self.refresh();
                }
                if may_leave {
                    self.counters.resent += 1;
                    self.congestion.lose(now_us);
                    self.retransmit(slot);
                } else {
                    self.keep(slot, now_us);
                }
            }
        }
        if self.queued > 0 {
            self.congestion.grow(now_us);
            self.take_turns();
        }
        oldest_us
    }

    /// Has a change that may not be sent again wait for the answer to an earlier copy. Others need
    /// not wait for it: the server is never asked for it again.
    #[cold]
    fn keep(&mut self, slot: u32, now_us: u64) {
        let request = &mut self.requests[slot as usize];
        request.phase = Phase::Waiting;
        request.until_us = now_us.saturating_add(self.settings.resend_longest_us);
        let (owner, mutation) = (usize::from(request.owner), request.mutation());
        self.settle(owner, mutation);
    }

    /// Sends a request again to the same core.
    pub(super) fn retransmit(&mut self, slot: u32) {
        let request = &mut self.requests[slot as usize];
        if let Some(download) = &mut request.reply {
            download.note_copy();
            let next = download.next();
            request.read_at(next);
        }
        request.phase = Phase::Ready;
        match request.upload {
            Some(_) => self.uploads.push_back(slot),
            None => self.ready.push_back(slot),
        }
    }

    fn send_group(
        &mut self,
        number: usize,
        now_us: u64,
        send: &mut impl FnMut(Port, &[u8], usize),
    ) {
        let core = self.groups.core(number);
        let shares = self.groups.shares(number);
        let group = self.groups.take(number);
        let shape = group.shape(if shares { self.packing.requests() } else { 1 });
        let header = self.header(Kind::Requests, now_us).bytes();
        let datagrams = group.requests.len().div_ceil(shape.requests);
        let mut segments = std::mem::take(&mut self.segments);
        segments.clear();
        segments.resize(datagrams * shape.segment_bytes, 0);
        let mut last_bytes = 0;
        let requests = group.requests.chunks(shape.requests);
        for (datagram, requests) in segments.chunks_exact_mut(shape.segment_bytes).zip(requests) {
            last_bytes = self.write_datagram(datagram, header, requests, now_us);
        }
        // All datagrams have the same length except the last, which is not padded.
        segments.truncate((datagrams - 1) * shape.segment_bytes + last_bytes);
        send(
            Some(self.channels[core].port),
            &segments,
            shape.segment_bytes,
        );
        self.segments = segments;
        self.groups.put_back(number, group);
    }

    /// Writes a datagram with these requests. Returns its length in bytes.
    #[inline]
    fn write_datagram(
        &mut self,
        datagram: &mut [u8],
        mut header: [u8; RequestHeader::BYTES],
        requests: &[u32],
        now_us: u64,
    ) -> usize {
        let sequence_of = |&slot: &u32| self.requests[slot as usize].sequence;
        let sequence = match requests {
            [only] => sequence_of(only),
            several => {
                let contents = several.iter().map(sequence_of).collect();
                self.counters.shared += several.len() as u64;
                self.shared_datagrams.begin(contents, now_us)
            }
        };
        RequestHeader::renumber(&mut header, requests.len() as u8, sequence);
        let (head, mut rest) = datagram.split_at_mut(RequestHeader::BYTES);
        head.copy_from_slice(&header);
        let mut bytes = RequestHeader::BYTES;
        for &slot in requests {
            let request = &mut self.requests[slot as usize];
            let (record, tail) = rest.split_at_mut(request.record.len());
            short::copy(record, &request.record);
            bytes += request.record.len();
            rest = tail;
            request.note_sent(now_us);
            wait(request, &self.settings, now_us);
        }
        bytes
    }

    /// Sends the next window of a fragmented request. The last fragment asks the server to report
    /// its progress.
    fn send_window(&mut self, slot: u32, now_us: u64, send: &mut impl FnMut(Port, &[u8], usize)) {
        let mut header = self.header(Kind::Fragment, now_us);
        let request = &mut self.requests[slot as usize];
        let Some(upload) = &request.upload else {
            return;
        };
        header.sequence = request.sequence;
        self.segments.clear();
        let offsets = (upload.next..request.record.len()).step_by(DATA_BYTES);
        let mut offsets = offsets.take(WINDOW).peekable();
        while let Some(offset) = offsets.next() {
            header.count = u8::from(offsets.peek().is_none());
            self.segments.extend_from_slice(&header.bytes());
            let fragment = Fragment::of(&request.record, upload.digest, offset);
            fragment.write(&mut self.segments);
        }
        // Before its last fragment was sent, it cannot have been executed.
        if upload.next + WINDOW * DATA_BYTES >= request.record.len() {
            request.note_sent(now_us);
        }
        wait(request, &self.settings, now_us);
        let port = self.channels[usize::from(request.core)].port;
        let segment_bytes = RequestHeader::BYTES + HEAD_BYTES + DATA_BYTES;
        send(Some(port), &self.segments, segment_bytes);
    }

    fn ask_directory(&mut self, now_us: u64, send: &mut impl FnMut(Port, &[u8], usize)) {
        let is_old = |known: &Known| now_us >= known.renew_us;
        if self.directory.as_ref().is_some_and(is_old) {
            self.refresh();
        }
        let Some(question) = &mut self.question else {
            return;
        };
        if question.due_us.is_some_and(|due_us| now_us < due_us) {
            return;
        }
        if question.sends == 0 {
            question.asked_us = now_us;
        }
        question.sends = question.sends.saturating_add(1);
        question.due_us = Some(now_us.saturating_add(self.settings.timeout_us(question.sends)));
        let sequence = question.sequence;
        let header = RequestHeader {
            sequence,
            count: 0,
            ..self.header(Kind::Directory, now_us)
        };
        // As long as the longest answer: a server answers an unknown address with at most the bytes
        // that it received.
        let mut bytes = [0; directory::REPLY_BYTES_MAX];
        bytes[..RequestHeader::BYTES].copy_from_slice(&header.bytes());
        send(None, &bytes, bytes.len());
    }

    fn header(&self, kind: Kind, now_us: u64) -> RequestHeader {
        let known = self.directory.as_ref();
        RequestHeader {
            kind,
            count: 1,
            directory: known.map_or(0, |known| known.version),
            sequence: 0,
            timestamp: now_us as u32,
            client: self.client,
            token: known.map_or(0, |known| known.directory.token),
        }
    }
}

impl Question {
    /// Whether a datagram with this header answers it.
    pub(super) fn is_answered_by(&self, header: &ReplyHeader, now_us: u64) -> bool {
        self.sends > 0
            && self.sequence == header.sequence
            && is_between(header.timestamp, self.asked_us, now_us)
    }
}

/// Marks a request as sent. Each timeout is twice the previous one, up to a maximum.
#[inline]
fn wait<T>(request: &mut InFlight<T>, settings: &Settings, now_us: u64) {
    let timeout_us = settings.timeout_us(request.sends);
    request.sends = request.sends.saturating_add(1);
    request.open = request.open.saturating_add(1);
    request.phase = Phase::Waiting;
    request.until_us = now_us.saturating_add(timeout_us);
}
