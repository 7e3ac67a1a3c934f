//! Parses commands without a key, and rejects everything that is not a command.

use super::line::Line;
use super::step::{Admin, After, Detail, Dump, Shutdown, Step};
use super::tokens::{Words, without_leading_spaces};
use super::{lines, number, watch};
use crate::{AdminCommand, foreign};
use std::ops::RangeInclusive;

/// Parses the line; `name` is the text before its first space, and `rest` the text after it.
pub(super) fn read<'a>(
    line: &Line<'a>,
    name: &[u8],
    words: &Words<'a>,
    rest: &'a [u8],
) -> Step<'a> {
    let admin = match name {
        b"version" => Ok(Admin::Version),
        b"quit" => Ok(Admin::Quit),
        b"mn" => Ok(Admin::MetaNoop),
        b"stats" if words.at(1) == b"cachedump" => {
            cachedump(words).or_else(faulty(AdminCommand::Cachedump, false))
        }
        b"stats" if words.at(1) == b"detail" => Ok(Admin::Detail(match words.at(2) {
            b"on" => Detail::On,
            b"off" => Detail::Off,
            b"dump" => Detail::Dump,
            _ => Detail::Unknown,
        })),
        b"stats" if words.count() == 2 && words.at(1) == b"prefix" => Ok(Admin::Prefixes),
        b"stats" => Ok(Admin::Stats(trimmed(rest))),
        b"watch" => {
            (watch::interests(rest).map(Admin::Watch)).or_else(faulty(AdminCommand::Watch, false))
        }
        _ => return rare(line, words),
    };
    answer(line, admin)
}

/// Commands that memcached looks up in a table when nothing else matches. Spaces may precede them,
/// and refusals are silent if the client wants no reply.
fn rare<'a>(line: &Line<'a>, words: &Words<'a>) -> Step<'a> {
    let quiet = words.are_quiet();
    let admin = match words.at(0) {
        b"shutdown" => Ok(Admin::Shutdown {
            how: shutdown(words),
            quiet,
        }),
        b"refresh_certs" => Ok(Admin::RefreshCerts { quiet }),
        b"verbosity" => verbosity(words),
        b"flush_all" => flush_all(words).or_else(faulty(AdminCommand::FlushAll, quiet)),
        b"flush_prefix" => flush_prefix(words).or_else(faulty(AdminCommand::FlushPrefix, quiet)),
        b"cache_memlimit" => memlimit(words),
        b"lru_crawler" => lru_crawler(words),
        b"debugtime" => match number::digits_32(words.at(1)) {
            Some(seconds) => Ok(Admin::AdvanceClock { seconds, quiet }),
            None => Err(lines::ERROR),
        },
        b"snapshot" if words.count() == 1 => Ok(Admin::Snapshot),
        b"dispatch" if words.count() <= 3 => Ok(Admin::Dispatch([words.at(1), words.at(2)])),
        b"slabs" => unused(AdminCommand::Slabs, slabs(words), words),
        b"lru" => unused(AdminCommand::Lru, lru(words), words),
        // memcached closes at the first line of a request, but not at a later one. Some methods are
        // names of commands, such as `gets`, so a connection may get as far as `Host:`.
        first
            if foreign::is_foreign(first)
                || words.count() > 1 && foreign::is_http_version(words.last()) =>
        {
            return Step::Refuse {
                used: line.used,
                line: "",
                then: After::Close,
            };
        }
        _ => Err(lines::ERROR),
    };
    answer(line, admin.map_err(|reason| lines::unless(quiet, reason)))
}

fn answer<'a>(line: &Line<'a>, admin: Result<Admin<'a>, &'static str>) -> Step<'a> {
    match admin {
        Ok(admin) => Step::Admin {
            used: line.used,
            admin,
        },
        Err(reason) => line.refuse(reason),
    }
}

