//! Replies that are produced in parts, each after the client has read the previous one, and within
//! the allowances of turns: `stats cachedump`, `stats detail dump`, and `stats` with an argument;
//! or which wait for other workers: `dispatch`.

use std::mem;

use glimmer_base::limits::{
    CACHEDUMP_BYTES_MAX, CACHEDUMP_CHAINS_MAX, CLIENT_LIST_BYTES_MAX, REPORT_BYTES_HIGH,
};
use glimmer_engine::{ListCursor, ListScope, Listed};
use glimmer_proto::Words;
use glimmer_proto::control::{Answer, Control};
use glimmer_proto::text::{dump, lines};

use super::dump::listing;
use super::guard::DumpGuard;
use super::handler::Part;
use super::switch::Switch;
use crate::core::Core;

/// The rest of a long reply.
pub(crate) enum LongReply {
    /// `stats cachedump`.
    Items(ItemsReport),
    /// The reply to `stats` with an argument.
    Figures(StatsReport),
    /// `stats detail dump`.
    Prefixes(PrefixReport),
    /// `CLIENT LIST`.
    Clients(ClientsReport),
    /// The reply to `dispatch`, once every worker goes by the new plan.
    Switch(Switch),
}

/// What has become of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It has been made to its end.
    Complete,
    /// It goes on when the client has taken what there is of it.
    Continues,
    /// It goes on when there is news, or after a short time.
    AwaitsNews,
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

/// Connections, which are one figure.
pub(crate) struct ClientsReport {
    words: Words,
    /// Where the admin handler continues.
    from: u64,
    gathered: Vec<u8>,
    /// The right to gather them, which one client has at a time.
    guard: Option<DumpGuard>,
}

/// Counts by key prefix.
#[derive(Default)]
pub(crate) struct PrefixReport {
    /// The last prefix that was shown.
    after: Option<Box<[u8]>>,
    /// Where all counts are one figure: the words of the request's protocol, and what is gathered
    /// of the figure.
    gathered: Option<(Words, Vec<u8>)>,
    /// The right to gather them, which one client has at a time.
    guard: Option<DumpGuard>,
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

    /// The connections, in these words.
    pub fn clients(words: Words) -> LongReply {
        LongReply::Clients(ClientsReport {
            words,
            from: 0,
            gathered: Vec::new(),
            guard: None,
        })
    }

    /// The counts by key prefix, as lines of the text protocol or as one figure in other words.
    pub fn prefixes(words: Option<Words>) -> LongReply {
        LongReply::Prefixes(PrefixReport {
            gathered: words.map(|words| (words, Vec::new())),
            ..PrefixReport::default()
        })
    }

    /// Whether it is gathered before it is sent, by one client at a time. It must not be begun
    /// while its client has replies to take: others would wait for that client.
    pub fn is_gathered(&self) -> bool {
        match self {
            LongReply::Clients(_) => true,
            LongReply::Prefixes(prefixes) => prefixes.gathered.is_some(),
            LongReply::Items(_) | LongReply::Figures(_) | LongReply::Switch(_) => false,
        }
    }

    /// Appends the next part: at most [`REPORT_BYTES_HIGH`] bytes and a line. The turn's allowance
    /// pays for it.
    pub fn advance(&mut self, core: &mut Core, out: &mut Vec<u8>) -> Progress {
        let begin = out.len();
        let progress = match self {
            LongReply::Items(items) => return items.advance(core, out),
            LongReply::Figures(figures) => figures.advance(core, out),
            LongReply::Prefixes(prefixes) => prefixes.advance(core, out),
            LongReply::Clients(clients) => clients.advance(core, out),
            LongReply::Switch(switch) if switch.is_complete() => {
                out.extend_from_slice(lines::OK.as_bytes());
                Progress::Complete
            }
            LongReply::Switch(_) => Progress::Continues,
        };
        core.allowance.spend_on_command(out.len() - begin);
        progress
    }
}

