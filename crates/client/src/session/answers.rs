//! What arrives: answers, parts of answers, refusals, and the directory.

use super::{
    AnyPort, Failure, Known, Left, PLACE_BITS, Question, SEQUENCE_STEP, Session, is_between,
};
use crate::flight::Phase;
use crate::lane::Lane;
use glimmer_proto::native::directory::Direction;
use glimmer_proto::native::fragment::{Assembly, DATA_BYTES, Joined, WINDOW};
use glimmer_proto::native::{Directory, Fragment, Kind, Reply, ReplyHeader, Status};

impl<T> Session<T> {
    /// Takes a received datagram in, and tells of the request that it answers, if it answers one.
    #[inline]
    pub fn arrive(
        &mut self,
        datagram: &[u8],
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        let Some(header) = ReplyHeader::read(datagram) else {
            self.figures.ignored += 1;
            return;
        };
        self.health.hear(now_us);
        let rest = &datagram[ReplyHeader::BYTES..];
        if header.kind == Kind::DirectoryReply {
            return self.take_directory(&header, rest, now_us);
        }
        if self.parcels.has_mark(header.sequence) {
            return self.take_several(&header, rest, now_us, on_answer);
        }
        let Some(place) = self.place_of(header.sequence, header.timestamp, now_us) else {
            self.figures.ignored += 1;
            return;
        };
        match header.kind {
            Kind::Replies => match Reply::read(rest) {
                Some((reply, _)) => self.take_reply(place, &reply, header.timestamp, on_answer),
                None => self.figures.ignored += 1,
            },
            Kind::Progress => self.take_progress(place, rest),
            Kind::FragmentReply => {
                self.take_fragment(place, rest, (header.timestamp, now_us), on_answer)
            }
            _ => self.figures.ignored += 1,
        }
    }

    /// Replies to the requests of one datagram. Requests that it has no reply to are sent again when their wait is over.
    fn take_several(
        &mut self,
        header: &ReplyHeader,
        mut rest: &[u8],
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        if header.kind != Kind::Replies {
            self.figures.ignored += 1;
            return;
        }
        let contents = (self.parcels).end(header.sequence, header.timestamp);
        if contents.is_empty() {
            self.figures.ignored += 1;
            return;
        }
        let mut has_fitted = true;
        for sequence in contents {
            let Some((reply, bytes)) = Reply::read(rest) else {
                break;
            };
            rest = &rest[bytes..];
            has_fitted &= reply.status != Status::AskAlone;
            if let Some(place) = self.place_of(sequence, header.timestamp, now_us) {
                self.take_reply(place, &reply, header.timestamp, on_answer);
            }
        }
        self.packing.learn(has_fitted);
    }

    #[inline]
    fn take_reply(
        &mut self,
        place: u32,
        reply: &Reply<'_>,
        timestamp: u32,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        if reply.status.is_executed() {
            return self.finish(place, Ok(reply), on_answer);
        }
        let flight = &mut self.flights[place as usize];
        flight.refuse(reply.status, timestamp);
        match reply.status {
            Status::Superseded if !flight.is_read => self.number_anew(place),
            Status::Forgotten => self.fail(place, Failure::Forgotten, on_answer),
            // To ask again at once would not help. If another copy is under way, that one decides.
            Status::TooManyWriters if flight.open == 0 => {
                self.fail(place, Failure::TooManyWriters, on_answer);
            }
            Status::AskOwner if flight.is_read => self.direct(place),
            Status::AskAlone if flight.phase == Phase::Waiting => {
                self.depart_again(place);
            }
            // It has another token, or another version: nothing but a new directory helps.
            Status::NewDirectory | Status::NoToken | Status::WrongPartition
                if flight.phase == Phase::Waiting =>
            {
                self.ground(place);
            }
            // It is sent again when its wait is over: the server may have more room then, and what was cut off on its way may arrive whole.
            _ => {}
        }
    }

    /// A newer change of the key, under way at the same time, was executed first. By its number this one never will be, so that it may have another, and be
    /// sent behind those that have been.
    #[cold]
    fn number_anew(&mut self, place: u32) {
        let flight = &mut self.flights[place as usize];
        let (owner, mutation) = (usize::from(flight.owner), flight.mutation());
        flight.begin_anew(SEQUENCE_STEP);
        if flight.phase != Phase::Grounded {
            self.direct(place);
        }
        self.figures.resent += 1;
        self.settle(owner, mutation);
    }

    /// The server has a part of a request in fragments.
    fn take_progress(&mut self, place: u32, rest: &[u8]) {
        let flight = &mut self.flights[place as usize];
        let (Some(upload), Some(next)) = (&mut flight.upload, rest.first_chunk()) else {
            return;
        };
        let next = u32::from_le_bytes(*next) as usize;
        let is_sound = next < flight.record.len() && next.is_multiple_of(DATA_BYTES);
        // Less than before: what it had is gone, and it begins again.
        if is_sound && next != upload.next && flight.phase == Phase::Waiting {
            upload.next = next;
            flight.sends = 0;
            self.depart_again(place);
        }
    }

