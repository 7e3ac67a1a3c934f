//! `config get cluster`, `config set cluster` and `config delete cluster`.

use super::cluster::Cluster;
use super::line::Line;
use super::step::{Admin, Step};
use super::tokens::Words;
use super::value::{Body, Source};
use super::{lines, number};
use crate::AdminCommand;
use glimmer_base::limits::CLUSTER_BYTES_MAX;

/// The only configuration that there is.
const NAME: &[u8] = b"cluster";

/// A step, and the bytes of a refused configuration that follow it, if there are any.
pub(super) type Parsed<'a> = (Step<'a>, Option<usize>);

/// Parses a line that begins with `config`.
pub(super) fn read<'a>(line: &Line<'a>, source: Source) -> Parsed<'a> {
    let words = Words::of(line.text);
    let is_known = words.at(2) == NAME;
    let admin = match (words.count(), words.at(1)) {
        (5.., b"set") => return set(line, source, &words),
        (3, b"get") if is_known => Admin::ClusterGet,
        (3, b"get") => return (line.refuse(lines::END), None),
        (3.., b"delete") if is_known => Admin::ClusterDelete {
            quiet: words.are_quiet(),
        },
        (3.., b"delete") => answer(lines::NOT_FOUND, words.are_quiet()),
        _ => return (line.refuse(lines::BAD_LINE), None),
    };
    let used = line.used;
    (Step::Admin { used, admin }, None)
}

/// `config set NAME FLAGS BYTES [noreply]`, then the configuration. The flags have no meaning.
fn set<'a>(line: &Line<'a>, source: Source, words: &Words<'a>) -> Parsed<'a> {
    /// As in a store, the length is a number of 32 bits.
    const LENGTH_MAX: u32 = i32::MAX as u32 - 2;
    let quiet = words.are_quiet();
    let length = number::digits_32(words.at(4)).filter(|&length| length <= LENGTH_MAX);
    let Some(length) = length.map(|length| length as usize) else {
        // As in a store, what follows will be parsed as commands.
        return (line.refuse(lines::BAD_LINE), None);
    };
    let swallow = |left, reason| (line.refuse(lines::unless(quiet, reason)), Some(left));
    if number::unsigned_32(words.at(3)).is_none() {
        return swallow(length, lines::BAD_LINE);
    }
    if length > CLUSTER_BYTES_MAX {
        return swallow(length, lines::TOO_LARGE);
    }
    let (used, text) = match source.body(line, length) {
        Body::Whole { used, value } => (used, value),
        Body::Unterminated { used } => {
            let admin = answer(lines::BAD_CHUNK, quiet);
            return (Step::Admin { used, admin }, None);
        }
        Body::Refused { left } => return swallow(left, lines::NO_MEMORY_STORING),
        Body::Short { need } => return (Step::need(need), None),
    };
    let admin = match (words.at(2) == NAME, Cluster::parse(text)) {
        (false, _) => answer(lines::UNKNOWN_CONFIG, quiet),
        (true, None) => answer(lines::BAD_CLUSTER, quiet),
        (true, Some(cluster)) => Admin::ClusterSet { cluster, quiet },
    };
    (Step::Admin { used, admin }, None)
}

/// A line for a client that may change the configuration.
fn answer<'a>(line: &'static str, quiet: bool) -> Admin<'a> {
    Admin::Answer {
        command: AdminCommand::Config,
        line,
        quiet,
    }
}