impl ItemsReport {
    fn advance(&mut self, core: &mut Core, out: &mut Vec<u8>) -> Progress {
        let begin = out.len();
        let share = core.allowance.share();
        let mut more = true;
        while more && core.allowance.has(share) && self.items_left > 0 && self.chains_left > 0 {
            let (before, mut lines) = (out.len(), 0);
            if before - begin >= REPORT_BYTES_HIGH.min(self.bytes_left) {
                break;
            }
            let visit = &mut |item: &Listed<'_>| {
                if self.items_left > 0 && out.len() - begin < self.bytes_left {
                    let is_shown = dump::cachedump(out, &listing(item, core.now));
                    self.items_left -= u32::from(is_shown);
                    lines += 1;
                }
            };
            more = core.engine.list(core.now, &mut self.cursor, 1, visit);
            self.chains_left -= 1;
            core.allowance.spend_on_chain(0);
            (core.allowance).spend_on_items(lines, out.len() - before);
        }
        self.bytes_left = self.bytes_left.saturating_sub(out.len() - begin);
        more &= self.items_left > 0 && self.bytes_left > 0 && self.chains_left > 0;
        if more {
            return Progress::Continues;
        }
        out.extend_from_slice(lines::END.as_bytes());
        Progress::Complete
    }
}

impl StatsReport {
    fn advance(&mut self, core: &mut Core, out: &mut Vec<u8>) -> Progress {
        let mut piece = match self.words {
            None => mem::take(out),
            Some(_) => Vec::new(),
        };
        let (argument, now, begin) = (&*self.argument, core.now, piece.len());
        let part = core.admin.stats(argument, self.from, now, &mut piece);
        let lines = piece[begin..].iter().filter(|&&byte| byte == b'\n').count();
        let is_last = part == Part::Last;
        match self.words {
            None => *out = piece,
            Some(_) if part == Part::Later => {}
            Some(words) => words.emit_figures(&piece, !is_last, out),
        }
        (core.allowance).spend_on_figures(core.shared.workers(), lines);
        match part {
            Part::Last => Progress::Complete,
            Part::Later => Progress::AwaitsNews,
            Part::More(from) => {
                self.from = from;
                Progress::Continues
            }
        }
    }
}

impl ClientsReport {
    fn advance(&mut self, core: &mut Core, out: &mut Vec<u8>) -> Progress {
        if self.guard.is_none() {
            self.guard = DumpGuard::take(&core.shared.switches.is_reporting);
        }
        if self.guard.is_none() {
            return Progress::AwaitsNews;
        }
        let before = self.gathered.len();
        let next = (core.admin).clients(self.from, core.now, &mut self.gathered);
        core.allowance
            .spend_on_command(self.gathered.len() - before);
        if let Some(next) = next.filter(|_| self.gathered.len() < CLIENT_LIST_BYTES_MAX) {
            self.from = next;
            return Progress::Continues;
        }
        let answer = Answer::Text(&self.gathered);
        self.words.emit(&Control::Clients, answer, out);
        Progress::Complete
    }
}

impl PrefixReport {
    fn advance(&mut self, core: &mut Core, out: &mut Vec<u8>) -> Progress {
        let observers = core.shared.observers();
        let Some((words, gathered)) = &mut self.gathered else {
            self.after = observers.dump_prefixes(self.after.as_deref(), out);
            return match self.after {
                Some(_) => Progress::Continues,
                None => Progress::Complete,
            };
        };
        if self.guard.is_none() {
            self.guard = DumpGuard::take(&core.shared.switches.is_reporting);
        }
        if self.guard.is_none() {
            return Progress::AwaitsNews;
        }
        let before = gathered.len();
        self.after = observers.dump_prefixes(self.after.as_deref(), gathered);
        core.allowance.spend_on_command(gathered.len() - before);
        if self.after.is_some() {
            return Progress::Continues;
        }
        let control = Control::Stats(b"detail dump");
        words.emit(&control, Answer::Figure("detailed", gathered), out);
        Progress::Complete
    }
}
