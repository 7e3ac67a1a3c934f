//! Addresses as the kernel writes them, to and from plain values.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// An address of either family, as long as the longer one.
#[derive(Clone, Copy)]
#[repr(C)]
pub union Name {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

/// Bytes of a name that the kernel is to write.
pub const NAME_BYTES: libc::socklen_t = size_of::<Name>() as libc::socklen_t;

impl Name {
    /// An address in the kernel's form, and how many of its bytes count.
    #[inline]
    pub fn of(address: SocketAddr) -> (Name, libc::socklen_t) {
        match address {
            SocketAddr::V4(address) => {
                let v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(address.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                let bytes = size_of::<libc::sockaddr_in>() as libc::socklen_t;
                (Name { v4 }, bytes)
            }
            SocketAddr::V6(address) => {
                let v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr {
                        s6_addr: address.ip().octets(),
                    },
                    sin6_scope_id: address.scope_id(),
                };
                (Name { v6 }, NAME_BYTES)
            }
        }
    }
}

/// The address that the kernel wrote; an unspecified one if it wrote none.
///
/// # Safety
///
/// The kernel wrote the first `bytes` bytes of the name.
#[inline]
pub unsafe fn address(name: &MaybeUninit<Name>, bytes: libc::socklen_t) -> SocketAddr {
    let bytes = bytes as usize;
    if bytes < size_of::<libc::sockaddr_in>() {
        return unspecified();
    }
    // SAFETY: both forms begin with the family, and as the caller promises the bytes of the shorter
    // form are initialised; it has no padding.
    let v4 = unsafe { name.assume_init_ref().v4 };
    match libc::c_int::from(v4.sin_family) {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into()
        }
        libc::AF_INET6 if bytes >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as the caller promises, the bytes of the longer form are initialised.
            let v6 = unsafe { name.assume_init_ref().v6 };
            let (ip, port) = (v6.sin6_addr.s6_addr.into(), u16::from_be(v6.sin6_port));
            SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into()
        }
        _ => unspecified(),
    }
}

/// What stands for no address.
pub fn unspecified() -> SocketAddr {
    SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_the_kernels_form() {
        for address in [
            "10.1.2.3:513",
            "[2001:db8::1]:513",
            "[fe80::1%7]:9",
            "0.0.0.0:0",
        ] {
            let address: SocketAddr = address.parse().unwrap();
            let (name, bytes) = Name::of(address);
            // SAFETY: the name was written as far as its length says.
            let read = unsafe { super::address(&MaybeUninit::new(name), bytes) };
            assert_eq!(read, address);
        }
    }

    #[test]
    fn a_name_that_the_kernel_did_not_write_is_unspecified() {
        // SAFETY: no byte counts.
        let read = unsafe { address(&MaybeUninit::uninit(), 0) };
        assert_eq!(read, unspecified());
    }
}