/// A command with wrong words, which this line says. As in memcached, a client that may not use the
/// command learns that first.
fn faulty<'a>(
    command: AdminCommand,
    quiet: bool,
) -> impl FnOnce(&'static str) -> Result<Admin<'a>, &'static str> {
    move |line| {
        Ok(Admin::Answer {
            command,
            line,
            quiet,
        })
    }
}

/// A setting that has no meaning here, if the line that answers it is `OK`.
fn unused<'a>(
    command: AdminCommand,
    line: &'static str,
    words: &Words<'_>,
) -> Result<Admin<'a>, &'static str> {
    let quiet = words.are_quiet();
    match line {
        lines::OK => Ok(Admin::Answer {
            command,
            line,
            quiet,
        }),
        refusal => Err(refusal),
    }
}

fn verbosity<'a>(words: &Words<'_>) -> Result<Admin<'a>, &'static str> {
    let quiet = words.are_quiet();
    let level = number::digits_32(words.at(1)).ok_or(lines::BAD_LINE)?;
    Ok(Admin::Verbosity { level, quiet })
}

fn flush_all<'a>(words: &Words<'_>) -> Result<Admin<'a>, &'static str> {
    let quiet = words.are_quiet();
    let delay = match words.count() {
        1 => 0,
        2 if quiet => 0,
        _ => number::signed_digits_32(words.at(1)).ok_or(lines::BAD_EXPTIME)?,
    };
    Ok(Admin::FlushAll {
        delay_exptime: delay.into(),
        quiet,
    })
}

fn flush_prefix<'a>(words: &Words<'a>) -> Result<Admin<'a>, &'static str> {
    let quiet = words.are_quiet();
    match words.count() {
        2 if !quiet => {}
        3 if quiet => {}
        _ => return Err(lines::BAD_LINE),
    }
    Ok(Admin::FlushPrefix {
        prefix: words.at(1),
        quiet,
    })
}

fn shutdown(words: &Words<'_>) -> Shutdown {
    match (words.count(), words.at(1)) {
        (1, _) => Shutdown::Now,
        (2, b"graceful") => Shutdown::Graceful,
        _ => Shutdown::Unknown,
    }
}

fn memlimit<'a>(words: &Words<'_>) -> Result<Admin<'a>, &'static str> {
    let quiet = words.are_quiet();
    match number::digits_32(words.at(1)) {
        None => Err(lines::ERROR),
        Some(0..8) => Err(lines::MEMLIMIT_TOO_SMALL),
        Some(1_000_000_001..) => Err(lines::MEMLIMIT_IN_BYTES),
        Some(mebibytes) => Ok(Admin::MemoryLimit { mebibytes, quiet }),
    }
}

