//! Limits of key prefixes, and of the groups that keys are of by them.

/// Groups of keys that were invalidated and whose items have not been swept since. While there are
/// as many, `flush_prefix` for another group is refused.
pub const GROUPS_MAX: usize = if cfg!(any(loom, miri)) { 4 } else { 1 << 10 };

/// Key prefixes whose items `stats prefix` counts while it walks over all items. When there are as
/// many, the smaller half is forgotten.
pub const PREFIXES_HELD_MAX: usize = 1 << 11;

/// Key prefixes whose requests are counted for `stats prefix`. When there are as many, those with
/// fewer requests are forgotten.
pub const PREFIXES_SAMPLED_MAX: usize = 1 << 10;

/// Key prefixes that `stats prefix` shows: those whose items take most memory.
pub const PREFIXES_SHOWN_MAX: usize = 1 << 8;

/// Key prefixes that `stats detail` counts. Further ones are not counted.
pub const PREFIXES_MAX: usize = 1 << 12;
