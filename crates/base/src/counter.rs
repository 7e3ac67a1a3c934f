//! A number that one thread at a time changes and any thread reads.

use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// A number with one writer at a time: a change is a plain load and a plain store.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The current number.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Replaces the number.
    #[inline(always)]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Adds to the number, wrapping on overflow.
    #[inline(always)]
    pub fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }

    /// Subtracts from the number, wrapping on overflow.
    #[inline(always)]
    pub fn sub(&self, less: u64) {
        self.set(self.get().wrapping_sub(less));
    }
}

/// Declares two structs with the same fields: one of plain numbers, and one of [`Counter`]s that is
/// copied into the plain one.
#[macro_export]
macro_rules! counters {
    (
        $(#[$plain_doc:meta])* $plain:ident from $(#[$live_doc:meta])* $live:ident {
            $($(#[$doc:meta])* $name:ident),+ $(,)?
        }
    ) => {
        $(#[$plain_doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $plain {
            $($(#[$doc])* pub $name: u64,)+
        }

        $(#[$live_doc])*
        #[derive(Default)]
        pub struct $live {
            $($(#[$doc])* pub $name: $crate::counter::Counter,)+
        }

        impl $live {
            /// A copy of all counters.
            pub fn counts(&self) -> $plain {
                $plain { $($name: self.$name.get(),)+ }
            }

            /// Sets all counters to zero.
            pub fn clear(&self) {
                $(self.$name.set(0);)+
            }
        }

        impl ::core::ops::AddAssign for $plain {
            fn add_assign(&mut self, other: Self) {
                $(self.$name = self.$name.wrapping_add(other.$name);)+
            }
        }
    };
}
