//! Commands that name no key, and everything that is no command.

use super::parser::Line;
use super::step::{Admin, After, Shutdown, Step};
use super::tokens::{Words, without_leading_spaces};
use super::{lines, number};

/// Reads the line; `rest` is what follows the command's name.
pub(super) fn read<'a>(line: &Line<'a>, words: &Words<'a>, rest: &'a [u8]) -> Step<'a> {
    let admin = match words.at(0) {
        b"version" => Ok(Admin::Version),
        b"quit" => Ok(Admin::Quit),
        b"mn" => Ok(Admin::MetaNoop),
        b"stats" => Ok(Admin::Stats(trimmed(rest))),
        b"shutdown" => Ok(Admin::Shutdown(shutdown(words))),
        b"verbosity" => verbosity(words),
        b"flush_all" => flush_all(words),
        b"cache_memlimit" => Err(memlimit(words)),
        b"lru_crawler" => Err(lru_crawler(words)),
        b"slabs" => Err(slabs(words)),
        b"lru" => Err(lines::unless(words.are_quiet(), lines::ERROR)),
        b"watch" => Err(lines::unless(words.are_quiet(), lines::WATCH_NOT_ALLOWED)),
        name => return unknown(line, name, words.last()),
    };
    match admin {
        Ok(admin) => Step::Admin {
            used: line.used,
            admin,
        },
        Err(reason) => line.refuse(reason),
    }
}

fn verbosity<'a>(words: &Words<'_>) -> Result<Admin<'a>, &'static str> {
    if !(2..=3).contains(&words.count()) {
        return Err(lines::ERROR);
    }
    let quiet = words.are_quiet();
    match number::unsigned_32(words.at(1)) {
        Some(level) => Ok(Admin::Verbosity { level, quiet }),
        None => Err(lines::unless(quiet, lines::BAD_LINE)),
    }
}

fn flush_all<'a>(words: &Words<'_>) -> Result<Admin<'a>, &'static str> {
    let quiet = words.are_quiet();
    let delay = match words.count() {
        1 => Some(0),
        2 if quiet => Some(0),
        2 | 3 => number::signed_32(words.at(1)),
        _ => return Err(lines::ERROR),
    };
    match delay {
        Some(delay) => Ok(Admin::FlushAll {
            delay_exptime: delay.into(),
            quiet,
        }),
        None => Err(lines::unless(quiet, lines::BAD_EXPTIME)),
    }
}

fn shutdown(words: &Words<'_>) -> Shutdown {
    match (words.count(), words.at(1)) {
        (1, _) => Shutdown::Now,
        (2, b"graceful") => Shutdown::Graceful,
        _ => Shutdown::Unknown,
    }
}

/// All memory is laid out at start, so the limit cannot follow; memcached has a line for that.
fn memlimit(words: &Words<'_>) -> &'static str {
    if !(2..=3).contains(&words.count()) {
        return lines::ERROR;
    }
    let reason = match number::unsigned_32(words.at(1)) {
        None => lines::ERROR,
        Some(0..8) => lines::MEMLIMIT_TOO_SMALL,
        Some(_) => lines::MEMLIMIT_FIXED,
    };
    lines::unless(words.are_quiet(), reason)
}

/// There are no slabs to move, and memcached has a line for that.
fn slabs(words: &Words<'_>) -> &'static str {
    match (words.count(), words.at(1)) {
        (4, b"reassign") => lines::SLABS_REASSIGN_DISABLED,
        (3.., b"automove") => lines::unless(words.are_quiet(), lines::ERROR),
        _ => lines::ERROR,
    }
}

/// Expired items leave with the head of the log; there is no crawler, and memcached has lines for that.
fn lru_crawler(words: &Words<'_>) -> &'static str {
    match (words.count(), words.at(1)) {
        (3, b"crawl" | b"metadump") => lines::LRU_CRAWLER_DISABLED,
        (2, b"enable") => lines::LRU_CRAWLER_NOT_STARTED,
        (2, b"disable") => lines::LRU_CRAWLER_NOT_STOPPED,
        _ => lines::ERROR,
    }
}

/// Answers a browser or a scanner by closing, anyone else with `ERROR`. Memcached looks for HTTP only where the name is not
/// like one of its more frequent commands.
fn unknown(line: &Line<'_>, name: &[u8], last: &[u8]) -> Step<'static> {
    let is_like_command = match name {
        [_] => true,
        [first, ..] if b"gsacidt".contains(first) => true,
        [b'm', _] => true,
        _ => false,
    };
    if last.starts_with(b"HTTP/") && !is_like_command {
        return Step::Refuse {
            used: line.used,
            line: "",
            then: After::Close,
        };
    }
    line.refuse(lines::ERROR)
}

fn trimmed(text: &[u8]) -> &[u8] {
    let text = without_leading_spaces(text);
    let end = text
        .iter()
        .rposition(|&byte| byte != b' ')
        .map_or(0, |last| last + 1);
    &text[..end]
}
