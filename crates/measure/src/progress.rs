//! How far a comparison is, for whoever watches.

/// Told what happens, by whichever thread does it.
pub trait Progress: Sync {
    /// So many more steps are coming.
    fn expect(&self, steps: usize);
    /// A step is done.
    fn step(&self, what: &str);
    /// Something that takes a while and is no step begins.
    fn say(&self, what: &str);
}
