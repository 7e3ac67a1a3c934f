//! What changes, as JSON: one object per line. It is made for programs, such as one that keeps a
//! second server warm. docs/administration.md has the members.

use std::fmt::Write;

use glimmer_base::{Expiry, Moment, shown};
use glimmer_engine::{Item, Job};
use glimmer_proto::outcome::OutcomeKind;

use super::change::{Asked, Old, STORED, status, verb};
use super::line::Stamp;

/// What a request did to the item of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It has another value, or the same again, with another CAS unique.
    Stored,
    /// It has another lifetime.
    Touched,
    /// It is gone.
    Deleted,
    /// Nothing, although a value was to be stored.
    Refused,
}

impl Change {
    /// What a request did; none if it did nothing and was to store nothing.
    pub fn of(
        job: &Job<'_>,
        (before, after): (Option<Old>, Option<&Item<'_>>),
        outcome: OutcomeKind,
    ) -> Option<Change> {
        let is_store = matches!(Asked::of(&job.request), Asked::Store(_));
        let is_stored = match is_store {
            true => status(job, before.is_some(), outcome) == STORED,
            // Without CAS uniques (`-C`), those of both items are alike.
            false => matches!(outcome, OutcomeKind::Counted | OutcomeKind::Deleted),
        };
        Some(match (before, after) {
            (_, Some(_)) if is_stored => Change::Stored,
            (None, Some(_)) => Change::Stored,
            (Some(old), Some(new)) if old.cas != new.cas() => Change::Stored,
            (Some(old), Some(new)) if old.expiry != new.expiry() => Change::Touched,
            (Some(_), None) => Change::Deleted,
            // It has expired already: it is stored, and never seen.
            (None, None) if is_stored => Change::Deleted,
            _ if is_store => Change::Refused,
            _ => return None,
        })
    }
}

/// The line of a change.
pub(super) fn of_change(
    stamp: Stamp,
    job: &Job<'_>,
    change: Change,
    (after, outcome): (Option<&Item<'_>>, OutcomeKind),
    now: Moment,
) -> String {
    let (kind, status) = match change {
        Change::Stored => ("store", STORED),
        Change::Touched => ("touch", "touched"),
        Change::Deleted => ("delete", "deleted"),
        Change::Refused => ("store", status(job, after.is_some(), outcome)),
    };
    let mut line = begin(stamp, kind);
    let mut key = Vec::new();
    shown::put_uri(&mut key, job.request.key);
    let key = String::from_utf8_lossy(&key);
    let command = verb(&job.request);
    let _ = write!(
        line,
        r#","key":"{key}","cmd":"{command}","status":"{status}","cfd":{}"#,
        job.client
    );
    if let Some(item) = after.filter(|_| change != Change::Refused) {
        let (size, flags) = (item.layout().value_len, item.flags());
        let _ = write!(
            line,
            r#","cas":{},"size":{size},"flags":{flags}"#,
            item.cas()
        );
        let _ = match item.expiry() {
            Expiry::NEVER => write!(line, r#","ttl_ms":null"#),
            expiry => write!(line, r#","ttl_ms":{}"#, expiry.ms().saturating_sub(now.ms)),
        };
    }
    line.push_str("}\n");
    line
}

/// The line after others were left out because the watcher is too slow.
pub(super) fn of_lost(lines: u64) -> String {
    format!("{{\"type\":\"lost\",\"lines\":{lines}}}\n")
}

fn begin(stamp: Stamp, kind: &str) -> String {
    let Stamp { unix_us, gid } = stamp;
    let (s, us) = (unix_us / 1_000_000, unix_us % 1_000_000);
    format!(r#"{{"ts":{s}.{us:06},"gid":{gid},"type":"{kind}""#)
}