/// There are no slabs to move. memcached has an error line for that case, and takes settings for
/// it all the same.
fn slabs(words: &Words<'_>) -> &'static str {
    match (words.count(), words.at(1)) {
        (4, b"reassign") => lines::SLABS_REASSIGN_DISABLED,
        (3.., b"automove") => slabs_automove(words),
        _ => lines::ERROR,
    }
}

/// Settings of what moves memcached's slabs. It does not look at further words.
fn slabs_automove(words: &Words<'_>) -> &'static str {
    const WINDOWS: RangeInclusive<u32> = 3..=1800;
    match (words.at(2), words.at(3)) {
        (b"ratio" | b"freeratio", number) => match decimal(number) {
            Some(_) => lines::OK,
            None => lines::ERROR,
        },
        (b"window", number) => match number::digits_32(number) {
            Some(seconds) if WINDOWS.contains(&seconds) => lines::OK,
            Some(_) => lines::AUTOMOVE_WINDOW,
            None => lines::BAD_LINE,
        },
        (mode, _) => match number::digits_32(mode) {
            Some(0..=2) => lines::OK,
            Some(_) => lines::ERROR,
            None => lines::BAD_LINE,
        },
    }
}

/// There is one list of items. memcached takes these settings at any time, and uses those that its
/// way of keeping lists has a use for. It does not look at further words.
fn lru(words: &Words<'_>) -> &'static str {
    match (words.count(), words.at(1)) {
        (3.., b"mode") if matches!(words.at(2), b"flat" | b"segmented") => lines::OK,
        (3.., b"temp_ttl") if number::signed_digits_32(words.at(2)).is_some() => lines::OK,
        (6.., b"tune") => lru_tune(words),
        _ => lines::ERROR,
    }
}

/// The sizes of memcached's lists.
fn lru_tune(words: &Words<'_>) -> &'static str {
    const PERCENT_MAX: u32 = 80;
    let (hot, warm) = (
        number::digits_32(words.at(2)),
        number::digits_32(words.at(3)),
    );
    match (hot, warm, decimal(words.at(4)), decimal(words.at(5))) {
        (Some(hot), Some(warm), Some(hot_age), Some(warm_age)) => {
            if hot.saturating_add(warm) > PERCENT_MAX {
                lines::LRU_PERCENT_TOO_LARGE
            } else if hot_age <= 0.0 || warm_age <= 0.0 {
                lines::LRU_AGE_TOO_SMALL
            } else {
                lines::OK
            }
        }
        _ => lines::ERROR,
    }
}

/// A number with or without decimals.
fn decimal(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// memcached's crawler: it lists items and removes expired ones.
fn lru_crawler<'a>(words: &Words<'_>) -> Result<Admin<'a>, &'static str> {
    match (words.count(), words.at(1)) {
        (2, b"enable") => Ok(Admin::Crawler(true)),
        (2, b"disable") => Ok(Admin::Crawler(false)),
        (3, b"metadump" | b"mgdump" | b"crawl") => {
            let (command, admin) = match words.at(1) {
                b"metadump" => (AdminCommand::Metadump, Admin::Dump(Dump::Meta)),
                b"mgdump" => (AdminCommand::Mgdump, Admin::Dump(Dump::Mg)),
                _ => (AdminCommand::LruCrawler, Admin::Crawl),
            };
            match class_fault(words.at(2)) {
                None => Ok(admin),
                Some(line) => faulty(command, words.are_quiet())(line),
            }
        }
        (3, b"tocrawl" | b"sleep") => {
            let line = match (words.at(1), number::digits_32(words.at(2))) {
                (_, None) => lines::BAD_LINE,
                (b"sleep", Some(1_000_001..)) => lines::CRAWLER_SLEEP_TOO_LONG,
                _ => lines::OK,
            };
            unused(AdminCommand::LruCrawler, line, words)
        }
        _ => Err(lines::ERROR),
    }
}

/// What is wrong with a list of classes. All items are in one class, so every good list means all
/// items. As in memcached, a list may have empty places, but not only those.
fn class_fault(text: &[u8]) -> Option<&'static str> {
    let is_class = |class: &[u8]| matches!(number::digits_32(class), Some(1..=63));
    let named = text.split(|&byte| byte == b',');
    let mut named = named.filter(|class| !class.is_empty()).peekable();
    let names_none = named.peek().is_none();
    match text {
        b"all" | b"hash" => None,
        _ if names_none => Some(lines::NOTHING_TO_CRAWL),
        _ if named.all(is_class) => None,
        _ => Some(lines::BAD_CLASS),
    }
}

fn cachedump<'a>(words: &Words<'_>) -> Result<Admin<'a>, &'static str> {
    let class = number::digits_32(words.at(2));
    match (words.count(), class, number::digits_32(words.at(3))) {
        (..4, ..) => Err(lines::BAD_COMMAND_LINE),
        (_, Some(class @ ..64), Some(items_max)) => Ok(Admin::CacheDump { class, items_max }),
        (_, Some(_), Some(_)) => Err(lines::ILLEGAL_CLASS),
        _ => Err(lines::BAD_LINE),
    }
}

fn trimmed(text: &[u8]) -> &[u8] {
    let text = without_leading_spaces(text);
    let end = text
        .iter()
        .rposition(|&byte| byte != b' ')
        .map_or(0, |last| last + 1);
    &text[..end]
}
