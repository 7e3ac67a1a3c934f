//! What the network returned: datagrams that reached a host where nothing listens at their port.

use super::{Failure, Session, is_between};
use crate::flight::Phase;
use glimmer_proto::native::{Kind, Reply, RequestHeader};

impl<T> Session<T> {
    /// The network reports that nothing listens at the port that a datagram was sent to. `quoted`
    /// is the beginning of that datagram; `is_known_port` says whether the port is the one that
    /// the server is known by.
    ///
    /// If it is, the server has gone, and every request fails with [`Failure::Refused`]. If it is
    /// the port of one of its cores, the server may have been started again with other ports, so
    /// the client asks for the directory first. A report that does not quote a datagram which is
    /// under way is late or forged, and changes nothing.
    #[cold]
    pub fn bounce(
        &mut self,
        is_known_port: bool,
        quoted: &[u8],
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        let header = RequestHeader::read(quoted).filter(|header| header.client == self.client);
        if !header.is_some_and(|header| self.is_under_way(&header, now_us)) {
            self.figures.ignored += 1;
        } else if is_known_port {
            self.be_refused(now_us, on_answer);
        } else {
            self.refresh();
        }
    }

    /// Whether nothing listened at the server's port when it was last asked.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Whether a datagram with this header was sent, and is not answered.
    fn is_under_way(&self, header: &RequestHeader, now_us: u64) -> bool {
        let timestamp = header.timestamp;
        let waits = |sequence| self.place_of(sequence, timestamp, now_us).is_some();
        match header.kind {
            Kind::Directory => self.question.as_ref().is_some_and(|question| {
                question.sends > 0
                    && question.sequence == header.sequence
                    && is_between(timestamp, question.asked_us, now_us)
            }),
            _ if self.parcels.has_mark(header.sequence) => self
                .parcels
                .contents(header.sequence, timestamp)
                .iter()
                .any(|&sequence| waits(sequence)),
            _ => waits(header.sequence),
        }
    }

    fn be_refused(
        &mut self,
        now_us: u64,
        on_answer: &mut impl FnMut(T, Result<&Reply<'_>, Failure>),
    ) {
        self.is_refused = true;
        // The next request asks again at once.
        self.question = None;
        for place in 0..self.flights.len() as u32 {
            let flight = &self.flights[place as usize];
            if flight.phase != Phase::Free {
                self.figures.refused += 1;
                self.health.refuse(flight.asked_us, now_us);
                self.fail(place, Failure::Refused, on_answer);
            }
        }
    }
}
