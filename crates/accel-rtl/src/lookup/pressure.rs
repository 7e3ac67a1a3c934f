//! Back-pressure on the ports.

/// How often each port is not ready, or has nothing to offer, in a cycle.
#[derive(Clone, Copy, Debug)]
pub struct Pressure {
    /// Lengths and bytes of keys.
    pub request: f64,
    /// Lengths of replies.
    pub reply_length: f64,
    /// Bytes of replies.
    pub reply_bytes: f64,
    /// The results of operations.
    pub result: f64,
    /// Lines to the memory.
    pub memory: f64,
}

impl Pressure {
    /// None at all.
    pub const NONE: Pressure = Pressure::of(0.0);

    /// The same on every port.
    pub const fn of(share: f64) -> Pressure {
        Pressure {
            request: share,
            reply_length: share,
            reply_bytes: share,
            result: share,
            memory: share,
        }
    }
}
