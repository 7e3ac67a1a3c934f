//! A table in a memory file goes on where the last process ended: after it was closed ([`attach`]),
//! and after it was ended by force, between any two of its instructions ([`ended`], where the
//! processor can stop after each).

#![cfg(not(any(loom, miri)))]

mod attach;
#[cfg(target_arch = "x86_64")]
mod copy;
mod damage;
#[cfg(target_arch = "x86_64")]
mod ended;
#[cfg(target_arch = "x86_64")]
mod ending;
mod load;
#[cfg(target_arch = "x86_64")]
mod paths;
mod place;
#[cfg(target_arch = "x86_64")]
mod rare;
#[cfg(target_arch = "x86_64")]
mod watch;
