//! Address validation tokens, as in QUIC. Without one, a reply is never longer than its request, so
//! that an attacker cannot make the server flood a third party (amplification), and the server
//! keeps no memory for the client.

use glimmer_base::limits::NATIVE_TOKEN_S;
use glimmer_transport::address::ip_octets;
use siphasher::sip::SipHasher24;
use std::fmt;
use std::hash::Hasher;
use std::net::SocketAddr;

/// The server's key for tokens. Tokens cannot be made without it.
#[derive(Clone, Copy)]
pub struct TokenKey(pub [u64; 2]);

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}

impl TokenKey {
    /// The token of an address at a given time: a keyed hash of the address and the hour, so that
    /// the server need not store it. The port is not included, because a NAT may change it between
    /// two ports of the server.
    pub fn token(&self, peer: &SocketAddr, now_ms: u64) -> u64 {
        self.of_period(peer, period(now_ms))
    }

    /// Whether the token belongs to the address and was issued in this period or the previous one.
    pub fn admits(&self, peer: &SocketAddr, token: u64, now_ms: u64) -> bool {
        let now = period(now_ms);
        token == self.of_period(peer, now) || token == self.of_period(peer, now.wrapping_sub(1))
    }

    fn of_period(&self, peer: &SocketAddr, period: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        hasher.write(&ip_octets(peer));
        hasher.write_u64(period);
        // Zero stands for no token.
        hasher.finish().max(1)
    }
}

fn period(now_ms: u64) -> u64 {
    now_ms / 1000 / u64::from(NATIVE_TOKEN_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_address_and_its_time() {
        let token_key = TokenKey([1, 2]);
        let peer = |address: &str| address.parse::<SocketAddr>().unwrap();
        let (here, there) = (peer("127.0.0.1:1000"), peer("127.0.0.2:1000"));
        let period_ms = u64::from(NATIVE_TOKEN_S) * 1000;
        let given_ms = 5 * period_ms + 7;
        let token = token_key.token(&here, given_ms);
        for later_ms in [0, 1, period_ms] {
            assert!(token_key.admits(&here, token, given_ms + later_ms));
        }
        assert!(!token_key.admits(&here, token, given_ms + 2 * period_ms));
        assert!(token_key.admits(&peer("127.0.0.1:1001"), token, given_ms));
        assert!(!token_key.admits(&there, token, given_ms));
        assert!(!token_key.admits(&here, 0, given_ms));
        assert!(!TokenKey([1, 3]).admits(&here, token, given_ms));
    }
}
