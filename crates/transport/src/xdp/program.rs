//! The XDP program that redirects our datagrams to our sockets, and what ties it to an interface.
//!
//! The program is `accel/xdp/redirect.h`. It has two maps: `routes`, from an address and port to
//! numbers of sockets, and `sockets`. The kernel takes a link away when its last descriptor is
//! closed, so nothing is left at the interface when the process ends, however it ends.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd};

use aya::maps::{HashMap, MapData, MapError, XskMap};
use aya::programs::{ProgramError, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader};
use glimmer_base::limits::{XDP_ROUTES_MAX, XDP_SOCKETS_MAX};

use super::link::{Link, LinkPoint};
use crate::address::ip_octets;

/// The compiled program, aligned as the structures of an ELF file are.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../program.o");

const PROGRAM: &str = "glimmer_redirect";

/// What the redirection is told: `struct redirection`.
pub type Settings = [u8; 16];
/// `struct route_key`.
type Key = [u8; 24];
/// `struct route`.
type Route = [u32; 4];

/// Where in a packet's way the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// In the driver.
    Driver,
    /// In the kernel's receive path, for drivers without XDP.
    Generic,
}

/// The settings of a redirection that is on, for an interface with this hardware address, which
/// takes frames up to this length.
pub fn settings(hook: Hook, mac: [u8; 6], frame_bytes_max: u32) -> Settings {
    let mut settings: Settings = [0; 16];
    settings[..6].copy_from_slice(&mac);
    settings[6] = 1;
    settings[8..12].copy_from_slice(&frame_bytes_max.to_ne_bytes());
    // In the generic mode such a frame may be several datagrams, which the kernel takes apart.
    settings[12] = u8::from(hook == Hook::Generic);
    settings
}

/// Prepares a loader of the object for a redirection with these settings.
pub fn prepare<'a>(loader: &mut EbpfLoader<'a>, settings: &'a Settings) {
    loader
        .override_global("redirection", settings, true)
        .map_max_entries("routes", XDP_ROUTES_MAX)
        .map_max_entries("sockets", XDP_SOCKETS_MAX);
}

/// The numbers of sockets. Devices that come and go have as many sockets each.
#[derive(Debug, Default)]
struct Numbers {
    /// The first that was never given.
    next: u32,
    /// Those that were given back: the first, and how many follow one another.
    free: Vec<(u32, u32)>,
}

impl Numbers {
    fn reserve(&mut self, count: u32) -> Option<u32> {
        if let Some(found) = self.free.iter().position(|&(_, free)| free == count) {
            return Some(self.free.swap_remove(found).0);
        }
        let first = self.next;
        let is_room = count <= XDP_SOCKETS_MAX - first;
        is_room.then(|| {
            self.next += count;
            first
        })
    }

    fn release(&mut self, first: u32, count: u32) {
        if count > 0 {
            self.free.push((first, count));
        }
    }
}

/// The maps of a program that redirects.
pub struct Program {
    routes: HashMap<MapData, Key, Route>,
    sockets: XskMap<MapData>,
    numbers: Numbers,
    /// What ties the program to the interface, and keeps it, unless it is somebody else's.
    _link: Option<Link>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({} sockets)", self.numbers.next)
    }
}

impl Program {
    /// The maps of an object that was loaded for a redirection. Its program is tied to the
    /// interface by the caller.
    ///
    /// # Errors
    ///
    /// If the object has no such maps.
    pub fn of(ebpf: &mut Ebpf) -> Result<Program, AttachError> {
        let mut map = |name| ebpf.take_map(name).expect("the object has the map");
        let (routes, sockets) = (map("routes"), map("sockets"));
        Ok(Program {
            routes: routes.try_into()?,
            sockets: sockets.try_into()?,
            numbers: Numbers::default(),
            _link: None,
        })
    }

    /// Loads the program and attaches it to an interface. It redirects nothing yet.
    ///
    /// # Errors
    ///
    /// Why that is not possible. Another program is never replaced.
    pub fn attach(
        interface: u32,
        hook: Hook,
        mac: [u8; 6],
        frame_bytes_max: u32,
    ) -> Result<Program, AttachError> {
        let settings = settings(hook, mac, frame_bytes_max);
        let mut loader = EbpfLoader::new();
        prepare(&mut loader, &settings);
        let mut ebpf = loader.load(OBJECT)?;
        let program = ebpf
            .program_mut(PROGRAM)
            .expect("the object has the program");
        let program: &mut Xdp = program.try_into()?;
        program.load()?;
        let at = match hook {
            Hook::Driver => LinkPoint::XdpDriver,
            Hook::Generic => LinkPoint::XdpGeneric,
        };
        let link = Link::create(program.fd()?.as_fd(), interface, at)?;
        Ok(Program {
            _link: Some(link),
            ..Program::of(&mut ebpf)?
        })
    }

