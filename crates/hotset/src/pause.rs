//! Why the accelerator answers nothing for a while.

/// A reason. Each has a bit of the control block, so that several hold at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Pause {
    /// Somebody watches requests, and has to be shown them all.
    Watched = 0,
    /// The server's clock was moved (`debugtime`), so deadlines do not hold.
    ClockMoved = 1,
    /// The server stops.
    Draining = 2,
    /// The operator said so.
    Operator = 3,
    /// A flush is due later, and the body knows no time.
    FlushPending = 4,
    /// The body has gone for good.
    DeviceLost = 5,
}

impl Pause {
    /// Every reason.
    pub const ALL: [Pause; 6] = [
        Pause::Watched,
        Pause::ClockMoved,
        Pause::Draining,
        Pause::Operator,
        Pause::FlushPending,
        Pause::DeviceLost,
    ];

    /// Its bit.
    pub fn bit(self) -> u64 {
        1 << self as u32
    }

    /// Its name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Pause::Watched => "watched",
            Pause::ClockMoved => "clock_moved",
            Pause::Draining => "draining",
            Pause::Operator => "operator",
            Pause::FlushPending => "flush_pending",
            Pause::DeviceLost => "device_lost",
        }
    }

    /// The reasons whose bits are set.
    pub fn among(bits: u64) -> impl Iterator<Item = Pause> {
        let is_set = move |reason: &Pause| bits & reason.bit() != 0;
        Pause::ALL.into_iter().filter(is_set)
    }
}
