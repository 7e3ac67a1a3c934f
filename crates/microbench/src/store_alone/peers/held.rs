//! How a table holds keys and values: as arrays of a length that is known when the table is
//! compiled, inside the table, or as bytes of any length that lie elsewhere, as users who keep byte
//! strings has to.

use std::{borrow::Borrow, hash::Hash, sync::Arc};

/// A key or a value of `N` bytes as a table holds it.
pub trait Held<const N: usize>: Clone + Send + Sync + 'static {
    /// Whether making one allocates. Tables that can rather write over the one that they hold.
    const ALLOCATES: bool;

    /// Holds these bytes.
    fn hold(bytes: [u8; N]) -> Self;

    /// What is held. Bytes of another length are no value of ours, and count as wrong.
    fn bytes(&self) -> [u8; N];

    /// Holds these bytes instead.
    fn write(&mut self, bytes: [u8; N]);
}

/// A key, which a table also looks up.
pub trait HeldKey<const N: usize>:
    Held<N> + Eq + Hash + Borrow<<Self as HeldKey<N>>::Sought>
{
    /// What it is looked up by, without being made.
    type Sought: Eq + Hash + ?Sized;

    /// The bytes as what is looked up.
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

/// For tables that hand out clones: of a `Box` they would allocate at every read.
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