    /// Numbers for this many sockets, one after the other.
    pub fn reserve(&mut self, sockets: u32) -> io::Result<u32> {
        self.numbers.reserve(sockets).ok_or_else(|| {
            io::Error::other(format!(
                "there would be more than {XDP_SOCKETS_MAX} sockets at the interface: take fewer \
                 queues, as in xdp:IF:1, or fewer threads or connections"
            ))
        })
    }

    /// Gives back the numbers of sockets to which nothing is redirected any more.
    pub fn release(&mut self, first: u32, sockets: u32) {
        self.numbers.release(first, sockets);
    }

    /// Gives a number to a socket.
    pub fn set_socket(&mut self, number: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.sockets
            .set(number, socket.as_raw_fd(), 0)
            .map_err(io::Error::other)
    }

    /// Redirects what arrives for an address: from each of the first `queues` queues to one of
    /// `spread` sockets, which are numbered from `first` on.
    pub fn add_route(
        &mut self,
        address: SocketAddr,
        (first, queues, spread): (u32, u32, u32),
    ) -> io::Result<()> {
        let route = [first, queues, spread, 0];
        self.routes
            .insert(key(address), route, 0)
            .map_err(io::Error::other)
    }

    /// Leaves what arrives for an address to the kernel again.
    pub fn remove_route(&mut self, address: SocketAddr) {
        let _ = self.routes.remove(&key(address));
    }
}

fn key(address: SocketAddr) -> Key {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&ip_octets(&address));
    key[16..18].copy_from_slice(&address.port().to_be_bytes());
    key
}

/// Why the program is not at the interface.
#[derive(Debug)]
pub enum AttachError {
    /// The process may not load or attach programs.
    NoRights,
    /// The interface has another XDP program.
    Taken,
    /// The driver has no XDP.
    NoDriverSupport,
    /// Something else.
    Other(io::Error),
}

impl From<io::Error> for AttachError {
    fn from(error: io::Error) -> AttachError {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => AttachError::NoRights,
            Some(libc::EBUSY | libc::EEXIST) => AttachError::Taken,
            Some(libc::EOPNOTSUPP) => AttachError::NoDriverSupport,
            _ => AttachError::Other(error),
        }
    }
}

impl From<EbpfError> for AttachError {
    fn from(error: EbpfError) -> AttachError {
        match error {
            EbpfError::MapError(error) => error.into(),
            EbpfError::ProgramError(error) => error.into(),
            other => AttachError::Other(io::Error::other(other)),
        }
    }
}

impl From<MapError> for AttachError {
    fn from(error: MapError) -> AttachError {
        match error {
            MapError::CreateError { io_error, .. } => io_error.into(),
            MapError::SyscallError(error) => error.io_error.into(),
            other => AttachError::Other(io::Error::other(other)),
        }
    }
}

impl From<ProgramError> for AttachError {
    fn from(error: ProgramError) -> AttachError {
        match error {
            ProgramError::LoadError { io_error, .. } => io_error.into(),
            ProgramError::SyscallError(error) => error.io_error.into(),
            other => AttachError::Other(io::Error::other(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_come_and_go_never_run_out_of_numbers() {
        let mut numbers = Numbers::default();
        let kept = numbers.reserve(3).unwrap();
        for _ in 0..XDP_SOCKETS_MAX {
            let [one, other] = [2, 3].map(|count| numbers.reserve(count).unwrap());
            assert!(one != kept && other != kept && one.abs_diff(other) >= 2);
            numbers.release(one, 2);
            numbers.release(other, 3);
        }
        assert_eq!(numbers.reserve(XDP_SOCKETS_MAX), None);
        assert_eq!(numbers.reserve(XDP_SOCKETS_MAX - 8), Some(8));
        assert_eq!((numbers.reserve(1), numbers.reserve(0)), (None, Some(4096)));
    }
}
