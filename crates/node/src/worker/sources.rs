//! The sources that a worker waits for in addition to its connections.

/// A source. Its number was assigned by its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The doorbell with which other threads wake the worker.
    Doorbell,
    /// A listener for connections.
    Listener(usize),
    /// A packet device.
    Packets(usize),
}

/// The sources of one worker. The index of a source in this list is its token in the poller. Tokens
/// of connections are greater than any index: their upper 32 bits are a generation, which counts
/// from one.
#[derive(Default)]
pub(super) struct SourceList(Vec<Source>);

impl SourceList {
    /// Adds a source. Returns its token in the poller.
    pub fn add(&mut self, source: Source) -> u64 {
        self.0.push(source);
        self.0.len() as u64 - 1
    }

    /// The source with this token; `None` if the token belongs to a connection.
    #[inline]
    pub fn get(&self, token: u64) -> Option<Source> {
        let place = usize::try_from(token).ok()?;
        self.0.get(place).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::key::ConnectionKey;
    use slotmap::{Key, SlotMap};

    #[test]
    fn a_token_leads_to_its_source_and_a_connections_to_none() {
        let mut list = SourceList::default();
        let all = [Source::Doorbell, Source::Listener(0), Source::Packets(7)];
        let tokens = all.map(|source| list.add(source));
        assert_eq!(tokens.map(|token| list.get(token)), all.map(Some));
        let mut connections = SlotMap::<ConnectionKey, ()>::with_key();
        for _ in 0..3 {
            let key = connections.insert(());
            assert_eq!(list.get(key.data().as_ffi()), None);
        }
    }
}
