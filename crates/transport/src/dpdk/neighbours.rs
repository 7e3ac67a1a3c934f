//! Hardware addresses of hosts on the link that were asked for them.
//!
//! Replies leave to the hardware address that their request came from, so this is for what is sent
//! first, and for peers of which a device knows nothing any more.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use glimmer_base::limits::DPDK_NEIGHBOURS_MAX;

/// A host that has not answered is asked again after this time.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// A host that has answered is asked again after this time.
const STALE: Duration = Duration::from_secs(30);

/// What is known of a host.
#[derive(Clone, Copy, Debug)]
struct Known {
    mac: Option<[u8; 6]>,
    asked: Instant,
}

/// What there is to do about a host that is to be sent something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its hardware address, if that is known.
    pub mac: Option<[u8; 6]>,
    /// Whether it is to be asked for it now.
    pub is_to_be_asked: bool,
}

/// The neighbours.
#[derive(Debug, Default)]
pub struct Neighbours(HashMap<IpAddr, Known>);

impl Neighbours {
    /// What is known of a host, which the caller asks if that is said. `is_doubted`: it may have
    /// another hardware address by now.
    pub fn find(&mut self, ip: IpAddr, now: Instant, is_doubted: bool) -> Found {
        if let Some(known) = self.0.get_mut(&ip) {
            let is_sure = known.mac.is_some() && !is_doubted;
            let patience = if is_sure { STALE } else { ASK_AGAIN };
            let is_to_be_asked = now.duration_since(known.asked) >= patience;
            if is_to_be_asked {
                known.asked = now;
            }
            return Found {
                mac: known.mac,
                is_to_be_asked,
            };
        }
        if self.0.len() >= DPDK_NEIGHBOURS_MAX
            && let Some(any) = self.0.keys().next().copied()
        {
            self.0.remove(&any);
        }
        let known = Known {
            mac: None,
            asked: now,
        };
        self.0.insert(ip, known);
        Found {
            mac: None,
            is_to_be_asked: true,
        }
    }

    /// A host says what its hardware address is. That is believed of hosts that were asked.
    pub fn learn(&mut self, ip: IpAddr, mac: [u8; 6]) {
        if let Some(known) = self.0.get_mut(&ip) {
            known.mac = Some(mac);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_asked_until_it_answers_and_then_seldom() {
        let (mut all, start) = (Neighbours::default(), Instant::now());
        let ip: IpAddr = "10.0.0.2".parse().unwrap();
        let found = |mac, is_to_be_asked| Found {
            mac,
            is_to_be_asked,
        };
        assert_eq!(all.find(ip, start, false), found(None, true));
        assert_eq!(all.find(ip, start, false), found(None, false));
        let mut now = start + ASK_AGAIN;
        assert_eq!(all.find(ip, now, false), found(None, true));
        all.learn(ip, [1; 6]);
        now += ASK_AGAIN;
        assert_eq!(all.find(ip, now, false), found(Some([1; 6]), false));
        assert_eq!(all.find(ip, now, true), found(Some([1; 6]), true));
        assert_eq!(all.find(ip, now, true), found(Some([1; 6]), false));
        all.learn(ip, [2; 6]);
        now += STALE;
        assert_eq!(all.find(ip, now, false), found(Some([2; 6]), true));
    }

    #[test]
    fn who_was_not_asked_is_not_believed_and_the_table_is_bounded() {
        let (mut all, start) = (Neighbours::default(), Instant::now());
        all.learn("10.0.0.2".parse().unwrap(), [1; 6]);
        assert!(all.0.is_empty());
        for number in 0..2 * DPDK_NEIGHBOURS_MAX as u32 {
            all.find(IpAddr::V4(number.into()), start, false);
        }
        assert_eq!(all.0.len(), DPDK_NEIGHBOURS_MAX);
    }
}
