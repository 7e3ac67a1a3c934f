//! Eviction rules for the circular logs of cache mode. A rule decides, and the table carries out.
//!
//! A rule is a value: one file here holds it, and [`RULES`] lists it in one line. Its name on the
//! command line and in `stats settings`, the tests of every table and the benchmarks follow from
//! that list.

mod budget;
mod learner;
mod pace;
mod probation;
mod setting;

pub use budget::{Budget, StepBudget};
pub(crate) use learner::Seen;
pub use learner::{Learned, Learner, Objective, SETTINGS};
pub use pace::Pace;
pub use probation::Probation;
pub use setting::{Setting, SizeLog};

use crate::index::LogId;
use std::fmt;
use std::str::FromStr;

/// Declares the modules of the rules, and the list of them.
macro_rules! rules {
    ($($module:ident::$rule:ident,)+) => {
        $(
            mod $module;
            pub use $module::$rule;
        )+

        /// Every rule, in the order in which they are shown.
        pub const RULES: &[Rule] = &[$($rule),+];
    };
}

rules! {
    adaptive::ADAPTIVE,
    fifo::FIFO,
    approx_lru::LRU,
    s3fifo::S3_FIFO,
    clock::CLOCK,
    two_q::TWO_Q,
}

/// The rule of a server that is not told which to take.
pub const DEFAULT: Rule = ADAPTIVE;

/// What happens to a live item that has reached the head of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtHead {
    /// It goes.
    Evict,
    /// It is put at the tail of a log, with this count of reads.
    Keep {
        /// The log to put it in.
        log: LogId,
        /// The count it starts with there.
        reads: u8,
    },
}

/// A live item that has reached the head of its log.
pub struct Arrival<'a> {
    /// The log.
    pub log: LogId,
    /// Reads of the item since it was put there, counted up to [`Rule::reads_counted`].
    pub reads: u8,
    /// The size of the item.
    pub words: u64,
    /// The setting in use.
    pub setting: Setting,
    /// A random number.
    pub draw: u32,
    /// Whether it loses a use if it goes round the main log again: see [`Probation`].
    pub ages: bool,
    /// Tells whether the main log can take the item without giving up a live one. Looking that up
    /// costs something, so a rule asks only where the answer matters.
    pub main_has_room: &'a mut dyn FnMut() -> bool,
}

/// A rule for which items stay.
#[derive(Clone, Copy)]
pub struct Rule {
    /// What the rule is called on the command line.
    pub name: &'static str,
    /// One line for people who choose a rule.
    pub summary: &'static str,
    /// Where the rule was published.
    pub source: &'static str,
    /// Reads are counted in the index entry up to this number. Zero leaves entries alone.
    pub reads_counted: u8,
    /// Percentage of a partition's log memory that goes to a small log in front of the main one.
    /// Zero for one log.
    pub small_log_percent: usize,
    /// What becomes of new items and of used ones where there is a small log. Of a rule that
    /// learns it is the first one, and has the longest memory.
    pub setting: Setting,
    /// Whether the setting follows the requests.
    pub learns: bool,
    /// A read by the writer puts the item back at the tail at once, unless the item lies in this
    /// share of the log next to the tail. None if reads move nothing.
    pub reinsertion_threshold: Option<f64>,
    /// Whether the head of the main log is held to a [`Pace`] where it spares items that were used.
    pub is_paced: bool,
    /// The fate of a live item at the head of a log.
    pub at_head: fn(Arrival<'_>) -> AtHead,
}

impl Rule {
    /// What most rules have in common: one log, and reads that move nothing.
    const ONE_LOG: Rule = Rule {
        name: "",
        summary: "",
        source: "",
        reads_counted: 0,
        small_log_percent: 0,
        setting: Setting::new(100, 1, true, 0),
        learns: false,
        reinsertion_threshold: None,
        is_paced: false,
        at_head: |_| AtHead::Evict,
    };

    /// The same rule with another threshold, from 0 (every read reinserts) to 1 (no read does), if
    /// the rule has a threshold at all.
    pub fn with_threshold(mut self, threshold: f64) -> Rule {
        if let Some(own) = &mut self.reinsertion_threshold {
            *own = threshold.clamp(0.0, 1.0);
        }
        self
    }

    /// Whether an item that the writer reads is put back at the tail at once. `distance` words lie
    /// between the item and the tail of its log, which is `len` words long.
    #[inline(always)]
    pub fn reinserts(&self, distance: impl FnOnce() -> u64, len: u64) -> bool {
        match self.reinsertion_threshold {
            None => false,
            Some(threshold) => distance() as f64 > threshold * len as f64,
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Rule {
    /// Names tell rules apart, and a rule's threshold tells its variants apart.
    fn eq(&self, other: &Rule) -> bool {
        self.name == other.name && self.reinsertion_threshold == other.reinsertion_threshold
    }
}

impl Eq for Rule {}

impl FromStr for Rule {
    type Err = String;

    /// The rule with this name, or the names that there are.
    fn from_str(name: &str) -> Result<Rule, String> {
        let known = RULES.iter().find(|rule| rule.name == name);
        let names = RULES.iter().map(|rule| rule.name);
        let unknown = || format!("one of {}", names.collect::<Vec<_>>().join(", "));
        known.copied().ok_or_else(unknown)
    }
}
