//! Commands that name no key. They are executed when everything before them on their connection has
//! been answered.

use glimmer_base::sync::Ordering;
use glimmer_base::{Expiry, Moment};
use glimmer_engine::GroupError;
use glimmer_hotset::Pause;
use glimmer_proto::control::Answer;
use glimmer_proto::outcome::NoItem;
use glimmer_proto::text::{Admin, Detail, Dump, dump, lines};
use glimmer_proto::{AdminCommand, Denial};

use crate::admin::guard::DumpGuard;
use crate::admin::long_reply::LongReply;
use crate::admin::switch::{self, Switch, Wanted};
use crate::core::Core;

mod control;

pub(crate) use control::{Client as ControlClient, administer as administer_control};

/// What a command that names no key comes to.
pub(crate) enum Outcome {
    /// It has been executed.
    Done,
    /// It has been executed, and the connection is to be closed.
    Close,
    /// It was a wrong login, and its answer has to wait.
    Withheld,
    /// The reply is made piece by piece.
    LongReply(LongReply),
}

/// Refuses a command that the server does not permit, or not to its user, or that it does not carry
/// out for a datagram: anybody can forge the sender of one. Returns whether it has refused it.
#[cold]
pub(crate) fn refuse(
    admin: &Admin<'_>,
    denial: Option<Denial>,
    is_stream: bool,
    out: &mut Vec<u8>,
    core: &mut Core,
) -> bool {
    let command = admin.command();
    let denied = command.filter(|&command| !core.shared.config.permits.has(command));
    let (line, answer) = if !is_stream && !admin.may_come_by_datagram() {
        (lines::NOT_OVER_UDP, Answer::NotOverUdp)
    } else if !is_stream && command.is_some() && core.allowance.is_spent_by_datagrams() {
        (lines::TOO_OFTEN_OVER_UDP, Answer::TooOften)
    } else if let Some(command) = denied {
        let answer = match command {
            AdminCommand::Detail => Answer::NoSuchFigures,
            _ => Answer::Denied,
        };
        (command.refusal(), answer)
    } else if let Some(denial) = denial {
        (denial.line(), Answer::NotPermitted(denial))
    } else {
        return false;
    };
    // As in memcached, a flush counts whether it is permitted or not.
    if command == Some(AdminCommand::FlushAll) {
        core.tally.cmd_flush += 1;
        core.show_figures();
    }
    match admin {
        Admin::Control(control, words) => words.emit(control, answer, out),
        _ => out.extend_from_slice(lines::unless(admin.is_quiet(), line).as_bytes()),
    }
    true
}

/// Executes a command that names no key.
#[cold]
pub(crate) fn administer(admin: &Admin<'_>, out: &mut Vec<u8>, core: &mut Core) -> Outcome {
    let mut say = |line: &str| out.extend_from_slice(line.as_bytes());
    match *admin {
        Admin::Version => say(lines::VERSION),
        Admin::MetaNoop => say(lines::META_NOOP),
        Admin::Verbosity { level, quiet } => {
            core.admin.verbosity(level);
            say(lines::unless(quiet, lines::OK));
        }
        Admin::FlushAll {
            delay_exptime,
            quiet,
        } => {
            flush(delay_exptime, core);
            say(lines::unless(quiet, lines::OK));
        }
        Admin::FlushPrefix { prefix, quiet } => match flush_prefix(prefix, core) {
            Ok(()) => say(lines::unless(quiet, lines::OK)),
            Err(_) if quiet => {}
            Err(reason) => say(&refusal_of(reason)),
        },
        Admin::FlushGroup(request) => match request.with_key(|prefix| flush_prefix(prefix, core)) {
            Ok(()) => request.emit::<NoItem>(glimmer_proto::Outcome::Deleted, out),
            Err(reason) => say(&refusal_of(reason)),
        },
        Admin::Control(..) => unreachable!("it is answered in words of its own"),
        Admin::Stats(argument) => return Outcome::LongReply(LongReply::stats(argument, None)),
        Admin::CacheDump { class, .. } if class != dump::CLASS => say(lines::END),
        Admin::CacheDump { items_max, .. } => {
            return Outcome::LongReply(LongReply::cachedump(items_max));
        }
        Admin::AdvanceClock { seconds, quiet } => {
            if let Some(tender) = &core.tender {
                tender.accelerator.pause(Pause::ClockMoved, true);
            }
            core.shared.switches.advance_clock(seconds);
            say(lines::unless(quiet, lines::OK));
        }
        Admin::MemoryLimit { mebibytes, quiet } => {
            let line = match core.admin.set_memory_limit(mebibytes) {
                true => lines::OK,
                false => lines::MEMLIMIT_FIXED,
            };
            say(lines::unless(quiet, line));
        }
        Admin::Crawl => say(if !core.shared.switches.has_crawler() {
            lines::LRU_CRAWLER_DISABLED
        } else if core.shared.switches.begin_to_crawl() {
            for doorbell in &core.shared.doorbells {
                doorbell.wake();
            }
            lines::OK
        } else {
            lines::CRAWLER_BUSY
        }),
        Admin::Crawler(is_on) => {
            core.shared.switches.set_crawler(is_on);
            say(lines::OK);
        }
        Admin::Detail(Detail::Dump) => return Outcome::LongReply(LongReply::prefixes(None)),
        Admin::Detail(Detail::Unknown) => say(lines::STATS_DETAIL_USAGE),
        Admin::Detail(detail) => {
            core.shared.observers().set_detail(detail == Detail::On);
            say(lines::OK);
        }
        Admin::Dump(_) | Admin::Prefixes | Admin::Watch(_) => {
            unreachable!("they take the burst's own hand")
        }
        Admin::Answer { line, quiet, .. } => say(lines::unless(quiet, line)),
        Admin::Dispatch(words) => match switch_to(words, core) {
            Ok(switch) => {
                core.shared.switches.note_plan_change(core.now.ms);
                return Outcome::LongReply(LongReply::Switch(switch));
            }
            Err(reason) => say(&format!("CLIENT_ERROR dispatch: {reason}\r\n")),
        },
        Admin::ClusterGet => core.shared.cluster.show(out),
        Admin::ClusterSet { cluster, quiet } => {
            core.shared.cluster.set(&cluster);
            say(lines::unless(quiet, lines::STORED));
        }
        Admin::ClusterDelete { quiet } => {
            let line = match core.shared.cluster.delete() {
                true => lines::DELETED,
                false => lines::NOT_FOUND,
            };
            say(lines::unless(quiet, line));
        }
        Admin::RefreshCerts { quiet } => {
            let before = out.len();
            core.admin.refresh_certificates(out);
            out.truncate(if quiet { before } else { out.len() });
        }
        Admin::Snapshot => core.admin.snapshot(out),
        Admin::Quit => return Outcome::Close,
        Admin::Shutdown { how, quiet } => {
            let before = out.len();
            let stops = core.admin.shutdown(how, out);
            out.truncate(if quiet { before } else { out.len() });
            if stops {
                return Outcome::Close;
            }
        }
    }
    Outcome::Done
}

