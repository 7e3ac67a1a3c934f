//! How far a measurement is, for an observer.

/// Is told what happens, by the thread that does it.
pub trait Progress: Sync {
    /// This many more steps are coming.
    fn expect(&self, steps: usize);
    /// A step is done.
    fn step(&self, what: &str);
    /// Something that takes a while and is no step begins.
    fn say(&self, what: &str);
}
