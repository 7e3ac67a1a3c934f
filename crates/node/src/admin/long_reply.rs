//! Replies that are produced in parts, each after the client has read the previous one:
//! `stats cachedump`, and `stats conns` for many connections; or which wait for other workers:
//! `dispatch`.

use glimmer_base::Moment;
use glimmer_base::limits::{
    CACHEDUMP_BYTES_MAX, CACHEDUMP_CHAINS_MAX, DUMP_CHAINS_PER_TURN, REPORT_BYTES_HIGH,
};
use glimmer_engine::{Engine, ListCursor, ListScope, Listed};
use glimmer_proto::Words;
use glimmer_proto::text::{dump, lines};

use super::dump::listing;
use super::handler::AdminHandler;
use super::switch::Switch;

/// The rest of a long reply.
pub(crate) enum LongReply {
    /// `stats cachedump`.
    Items(ItemsReport),
    /// The reply to `stats` with an argument.
    Figures(StatsReport),
    /// The reply to `dispatch`, once every worker goes by the new plan.
    Switch(Switch),
}

/// Items of the partitions that a worker may write.
pub(crate) struct ItemsReport {
    cursor: ListCursor,
    items_left: u32,
    bytes_left: usize,
    /// Chains of the index that may still be examined.
    chains_left: usize,
}

/// Statistics of the admin handler.
pub(crate) struct StatsReport {
    argument: Box<[u8]>,
    /// Where the admin handler continues.
    from: u64,
    /// The words of the request's protocol; `None` for the text protocol.
    words: Option<Words>,
}

impl LongReply {
    /// Up to this many items (0 means no limit), within bounds.
    pub fn cachedump(items_max: u32) -> LongReply {
        LongReply::Items(ItemsReport {
            cursor: ListCursor::new(ListScope::Writable),
            items_left: if items_max == 0 { u32::MAX } else { items_max },
            bytes_left: CACHEDUMP_BYTES_MAX,
            chains_left: CACHEDUMP_CHAINS_MAX,
        })
    }

    /// The admin handler's reply to `stats` with an argument.
    pub fn stats(argument: &[u8], words: Option<Words>) -> LongReply {
        LongReply::Figures(StatsReport {
            argument: argument.into(),
            from: 0,
            words,
        })
    }

    /// Appends the next part: at most [`REPORT_BYTES_HIGH`] bytes and a line. Returns whether more
    /// follows.
    pub fn advance(
        &mut self,
        engine: &mut dyn Engine,
        admin: &dyn AdminHandler,
        now: Moment,
        out: &mut Vec<u8>,
    ) -> bool {
        match self {
            LongReply::Items(items) => items.advance(engine, now, out),
            LongReply::Figures(figures) => figures.advance(admin, now, out),
            LongReply::Switch(switch) if switch.is_complete() => {
                out.extend_from_slice(lines::OK.as_bytes());
                false
            }
            LongReply::Switch(_) => true,
        }
    }
}

impl ItemsReport {
    fn advance(&mut self, engine: &mut dyn Engine, now: Moment, out: &mut Vec<u8>) -> bool {
        let begin = out.len();
        let chains = self.chains_left.min(DUMP_CHAINS_PER_TURN);
        self.chains_left -= chains;
        let (mut more, mut chains_now) = (true, chains);
        while more && chains_now > 0 && self.items_left > 0 {
            let made = out.len() - begin;
            if made >= REPORT_BYTES_HIGH.min(self.bytes_left) {
                break;
            }
            let visit = &mut |item: &Listed<'_>| {
                if self.items_left > 0 && out.len() - begin < self.bytes_left {
                    let is_shown = dump::cachedump(out, &listing(item, now));
                    self.items_left -= u32::from(is_shown);
                }
            };
            more = engine.list(now, &mut self.cursor, 1, visit);
            chains_now -= 1;
        }
        self.chains_left += chains_now;
        self.bytes_left = self.bytes_left.saturating_sub(out.len() - begin);
        more &= self.items_left > 0 && self.bytes_left > 0 && self.chains_left > 0;
        if !more {
            out.extend_from_slice(lines::END.as_bytes());
        }
        more
    }
}

impl StatsReport {
    fn advance(&mut self, admin: &dyn AdminHandler, now: Moment, out: &mut Vec<u8>) -> bool {
        let Some(words) = self.words else {
            let next = admin.stats(&self.argument, self.from, now, out);
            self.from = next.unwrap_or(0);
            return next.is_some();
        };
        let mut piece = Vec::new();
        let next = admin.stats(&self.argument, self.from, now, &mut piece);
        self.from = next.unwrap_or(0);
        words.emit_figures(&piece, next.is_some(), out);
        next.is_some()
    }
}