/// Begins to put the policy and the access mode in force that these words name.
fn switch_to(words: [&[u8]; 2], core: &Core) -> Result<Switch, String> {
    let settings = core.shared.plans.settings();
    switch::begin(Wanted::parse(words, &settings)?, &core.shared, core.now)
}

/// Makes every item invisible that is older than a moment.
fn flush(exptime: i64, core: &mut Core) {
    core.tally.cmd_flush += 1;
    core.show_figures();
    let at_ms = flush_ms(exptime, core.now);
    core.engine.flush(core.now, at_ms);
    core.shared.switches.note_flush(at_ms);
}

/// Makes every item of a group of keys invisible, and has all workers sweep.
fn flush_prefix(prefix: &[u8], core: &mut Core) -> Result<(), GroupError> {
    let done = core.engine.invalidate(core.now, prefix);
    if matches!(done, Ok(()) | Err(GroupError::Full)) {
        call_sweeps(core);
    }
    core.tally.prefix_flushes += u64::from(done.is_ok());
    core.show_figures();
    done
}

/// Has all workers sweep.
fn call_sweeps(core: &Core) {
    core.shared.switches.call_walks();
    for doorbell in &core.shared.doorbells {
        doorbell.wake();
    }
}

/// The line that says why a group was not invalidated. Only one that may be at another time is the
/// server's fault.
fn refusal_of(reason: GroupError) -> String {
    let kind = match reason {
        GroupError::Full => "SERVER_ERROR",
        _ => "CLIENT_ERROR",
    };
    format!("{kind} {reason}\r\n")
}

/// Whether what happens may be shown to a client; if not it is told why.
#[cold]
pub(crate) fn begin_watch(out: &mut Vec<u8>) -> bool {
    if !out.is_empty() {
        out.extend_from_slice(lines::WATCH_NOT_ALONE.as_bytes());
        return false;
    }
    true
}

/// Begins to list all items, or says why not.
#[cold]
pub(crate) fn begin_dump(kind: Dump, out: &mut Vec<u8>, core: &Core) -> Option<DumpGuard> {
    let not_alone = match kind {
        Dump::Meta => lines::METADUMP_NOT_ALONE,
        Dump::Mg => lines::MGDUMP_NOT_ALONE,
    };
    let guard = if !core.shared.switches.has_crawler() {
        Err(lines::LRU_CRAWLER_DISABLED)
    } else if !out.is_empty() {
        Err(not_alone)
    } else {
        DumpGuard::take(&core.shared.switches.is_dumping).ok_or(lines::CRAWLER_BUSY)
    };
    if guard.is_ok() {
        core.shared.switches.dumps.fetch_add(1, Ordering::Relaxed);
    }
    let line = guard.as_ref().map_or_else(|&line| line, |_| lines::OK);
    out.extend_from_slice(line.as_bytes());
    guard.ok()
}

/// The moment that a `flush_all` names, in milliseconds since the epoch.
fn flush_ms(delay_exptime: i64, now: Moment) -> u64 {
    match Expiry::from_memcached(delay_exptime.max(0), now) {
        Expiry::NEVER if delay_exptime <= 0 => now.ms,
        Expiry::NEVER => u64::MAX,
        expiry => expiry.ms().max(now.ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_now_unless_it_says_later() {
        let now = Moment {
            ms: 10_000,
            epoch_unix_ms: 1_700_000_000_000,
        };
        assert_eq!(flush_ms(0, now), 10_000);
        assert_eq!(flush_ms(-5, now), 10_000);
        assert_eq!(flush_ms(5, now), 15_000);
        assert_eq!(flush_ms(1_600_000_000, now), 10_000);
        assert_eq!(flush_ms(1_700_000_060, now), 60_000);
        assert_eq!(flush_ms(i64::MAX, now), u64::MAX);
    }
}
