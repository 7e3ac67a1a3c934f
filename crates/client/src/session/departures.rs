//! What leaves: requests in segment batches, requests in fragments, the question for the directory, and all of them again if they are not answered.

use super::{Failure, Known, Question, Session, is_between};
use crate::Settings;
use crate::flight::{Flight, Phase};
use glimmer_base::short;
use glimmer_proto::native::fragment::{DATA_BYTES, HEAD_BYTES, WINDOW};
use glimmer_proto::native::{Fragment, Kind, Reply, ReplyHeader, RequestHeader, directory};

/// Looks at what waits, in the time that the first wait of a request takes.
const INSPECTIONS_PER_WAIT: u64 = 4;

/// A request that has been sent so often without an answer makes the client ask for the directory again.
const SILENCES_MAX: u8 = 2;

/// Where a segment batch goes: the port, or where the server is known by.
type Port = Option<u16>;

impl<T> Session<T> {
    /// Hands every segment batch that is to be sent to `send`: its port (`None`: the one that the server is known by), its datagrams, and how long each but the
    /// last is.
    pub fn depart(&mut self, now_us: u64, send: &mut impl FnMut(Port, &[u8], usize)) {
        self.ask_directory(now_us, send);
        while let Some(place) = self.ready.pop_front() {
            let flight = &mut self.flights[place as usize];
            // Its place may have been given to another since, and it may be in the queue twice.
            if flight.phase != Phase::Ready || flight.upload.is_some() {
                continue;
            }
            flight.phase = Phase::Waiting;
            // What is sent again goes alone, as its reply may not have fitted beside others; and what goes on with a long reply.
            let is_new = flight.sends == 0 && flight.reply.is_none();
            let shares = self.packing.shares() && is_new;
            let bytes = flight.datagram_bytes();
            let full = (self.groups).add(flight.core, place, bytes, shares);
            if let Some(group) = full {
                self.send_group(group, now_us, send);
            }
        }
        for group in 0..self.groups.count() {
            if !self.groups.is_empty(group) {
                self.send_group(group, now_us, send);
            }
        }
        while let Some(place) = self.uploads.pop_front() {
            if self.flights[place as usize].phase == Phase::Ready {
                self.send_window(place, now_us, send);
            }
        }
    }

    /// Has requests leave again that have waited in vain, and gives up those whose time is over. To be called before [`Session::depart`]; looks closely
    /// only now and then.
    #[inline]
    pub fn expire(
        &mut self,
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        if now_us >= self.inspect_us {
            self.inspect_us =
                now_us + (self.settings.resend_first_us / INSPECTIONS_PER_WAIT).max(1);
            self.inspect(now_us, on_answer);
        }
    }

