//! Whether workers look for something to do instead of sleeping.

use std::fmt;
use std::str::FromStr;

use glimmer_base::limits::BUSY_POLL_US_MAX;

/// Whether workers look for something to do instead of sleeping. It is written as `off`, `always`,
/// or a number of microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusyPoll {
    /// A worker without anything to do sleeps.
    #[default]
    Off,
    /// A worker that has received datagrams looks for further ones for so many microseconds before
    /// it sleeps. Where it can, the kernel looks at the NIC's queue in these calls.
    For(u32),
    /// Workers never sleep.
    Always,
}

impl BusyPoll {
    /// For how many nanoseconds a worker looks for datagrams before it sleeps.
    #[inline]
    pub(crate) fn ns(self) -> u64 {
        match self {
            BusyPoll::For(us) => u64::from(us) * 1000,
            BusyPoll::Off | BusyPoll::Always => 0,
        }
    }
}

impl fmt::Display for BusyPoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BusyPoll::Off => f.write_str("off"),
            BusyPoll::For(us) => write!(f, "{us}"),
            BusyPoll::Always => f.write_str("always"),
        }
    }
}

impl FromStr for BusyPoll {
    type Err = String;

    fn from_str(text: &str) -> Result<BusyPoll, String> {
        match text {
            "off" => Ok(BusyPoll::Off),
            "always" => Ok(BusyPoll::Always),
            _ => {
                let us = text
                    .parse()
                    .ok()
                    .filter(|us| (1..=BUSY_POLL_US_MAX).contains(us));
                us.map(BusyPoll::For).ok_or_else(|| {
                    format!("off, always, or a time from 1 to {BUSY_POLL_US_MAX} microseconds")
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        for busy_poll in [BusyPoll::Off, BusyPoll::For(50), BusyPoll::Always] {
            assert_eq!(busy_poll.to_string().parse(), Ok(busy_poll));
        }
        assert_eq!(BusyPoll::For(50).ns(), 50_000);
        for wrong in ["0", "-1", "1000001", "50us", "yes", ""] {
            assert!(wrong.parse::<BusyPoll>().is_err(), "{wrong}");
        }
    }
}
