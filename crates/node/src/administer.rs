//! Commands that name no key. They are executed when everything before them on their connection has been answered.

use glimmer_base::{Expiry, Moment};
use glimmer_proto::text::{Admin, lines};

use crate::burst::{Stop, Tools};

/// Executes a command that names no key.
#[cold]
pub(crate) fn administer(admin: &Admin<'_>, out: &mut Vec<u8>, tools: &mut Tools<'_>) -> Stop {
    let mut say = |line: &str| out.extend_from_slice(line.as_bytes());
    match *admin {
        Admin::Version => say(lines::VERSION),
        Admin::MetaNoop => say(lines::META_NOOP),
        Admin::Verbosity { level, quiet } => {
            tools.frontdesk.verbosity(level);
            say(if quiet { "" } else { lines::OK });
        }
        Admin::FlushAll {
            delay_exptime,
            quiet,
        } => {
            tools.tally.cmd_flush += 1;
            let line = if tools.permits.flush {
                let at_ms = flush_ms(delay_exptime, tools.now);
                tools.engine.flush(tools.now, at_ms);
                lines::OK
            } else {
                lines::FLUSH_NOT_ALLOWED
            };
            say(if quiet { "" } else { line });
        }
        Admin::Stats(argument) => tools.frontdesk.stats(argument, tools.now, out),
        Admin::Quit => return Stop::Close,
        Admin::Shutdown(how) => {
            if tools.frontdesk.shutdown(how, out) {
                return Stop::Close;
            }
        }
    }
    Stop::Live
}

/// The moment that a `flush_all` names, in milliseconds since the epoch.
fn flush_ms(delay_exptime: i64, now: Moment) -> u64 {
    match Expiry::from_memcached(delay_exptime.max(0), now) {
        Expiry::NEVER if delay_exptime <= 0 => now.ms,
        Expiry::NEVER => u64::MAX,
        expiry => expiry.ms().max(now.ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_now_unless_it_says_later() {
        let now = Moment {
            ms: 10_000,
            epoch_unix_ms: 1_700_000_000_000,
        };
        assert_eq!(flush_ms(0, now), 10_000);
        assert_eq!(flush_ms(-5, now), 10_000);
        assert_eq!(flush_ms(5, now), 15_000);
        assert_eq!(flush_ms(1_600_000_000, now), 10_000);
        assert_eq!(flush_ms(1_700_000_060, now), 60_000);
        assert_eq!(flush_ms(i64::MAX, now), u64::MAX);
    }
}