    /// A part of a reply that is longer than a datagram.
    fn take_fragment(
        &mut self,
        place: u32,
        rest: &[u8],
        (timestamp, now_us): (u32, u64),
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        let flight = &mut self.flights[place as usize];
        let Some(fragment) = Fragment::read(rest).filter(|_| flight.is_read) else {
            self.figures.ignored += 1;
            return;
        };
        let assembly = flight
            .reply
            .get_or_insert_with(|| Box::new(Assembly::new(&fragment)));
        let joined = match assembly.join(&fragment) {
            // The value has changed since. What is there belongs to the old one.
            Joined::Foreign => {
                **assembly = Assembly::new(&fragment);
                assembly.join(&fragment)
            }
            joined => joined,
        };
        match joined {
            Joined::Complete => {
                let Some(assembly) = flight.reply.take() else {
                    return;
                };
                match Reply::read(assembly.bytes()) {
                    Some((reply, _)) => self.take_reply(place, &reply, timestamp, on_answer),
                    None => self.fail(place, Failure::Protocol, on_answer),
                }
            }
            Joined::More => {
                let next = assembly.next() as usize;
                let is_window = next > 0 && next.is_multiple_of(WINDOW * DATA_BYTES);
                flight.sends = 0;
                if flight.phase == Phase::Waiting {
                    flight.until_us = now_us + self.settings.resend_first_us;
                    // The window has arrived: the next one is asked for at once.
                    if is_window {
                        self.depart_again(place);
                    }
                }
            }
            Joined::OutOfOrder | Joined::Corrupt | Joined::Foreign => {}
        }
    }

    /// The place of the request that is answered by what shows this sequence number and this time: the time of one of its copies, as the number may have
    /// been another's before.
    #[inline]
    pub(super) fn place_of(&self, sequence: u32, timestamp: u32, now_us: u64) -> Option<u32> {
        let place = sequence & ((1 << PLACE_BITS) - 1);
        let flight = self.flights.get(place as usize)?;
        (flight.sequence == sequence
            && flight.phase != Phase::Free
            && is_between(timestamp, flight.asked_us, now_us))
        .then_some(place)
    }

    /// Whether a directory was left so recently that what shows it now may be late. A server whose directory it is keeps showing it, and is believed then.
    fn has_left(&self, version: u32, now_us: u64) -> bool {
        let deadline_us = self.settings.deadline_us;
        let is_recent = |left: Left| now_us.saturating_sub(left.at_us) < deadline_us;
        self.left
            .is_some_and(|left| left.version == version && is_recent(left))
    }

    fn take_directory(&mut self, header: &ReplyHeader, rest: &[u8], now_us: u64) {
        let is_answer = |question: &Question| question.is_answered_by(header, now_us);
        let is_answer = self.question.as_ref().is_some_and(is_answer);
        if !is_answer || self.has_left(header.directory, now_us) {
            self.figures.ignored += 1;
            return;
        }
        let Some(directory) = Directory::read(rest) else {
            self.figures.ignored += 1;
            return;
        };
        self.question = None;
        self.is_refused = false;
        self.figures.directories += 1;
        let is_other = self
            .directory
            .as_ref()
            .is_none_or(|known| known.version != header.directory);
        let renew_us = now_us + u64::from(directory.token_s) * 500_000;
        let (seed, cores) = (directory.seed, directory.ports.len());
        let owners = (0..directory.partitions).map(|partition| partition % cores as u16);
        let owners = owners.collect();
        if is_other {
            self.lanes.clear();
            let ports = directory.ports.iter();
            self.lanes.extend(ports.map(|&port| Lane::new(port, 0)));
            self.groups.reset(cores);
            // Another server, or the same after a new start: it knows none of this client's changes.
            self.client = self.client.wrapping_add(1);
            self.left = self.directory.as_ref().map(|known| Left {
                version: known.version,
                at_us: now_us,
            });
        }
        let spreads = self.settings.round_robin && directory.direction == Direction::Server;
        let any_port = AnyPort {
            reads: directory.shares_reads() || spreads,
            changes: spreads,
        };
        self.directory = Some(Known {
            directory,
            owners,
            version: header.directory,
            renew_us,
            any_port,
        });
        if is_other {
            self.grounded.clear();
            self.ready.clear();
            self.uploads.clear();
            for place in 0..self.flights.len() {
                let flight = &mut self.flights[place];
                match flight.phase {
                    Phase::Free => {}
                    Phase::Queued => flight.rehash(seed),
                    _ => {
                        flight.begin_anew(SEQUENCE_STEP);
                        flight.rehash(seed);
                        self.direct(place as u32);
                    }
                }
            }
        } else {
            for place in std::mem::take(&mut self.grounded) {
                if self.flights[place as usize].phase == Phase::Grounded {
                    self.direct(place);
                }
            }
        }
    }
}
