//! Users and addresses: what they may do, and how much of it.
//!
//! | file | idea |
//! | --- | --- |
//! | `bucket` | a token bucket |
//! | `meter` | the account of one user or address, and its limits |
//! | `addresses` | the accounts of addresses |
//!
//! A worker looks at these only for connections that are *metered*: those of users whose rights are
//! named, and those from addresses while these are limited. Where nothing is limited, no connection
//! is.

pub(crate) mod addresses;
mod bucket;
pub(crate) mod meter;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use glimmer_base::limits::USER_SLOTS_MAX;
use glimmer_base::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use glimmer_proto::Rules;

use addresses::{Addresses, Admission};
use meter::{Meter, Quotas, Usage};

/// A user as the server's operator names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRules {
    /// The name.
    pub name: Box<[u8]>,
    /// What the user may do.
    pub rules: Rules,
    /// How much of it.
    pub quotas: Quotas,
}

/// A user as statistics show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserView {
    /// The user.
    pub user: UserRules,
    /// What it has asked for.
    pub usage: Usage,
}

/// A user while the server runs.
#[derive(Debug)]
pub(crate) struct Tenant {
    user: UserRules,
    pub meter: Arc<Meter>,
    /// It is in the file no longer, and has no rights.
    pub is_gone: bool,
}

impl Tenant {
    /// What the user may do.
    pub fn rules(&self) -> &Rules {
        &self.user.rules
    }
}

/// All users, by their numbers from 1 on.
pub(crate) type Users = Arc<[Arc<Tenant>]>;

/// Users and addresses, which the server names and limits, and which workers look at.
#[derive(Debug, Default)]
pub struct Tenants {
    users: Mutex<Option<Users>>,
    /// The number of changes of users and of address limits. A reader that loads a version and
    /// then takes the lock sees the change of that version, or a later one.
    version: AtomicU64,
    addresses: Addresses,
}

/// As many users of the past are still connected as there are slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyUsers;

impl Tenants {
    /// The users from now on, in place of those before. A user of the same name keeps its account
    /// and its connections, unless it was gone in between: then its connections of before may do
    /// nothing, and are closed when they try. Returns the number of each, by which it logs in.
    ///
    /// # Errors
    ///
    /// There are no slots left. The users before stay.
    pub fn set_users(&self, users: &[UserRules]) -> Result<Vec<u16>, TooManyUsers> {
        let mut held = lock(&self.users);
        let mut slots = held.as_ref().map_or_else(Vec::new, |users| users.to_vec());
        let by_name: HashMap<Box<[u8]>, usize> = {
            let slots = slots.iter().enumerate().filter(|(_, slot)| !slot.is_gone);
            slots
                .map(|(index, slot)| (slot.user.name.clone(), index))
                .collect()
        };
        for slot in &mut slots {
            *slot = Arc::new(slot.gone());
        }
        let wanted: HashSet<&[u8]> = users.iter().map(|user| &*user.name).collect();
        let is_kept = |index: usize| {
            let name = &slots[index].user.name;
            wanted.contains(&**name) && by_name.get(name) == Some(&index)
        };
        let is_free = |&index: &usize| slots[index].meter.is_left() && !is_kept(index);
        let free: Vec<usize> = (0..slots.len()).filter(is_free).collect();
        let (mut free, mut numbers) = (free.into_iter(), Vec::with_capacity(users.len()));
        for user in users {
            let before = by_name.get(&user.name).copied();
            let meter = match before {
                Some(index) => slots[index].meter.clone(),
                None => Arc::new(Meter::new(next_id(), &user.quotas)),
            };
            let index = before.or_else(|| free.next()).unwrap_or(slots.len());
            if index >= USER_SLOTS_MAX {
                return Err(TooManyUsers);
            }
            let tenant = Arc::new(Tenant {
                user: user.clone(),
                meter,
                is_gone: false,
            });
            match slots.get_mut(index) {
                Some(slot) => *slot = tenant,
                None => slots.push(tenant),
            }
            numbers.push(index as u16 + 1);
        }
        for slot in &slots {
            slot.meter.limit(&slot.user.quotas);
        }
        *held = Some(slots.into());
        drop(held);
        self.version.fetch_add(1, Ordering::Release);
        Ok(numbers)
    }

