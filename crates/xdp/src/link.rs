//! Ties programs to an interface, and says why that is not possible.

use crate::error::Error;
use glimmer_transport::xdp::{Link, LinkPoint};
use std::io;
use std::os::fd::BorrowedFd;

/// Ties a program to an interface.
///
/// # Errors
///
/// Why that is not possible. Another program is never replaced.
pub fn tie(program: BorrowedFd<'_>, ifindex: u32, at: LinkPoint) -> Result<Link, Error> {
    Link::create(program, ifindex, at).map_err(|error| refusal(at, error))
}

fn refusal(at: LinkPoint, error: io::Error) -> Error {
    match (at, error.raw_os_error()) {
        (_, Some(libc::ENODEV)) => Error::NoInterface,
        (LinkPoint::XdpDriver, Some(libc::EOPNOTSUPP)) => Error::NoDriverSupport,
        (LinkPoint::XdpDriver | LinkPoint::XdpGeneric, Some(libc::EBUSY | libc::EEXIST)) => {
            Error::OtherProgram
        }
        _ => Error::from_call("attaching the program", error),
    }
}
