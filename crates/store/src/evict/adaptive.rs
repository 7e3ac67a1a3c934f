//! Two logs under a setting that the [`Learner`](super::Learner) chooses.
//!
//! No fixed rule is good for everybody. Items that are written now and read once, a while later,
//! need FIFO, or they are gone by then. Popular items need a rule that lets new ones leave soon. Of
//! items of many sizes, the small ones give more hits for the bytes that they take. So the logs are
//! those of S3-FIFO, and what they do with new items, with used ones and with sizes are numbers: a
//! [`Setting`]. A fresh server begins with FIFO.

use super::setting::USES_MAX;
use super::{Rule, Setting, learner, s3fifo};

/// The setting that would have found the most of late.
pub const ADAPTIVE: Rule = Rule {
    name: "adaptive",
    summary: "begins as fifo, and goes over to what would have found more of the items that were \
              asked for of late: s3fifo, clock, or something between them; of items that are \
              read equally often, small ones stay longer",
    source: "Waldspurger et al., ATC 2017 (miniature simulations); Cherkasova 1998 (sizes)",
    learns: true,
    reads_counted: USES_MAX,
    setting: Setting {
        ghost_laps: 9,
        ..learner::SETTINGS[0].1
    },
    ..s3fifo::S3_FIFO
};
