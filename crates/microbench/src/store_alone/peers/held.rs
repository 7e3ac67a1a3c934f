//! How a table stores keys and values: as arrays of a length known at compile time, inside the
//! table, or as separately allocated bytes of any length, as a cache of byte strings must.

use std::{borrow::Borrow, hash::Hash, sync::Arc};

/// A key or a value of `N` bytes as a table stores it.
pub trait Held<const N: usize>: Clone + Send + Sync + 'static {
    /// Whether creating one allocates. Tables that can overwrite the present one instead.
    const ALLOCATES: bool;

    /// Stores these bytes.
    fn hold(bytes: [u8; N]) -> Self;

    /// The stored bytes. Bytes of a different length are not one of our values, and count as wrong.
    fn bytes(&self) -> [u8; N];

    /// Overwrites the stored bytes.
    fn write(&mut self, bytes: [u8; N]);
}

/// A key, which a table also looks up.
pub trait HeldKey<const N: usize>:
    Held<N> + Eq + Hash + Borrow<<Self as HeldKey<N>>::Sought>
{
    /// The borrowed form used for lookups.
    type Sought: Eq + Hash + ?Sized;

    /// The bytes in the form used for lookups.
    fn sought(bytes: &[u8; N]) -> &Self::Sought;
}

impl<const N: usize> Held<N> for [u8; N] {
    const ALLOCATES: bool = false;

    #[inline(always)]
    fn hold(bytes: [u8; N]) -> Self {
        bytes
    }

    #[inline(always)]
    fn bytes(&self) -> [u8; N] {
        *self
    }

    #[inline(always)]
    fn write(&mut self, bytes: [u8; N]) {
        *self = bytes;
    }
}

impl<const N: usize> HeldKey<N> for [u8; N] {
    type Sought = [u8; N];

    #[inline(always)]
    fn sought(bytes: &[u8; N]) -> &[u8; N] {
        bytes
    }
}

impl<const N: usize> Held<N> for Box<[u8]> {
    const ALLOCATES: bool = true;

    #[inline(always)]
    fn hold(bytes: [u8; N]) -> Self {
        Box::new(bytes)
    }

    #[inline(always)]
    fn bytes(&self) -> [u8; N] {
        (**self).try_into().unwrap_or([0xFF; N])
    }

    #[inline(always)]
    fn write(&mut self, bytes: [u8; N]) {
        match <&mut [u8; N]>::try_from(&mut **self) {
            Ok(place) => *place = bytes,
            Err(_) => *self = Box::new(bytes),
        }
    }
}

impl<const N: usize> HeldKey<N> for Box<[u8]> {
    type Sought = [u8];

    #[inline(always)]
    fn sought(bytes: &[u8; N]) -> &[u8] {
        bytes
    }
}

/// For tables that return clones: cloning a `Box` would allocate at every read.
impl<const N: usize> Held<N> for Arc<[u8]> {
    const ALLOCATES: bool = true;

    #[inline(always)]
    fn hold(bytes: [u8; N]) -> Self {
        Arc::new(bytes)
    }

    #[inline(always)]
    fn bytes(&self) -> [u8; N] {
        (**self).try_into().unwrap_or([0xFF; N])
    }

    #[inline(always)]
    fn write(&mut self, bytes: [u8; N]) {
        *self = Arc::new(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_held_whatever_was_there() {
        let mut held: Box<[u8]> = Held::hold(*b"12345678");
        assert_eq!(Held::<8>::bytes(&held), *b"12345678");
        let place = held.as_ptr();
        held.write(*b"abcdefgh");
        assert_eq!((&*held, held.as_ptr()), (&b"abcdefgh"[..], place));
        held.write([7; 32]);
        assert_eq!(Held::<32>::bytes(&held), [7; 32]);
        assert_eq!(Held::<8>::bytes(&held), [0xFF; 8], "of another length");

        let mut shared: Arc<[u8]> = Held::hold([1; 16]);
        let read = shared.clone();
        shared.write([2; 16]);
        assert_eq!(Held::<16>::bytes(&read), [1; 16]);
        assert_eq!(Held::<16>::bytes(&shared), [2; 16]);
    }
}
