//! The addresses that clients connect from, while they are limited.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use glimmer_base::limits::ADDRESSES_KEPT_MIN;
use glimmer_base::sync::{Arc, Mutex, lock};

use super::meter::{Meter, Quotas};

/// The accounts of addresses. Only connections that come take the lock.
#[derive(Debug, Default)]
pub(super) struct Addresses(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    quotas: Quotas,
    meters: HashMap<IpAddr, Arc<Meter>>,
    /// How many are kept before some are forgotten.
    kept_max: usize,
    /// Accounts so far.
    count: u64,
}

/// A connection's place among those of its address, which it gives up when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat(pub Arc<Meter>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Whether a connection may come.
pub(crate) enum Admission {
    /// It may, and nothing limits its address.
    Unlimited,
    /// It may.
    Seated(Seat),
    /// Its address has as many as it may.
    Full,
}

/// The address that another one counts as: a network of 64 bits is one client in IPv6.
fn account_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address => address,
    }
}

/// Numbers of accounts of addresses have this bit, and those of users do not.
const OF_ADDRESSES: u64 = 1 << 63;

impl Addresses {
    /// What each address may have from now on.
    pub fn limit(&self, quotas: Quotas) {
        let mut state = lock(&self.0);
        state.quotas = quotas;
        for meter in state.meters.values() {
            meter.limit(&quotas);
        }
    }

    /// What each address may have.
    pub fn quotas(&self) -> Quotas {
        lock(&self.0).quotas
    }

    /// A connection comes from an address. It is let in whatever the limit, if it `is_open`.
    pub fn enter(&self, address: IpAddr, is_open: bool, now_ms: u64) -> Admission {
        let mut state = lock(&self.0);
        if state.quotas.are_none() {
            return Admission::Unlimited;
        }
        let meter = state.meter(account_of(address), now_ms);
        match meter.enter(is_open) {
            true => Admission::Seated(Seat(meter)),
            false => Admission::Full,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        lock(&self.0).meters.len()
    }
}

impl State {
    fn meter(&mut self, account: IpAddr, now_ms: u64) -> Arc<Meter> {
        if let Some(meter) = self.meters.get(&account) {
            return meter.clone();
        }
        if self.meters.len() >= self.kept_max.max(ADDRESSES_KEPT_MIN) {
            let is_of_use = |meter: &Meter| !meter.is_left() || now_ms < meter.ready_ms();
            self.meters.retain(|_, meter| is_of_use(meter));
            self.kept_max = 2 * self.meters.len();
        }
        self.count += 1;
        let meter = Arc::new(Meter::new(self.count | OF_ADDRESSES, &self.quotas));
        self.meters.insert(account, meter.clone());
        meter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Quotas = Quotas {
        connections: 2,
        requests: 10,
        bytes: 0,
    };

    #[test]
    fn addresses_have_as_many_connections_as_they_may() {
        let addresses = Addresses::default();
        let from = |text: &str| addresses.enter(text.parse().unwrap(), false, 0);
        assert!(matches!(from("10.0.0.1"), Admission::Unlimited));
        addresses.limit(TWO);
        let first = from("10.0.0.1");
        let second = from("::ffff:10.0.0.1");
        assert!(matches!(second, Admission::Seated(_)));
        assert!(matches!(from("10.0.0.1"), Admission::Full));
        assert!(matches!(from("10.0.0.2"), Admission::Seated(_)));
        drop(first);
        let third = from("10.0.0.1");
        assert!(matches!(third, Admission::Seated(_)));
        // One that was open before counts, and its place is free when it has gone.
        let open = addresses.enter("10.0.0.1".parse().unwrap(), true, 0);
        assert!(matches!(from("10.0.0.1"), Admission::Full));
        drop((second, third, open));
        let again = (from("10.0.0.1"), from("10.0.0.1"));
        assert!(matches!(again.1, Admission::Seated(_)));
        assert!(matches!(from("10.0.0.1"), Admission::Full));
        // One network of IPv6 is one client.
        let _held = (from("2001:db8::1"), from("2001:db8::2:0:0:1"));
        assert!(matches!(from("2001:db8::3"), Admission::Full));
        assert!(matches!(from("2001:db8:0:1::3"), Admission::Seated(_)));
    }

    #[test]
    fn those_without_connections_are_forgotten_unless_they_owe() {
        let addresses = Addresses::default();
        addresses.limit(TWO);
        let owing: IpAddr = "10.9.9.9".parse().unwrap();
        let Admission::Seated(seat) = addresses.enter(owing, false, 0) else {
            panic!("it may come");
        };
        seat.0.pay(10_000, 0, 0);
        drop(seat);
        for number in 0..10 * ADDRESSES_KEPT_MIN as u32 {
            drop(addresses.enter(IpAddr::V4(number.into()), false, 0));
        }
        assert!(addresses.len() <= ADDRESSES_KEPT_MIN);
        let Admission::Seated(seat) = addresses.enter(owing, false, 0) else {
            panic!("it may come");
        };
        assert!(
            seat.0.ready_ms() > 0,
            "it cannot leave its debts by coming again"
        );
    }
}