    /// What each address may have from now on.
    pub fn limit_addresses(&self, quotas: Quotas) {
        self.addresses.limit(quotas);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// A connection logs in as the user of this number. Returns whether it may; then it is counted
    /// until it closes.
    pub fn enter(&self, number: u16) -> bool {
        self.user(number)
            .is_some_and(|user| user.meter.enter(false))
    }

    /// A connection of the user of this number closes.
    pub(crate) fn leave(&self, number: u16) {
        if let Some(user) = self.user(number) {
            user.meter.leave();
        }
    }

    fn user(&self, number: u16) -> Option<Arc<Tenant>> {
        let index = usize::from(number).checked_sub(1)?;
        lock(&self.users).as_ref()?.get(index).cloned()
    }

    /// A connection comes from an address; see [`Addresses::enter`].
    pub(crate) fn enter_from(&self, address: IpAddr, is_open: bool, now_ms: u64) -> Admission {
        self.addresses.enter(address, is_open, now_ms)
    }

    /// How often something has changed.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// All users, if there are any.
    pub(crate) fn users(&self) -> Option<Users> {
        lock(&self.users).clone()
    }

    /// The users that may log in, and what they have asked for.
    pub fn views(&self) -> Vec<UserView> {
        let users = self.users();
        let users = users.iter().flat_map(|users| users.iter());
        let users = users.filter(|tenant| !tenant.is_gone);
        let view = |tenant: &Arc<Tenant>| UserView {
            user: tenant.user.clone(),
            usage: tenant.meter.usage(),
        };
        users.map(view).collect()
    }

    /// What each address may have.
    pub fn address_quotas(&self) -> Quotas {
        self.addresses.quotas()
    }

    /// How many addresses are counted.
    pub fn addresses(&self) -> usize {
        self.addresses.len()
    }
}

impl Tenant {
    /// The user without a right, as one that is not named any more. Its limits stay.
    fn gone(&self) -> Tenant {
        Tenant {
            user: UserRules {
                rules: Rules::default(),
                ..self.user.clone()
            },
            meter: self.meter.clone(),
            is_gone: true,
        }
    }
}

/// The number of another account.
fn next_id() -> u64 {
    static ACCOUNTS: AtomicU64 = AtomicU64::new(0);
    ACCOUNTS.fetch_add(1, Ordering::Relaxed)
}

/// The users as one worker has seen them last.
#[derive(Default)]
pub(crate) struct Seen {
    version: u64,
    users: Option<Users>,
    /// No right.
    none: Rules,
}

impl Seen {
    /// Looks whether something has changed. Returns whether it has.
    #[inline]
    pub fn follow(&mut self, tenants: &Tenants) -> bool {
        let version = tenants.version();
        let has_changed = version != self.version;
        if has_changed {
            self.version = version;
            self.users = tenants.users();
        }
        has_changed
    }

    /// The user of this number.
    pub fn user(&self, number: u16) -> Option<&Tenant> {
        let index = usize::from(number).checked_sub(1)?;
        self.users.as_ref()?.get(index).map(Arc::as_ref)
    }

    /// What the user of this number may do; `None`: everything, as its rights are not named. One
    /// that has not been seen may do nothing.
    pub fn rules(&self, number: u16) -> Option<&Rules> {
        (number != 0).then(|| self.user(number).map_or(&self.none, Tenant::rules))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_proto::Rights;

    fn user(name: &str, rights: Rights) -> UserRules {
        UserRules {
            name: name.as_bytes().into(),
            rules: Rules {
                rights,
                prefix: Box::default(),
            },
            quotas: Quotas {
                connections: 2,
                ..Quotas::default()
            },
        }
    }

    #[test]
    fn users_keep_their_numbers_and_those_that_are_gone_may_do_nothing() {
        let (tenants, mut seen) = (Tenants::default(), Seen::default());
        assert!(!seen.follow(&tenants));
        let (a, b) = (user("a", Rights::ALL), user("b", Rights::GET));
        assert_eq!(tenants.set_users(&[a.clone(), b.clone()]), Ok(vec![1, 2]));
        assert!(tenants.enter(1) && tenants.enter(1) && !tenants.enter(1));
        assert!(seen.follow(&tenants) && !seen.follow(&tenants));
        assert_eq!(seen.user(2).unwrap().rules().rights, Rights::GET);
        assert!(seen.user(0).is_none() && seen.user(3).is_none());

        // The first is gone, and is connected; another user does not take its place.
        assert_eq!(
            tenants.set_users(&[user("c", Rights::SET), b]),
            Ok(vec![3, 2])
        );
        seen.follow(&tenants);
        assert_eq!(seen.user(1).unwrap().rules(), &Rules::default());
        assert_eq!(tenants.views().len(), 2);
        tenants.leave(1);
        tenants.leave(1);
        // Now one does; a user that is named again has its own.
        let (d, c) = (user("d", Rights::ALL), user("c", Rights::GET));
        assert_eq!(tenants.set_users(&[d, c]), Ok(vec![1, 3]));
        assert_eq!(tenants.set_users(std::slice::from_ref(&a)), Ok(vec![1]));
        let usage = tenants.views()[0].usage;
        assert_eq!((usage.connections, usage.connections_refused), (0, 0));
    }

    #[test]
    fn connections_of_a_user_that_was_gone_do_not_get_its_rights_back() {
        let (tenants, mut seen) = (Tenants::default(), Seen::default());
        let a = user("a", Rights::ALL);
        assert_eq!(tenants.set_users(std::slice::from_ref(&a)), Ok(vec![1]));
        assert!(tenants.enter(1));
        assert_eq!(tenants.set_users(&[]), Ok(Vec::new()));
        assert_eq!(tenants.set_users(&[a]), Ok(vec![2]));
        seen.follow(&tenants);
        assert_eq!(seen.user(1).unwrap().rules(), &Rules::default());
        assert_eq!(seen.user(2).unwrap().rules().rights, Rights::ALL);
    }
}
