//! Creates and frees clients.

use crate::call::{argument, failed, internal, slice, tell, text};
use crate::{Client, Outcome, Settings, settings};
use glimmer_client as native;
use native::boundary::{Guarded, guard};
use std::ffi::c_char;

/// One of several servers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its host as a NUL-terminated string, spelled as other clients spell it.
    pub host: *const c_char,
    /// Its TCP port. Keys are placed by host and TCP port.
    pub port: u16,
    /// Its first native port.
    pub native_port: u16,
    /// Its share of the keys relative to the other servers.
    pub weight: u32,
}

/// How keys are placed among several servers. Functions take it as a number, because C accepts any.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// libmemcached's MEMCACHED_BEHAVIOR_KETAMA.
    Ketama = 0,
    /// libmemcached's MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED.
    KetamaWeighted = 1,
    /// Rendezvous hashing.
    Rendezvous = 2,
}

impl Placement {
    fn of(number: u32) -> Result<native::Placement, Outcome> {
        let all = [
            (Placement::Ketama, native::Placement::Ketama),
            (Placement::KetamaWeighted, native::Placement::KetamaWeighted),
            (Placement::Rendezvous, native::Placement::Rendezvous),
        ];
        let placement = all.into_iter().find(|&(known, _)| known as u32 == number);
        placement
            .map(|(_, placement)| placement)
            .ok_or_else(|| argument("no glimmer_placement has this number"))
    }
}

/// Connects to a server, given by the name or address of its host (NUL-terminated) and its native
/// port. `settings` may be null for the defaults. On failure it returns null, writes the reason to
/// `outcome` unless that is null, and stores a message for glimmer_message.
///
/// # Safety
///
/// `host` is null or a NUL-terminated string; `settings` is null or points at settings; `outcome`
/// is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_connect(
    host: *const c_char,
    native_port: u16,
    settings: *const Settings,
    outcome: *mut Outcome,
) -> *mut Client {
    let connect = || {
        // SAFETY: the caller guarantees it.
        let (host, settings) = unsafe { (text(host)?, settings::of(settings)) };
        let member = native::Member::of(host, native_port);
        native::Client::connect_to_all(&[member], native::Placement::Rendezvous, settings)
            .map_err(failed)
    };
    // SAFETY: the caller guarantees it.
    unsafe { hand_out(connect, outcome) }
}

/// Connects to several servers. `placement` is a glimmer_placement that says how keys are placed
/// among them. Returns null if no server answers; see glimmer_connect.
///
/// # Safety
///
/// `members` points at `count` members, whose hosts are null or NUL-terminated strings; `settings`
/// is null or points at settings; `outcome` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_connect_to_all(
    members: *const Member,
    count: usize,
    placement: u32,
    settings: *const Settings,
    outcome: *mut Outcome,
) -> *mut Client {
    let connect = || {
        // SAFETY: the caller guarantees it.
        let (members, settings) = unsafe { (slice(members, count)?, settings::of(settings)) };
        let members = members.iter().map(|member| {
            // SAFETY: the caller guarantees it.
            let host = unsafe { text(member.host) }?;
            Ok(native::Member {
                host: host.to_owned(),
                port: member.port,
                native_port: member.native_port,
                weight: member.weight,
            })
        });
        let members = members.collect::<Result<Vec<_>, Outcome>>()?;
        let placement = Placement::of(placement)?;
        native::Client::connect_to_all(&members, placement, settings).map_err(failed)
    };
    // SAFETY: the caller guarantees it.
    unsafe { hand_out(connect, outcome) }
}

/// Frees a client. Null is allowed.
///
/// # Safety
///
/// The client is null or comes from glimmer_connect or glimmer_connect_to_all, and is not used
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_free(client: *mut Client) {
    if !client.is_null() {
        // SAFETY: the caller guarantees that it is a box from this library.
        let client = unsafe { Box::from_raw(client) };
        let _ = guard(|| drop(client));
    }
}

/// # Safety
///
/// `told` is null or may be written to.
unsafe fn hand_out(
    connect: impl FnOnce() -> Result<native::Client, Outcome>,
    told: *mut Outcome,
) -> *mut Client {
    let connected = guard(connect).unwrap_or_else(|panicked| Err(internal(panicked)));
    let (client, outcome) = match connected {
        Ok(client) => {
            let client = Box::new(Client(Guarded::new(client)));
            (Box::into_raw(client), Outcome::Ok)
        }
        Err(outcome) => (std::ptr::null_mut(), outcome),
    };
    // SAFETY: the caller guarantees it.
    unsafe { tell(told, outcome) };
    client
}
