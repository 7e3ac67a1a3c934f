//! Writes outcomes as replies of the classic text protocol.

use super::{Reply, emit, lines};
use crate::meta::Command;
use crate::outcome::{Emit, ItemView, Outcome};
use crate::{Request, Verb};

impl Emit for Reply {
    #[inline(always)]
    fn emit<I: ItemView>(&self, request: &Request<'_>, outcome: Outcome<I>, out: &mut Vec<u8>) {
        let line = match outcome {
            Outcome::Value(found) => {
                let item = found.item;
                let cas = self.cas.then(|| item.cas());
                emit::value_head(out, request.key, item.flags(), item.value_bytes(), cas);
                item.append_value(out);
                return emit::value_tail(out, self.last);
            }
            Outcome::Miss if self.last => return emit::line(out, lines::END),
            Outcome::Miss => return,
            Outcome::OutOfMemory if self.leaves_out(request) && self.last => lines::END,
            _ if self.quiet => return,
            Outcome::Counted(counted) => return emit::number(out, counted.number),
            // Copies of constant length for the most frequent replies to changes.
            Outcome::Stored { .. } => return emit::line(out, lines::STORED),
            Outcome::Deleted => return emit::line(out, lines::DELETED),
            Outcome::NotStored => lines::NOT_STORED,
            Outcome::Exists => lines::EXISTS,
            Outcome::NotFound => lines::NOT_FOUND,
            Outcome::Touched { .. } => lines::TOUCHED,
            Outcome::NotANumber | Outcome::Overflow => lines::NON_NUMERIC,
            Outcome::TooLarge => lines::TOO_LARGE,
            Outcome::OutOfMemory => no_memory(request),
        };
        emit::line(out, line);
    }
}

impl Reply {
    /// Whether an error leaves the key out: this is a retrieval of several keys.
    fn leaves_out(&self, request: &Request<'_>) -> bool {
        self.quiet && matches!(request.verb, Verb::GetAndTouch { .. })
    }
}

/// memcached's error line for this kind of request when there is no memory.
pub(crate) fn no_memory(request: &Request<'_>) -> &'static str {
    match request.verb {
        Verb::Store { .. }
        | Verb::Refused { .. }
        | Verb::Meta {
            command: Command::Store,
            ..
        } => lines::NO_MEMORY_STORING,
        _ => lines::NO_MEMORY,
    }
}
