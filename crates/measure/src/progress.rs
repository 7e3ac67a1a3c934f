//! Reports the progress of a measurement to an observer.

/// Receives progress from the thread that measures.
pub trait Progress: Sync {
    /// This many more steps will follow.
    fn expect(&self, steps: usize);
    /// A step is done.
    fn step(&self, what: &str);
    /// Something long that is not a step begins.
    fn say(&self, what: &str);
}