    fn inspect(&mut self, now_us: u64, on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>)) {
        for place in 0..self.flights.len() as u32 {
            let flight = &self.flights[place as usize];
            if flight.phase == Phase::Free {
                continue;
            }
            if now_us.saturating_sub(flight.asked_us) >= self.settings.deadline_us {
                self.figures.silent += 1;
                let failure = flight.failure();
                self.health.miss(flight.asked_us, now_us);
                self.fail(place, failure, on_answer);
            } else if flight.phase == Phase::Waiting
                && flight.until_us <= now_us
                && self.settings.resends
            {
                self.figures.resent += 1;
                self.pace.lose(now_us);
                // Whoever is silent twice may have gone, and another server may have come.
                if flight.sends >= SILENCES_MAX {
                    self.refresh();
                }
                self.depart_again(place);
            }
        }
        if self.queued > 0 {
            self.pace.grow(now_us);
            self.take_turns();
        }
    }

    /// Has a request leave once more, to where it went before.
    pub(super) fn depart_again(&mut self, place: u32) {
        let flight = &mut self.flights[place as usize];
        if let Some(assembly) = &flight.reply {
            let next = assembly.next();
            flight.read_at(next);
        }
        flight.phase = Phase::Ready;
        match flight.upload {
            Some(_) => self.uploads.push_back(place),
            None => self.ready.push_back(place),
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
        let datagrams = group.flights.len().div_ceil(shape.requests);
        let mut segments = std::mem::take(&mut self.segments);
        segments.clear();
        segments.resize(datagrams * shape.segment_bytes, 0);
        let mut last_bytes = 0;
        let flights = group.flights.chunks(shape.requests);
        for (datagram, flights) in segments.chunks_exact_mut(shape.segment_bytes).zip(flights) {
            last_bytes = self.write_datagram(datagram, header, flights, now_us);
        }
        // All have the same length but the last, which has no padding.
        segments.truncate((datagrams - 1) * shape.segment_bytes + last_bytes);
        send(Some(self.lanes[core].port), &segments, shape.segment_bytes);
        self.segments = segments;
        self.groups.put_back(number, group);
    }

    /// Writes a datagram with these requests; returns the bytes that it takes.
    #[inline]
    fn write_datagram(
        &mut self,
        datagram: &mut [u8],
        mut header: [u8; RequestHeader::BYTES],
        flights: &[u32],
        now_us: u64,
    ) -> usize {
        let sequence_of = |&place: &u32| self.flights[place as usize].sequence;
        let sequence = match flights {
            [only] => sequence_of(only),
            several => {
                let contents = several.iter().map(sequence_of).collect();
                self.figures.shared += several.len() as u64;
                self.parcels.begin(contents, now_us)
            }
        };
        RequestHeader::renumber(&mut header, flights.len() as u8, sequence);
        let (head, mut rest) = datagram.split_at_mut(RequestHeader::BYTES);
        head.copy_from_slice(&header);
        let mut bytes = RequestHeader::BYTES;
        for &place in flights {
            let flight = &mut self.flights[place as usize];
            let (record, behind) = rest.split_at_mut(flight.record.len());
            short::copy(record, &flight.record);
            bytes += flight.record.len();
            rest = behind;
            wait(flight, &self.settings, now_us);
        }
        bytes
    }

    /// Sends the next window of a request in fragments. The server is asked how far it has come with the last of them.
    fn send_window(&mut self, place: u32, now_us: u64, send: &mut impl FnMut(Port, &[u8], usize)) {
        let mut header = self.header(Kind::Fragment, now_us);
        let flight = &mut self.flights[place as usize];
        let Some(upload) = &flight.upload else {
            return;
        };
        header.sequence = flight.sequence;
        self.segments.clear();
        let offsets = (upload.next..flight.record.len()).step_by(DATA_BYTES);
        let mut offsets = offsets.take(WINDOW).peekable();
        while let Some(offset) = offsets.next() {
            header.count = u8::from(offsets.peek().is_none());
            self.segments.extend_from_slice(&header.bytes());
            let fragment = Fragment::of(&flight.record, upload.digest, offset);
            fragment.write(&mut self.segments);
        }
        wait(flight, &self.settings, now_us);
        let port = self.lanes[usize::from(flight.core)].port;
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
        let wait_us = (self.settings.resend_first_us << question.sends.min(16))
            .min(self.settings.resend_longest_us);
        question.due_us = Some(now_us + wait_us);
        let sequence = question.sequence;
        let header = RequestHeader {
            sequence,
            count: 0,
            ..self.header(Kind::Directory, now_us)
        };
        // As long as the longest answer, so that anybody may have it.
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
    /// Whether this begins its answer.
    pub(super) fn is_answered_by(&self, header: &ReplyHeader, now_us: u64) -> bool {
        self.sends > 0
            && self.sequence == header.sequence
            && is_between(header.timestamp, self.asked_us, now_us)
    }
}

/// A request has been sent: it waits, each time for twice as long as the last, up to a bound.
#[inline]
fn wait<T>(flight: &mut Flight<T>, settings: &Settings, now_us: u64) {
    let doublings = flight.sends.min(16);
    flight.sends = flight.sends.saturating_add(1);
    flight.open = flight.open.saturating_add(1);
    let wait_us = (settings.resend_first_us << doublings).min(settings.resend_longest_us);
    flight.phase = Phase::Waiting;
    flight.until_us = now_us + wait_us;
}
