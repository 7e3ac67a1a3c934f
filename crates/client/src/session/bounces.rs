//! Datagrams that the network returned because nothing listens at their port.

use super::{Failure, Session, is_between};
use crate::in_flight::Phase;
use glimmer_proto::native::{Kind, Reply, RequestHeader};

impl<T> Session<T> {
    /// The network reports that nothing listens at a datagram's destination port. `quoted` is the
    /// beginning of that datagram; `is_known_port` says whether the port is the server's configured
    /// port.
    ///
    /// If it is, the server is gone, and every request fails with [`Failure::Refused`]. If it is
    /// the port of one of the server's cores, the server may have been restarted with other ports,
    /// so the client first asks for the directory. A report that does not quote a datagram in
    /// flight is late or forged, and is ignored.
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
            self.counters.ignored += 1;
        } else if is_known_port {
            self.be_refused(now_us, on_answer);
        } else {
            self.refresh();
        }
    }

    /// Whether nothing listened at the server's port at the last attempt.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Whether a datagram with this header was sent and is unanswered.
    fn is_under_way(&self, header: &RequestHeader, now_us: u64) -> bool {
        let timestamp = header.timestamp;
        let waits = |sequence| self.slot_of(sequence, timestamp, now_us).is_some();
        match header.kind {
            Kind::Directory => self.question.as_ref().is_some_and(|question| {
                question.sends > 0
                    && question.sequence == header.sequence
                    && is_between(timestamp, question.asked_us, now_us)
            }),
            _ if self.shared_datagrams.has_mark(header.sequence) => self
                .shared_datagrams
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
        // The next request asks for the directory at once.
        self.question = None;
        for slot in 0..self.requests.len() as u32 {
            let request = &self.requests[slot as usize];
            if request.phase != Phase::Free {
                self.counters.refused += 1;
                self.health.refuse(request.asked_us, now_us);
                self.fail(slot, Failure::Refused, on_answer);
            }
        }
    }
}
