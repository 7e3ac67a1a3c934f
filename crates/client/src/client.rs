//! The blocking client.

mod call;
mod link;

use crate::answer::{Answer, Item};
use crate::error::{ConnectError, CountError, GetError, RemoveError, StoreError};
use crate::location::{Location, address_of};
use crate::operation::{self, Operation};
use crate::placement::{Choice, Member, Placement};
use crate::{Exptime, Settings};
use call::Call;
use glimmer_proto::StoreMode;
use glimmer_transport::packet::PacketTransport;
use glimmer_transport::transports;
use link::Links;
use std::fmt::Debug;
use std::io;
use std::net::ToSocketAddrs;
use std::sync::Arc;

/// A blocking client of one server, or of several servers among which keys are placed. Each call
/// sends its request and waits for the answer; [`Client::get_many`] sends many requests together.
///
/// After a fork, the parent and the child may both keep using it. The child fetches the servers'
/// directories again before its first request and is a new client to the servers. Past the kernel's
/// stack ([`Client::connect_over`]), requests of the child fail.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A server started with `glimmer serve --native-port 11300`.
/// let mut client = glimmer_client::Client::connect("127.0.0.1:11300")?;
/// client.put(b"greeting", b"hello", 0, 60)?;
/// assert_eq!(client.get(b"greeting")?.unwrap().value, b"hello");
/// # Ok(())
/// # }
/// ```
pub struct Client {
    links: Links,
    choice: Choice,
}

impl Client {
    /// Connects to a server: asks its native port for the directory. The address of a name is
    /// looked up once. [`Client::connect_to_all`] follows a server whose address may change, also
    /// with a single [`Member::of`].
    ///
    /// # Errors
    ///
    /// If the name has no address, no socket can be opened, nothing listens at the port, or no
    /// answer arrives in time.
    pub fn connect(server: impl ToSocketAddrs + Debug) -> Result<Client, ConnectError> {
        Client::connect_with(server, Settings::default())
    }

    /// Like [`Client::connect`], with explicit settings.
    ///
    /// # Errors
    ///
    /// As for [`Client::connect`].
    pub fn connect_with(
        server: impl ToSocketAddrs + Debug,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        Client::connect_over(transports::default(), server, settings)
    }

    /// Like [`Client::connect_with`], over another [transport](transports) than UDP sockets. Clone
    /// the transport for further clients of the process.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use glimmer_client::{Client, Settings, transports};
    ///
    /// let transport = transports::named("xdp:eth0")?;
    /// let mut client = Client::connect_over(transport, "10.0.0.1:11300", Settings::default())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Client::connect`], and if the transport cannot be used.
    pub fn connect_over(
        transport: Arc<dyn PacketTransport>,
        server: impl ToSocketAddrs + Debug,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        let server = address_of(server)?;
        let mut client = Client {
            links: Links::open(vec![Location::fixed(server)], transport, settings)?,
            choice: Choice::one(),
        };
        client.links.find(settings.deadline_us)?;
        Ok(client)
    }

    /// Connects to several servers. A server that does not answer now is tried again whenever one
    /// of its keys is requested. While it does not answer, its name is looked up again, at most
    /// once in [`Settings::retry_us`]: it may have been started elsewhere.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use glimmer_client::{Client, Member, Placement, Settings};
    ///
    /// let members = ["10.0.0.1", "10.0.0.2"].map(|host| Member::of(host, 11300));
    /// // The same placement as in pylibmc:
    /// // Client(["10.0.0.1", "10.0.0.2"], behaviors={"ketama": True})
    /// let mut client = Client::connect_to_all(&members, Placement::Ketama, Settings::default())?;
    /// client.put(b"greeting", b"hello", 0, 60)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the list is empty, a name has no address, no socket can be opened, or none of the servers
    /// answers.
    pub fn connect_to_all(
        members: &[Member],
        placement: Placement,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        Client::connect_to_all_over(transports::default(), members, placement, settings)
    }

    /// Like [`Client::connect_to_all`], over another [transport](transports) than UDP sockets.
    ///
    /// # Errors
    ///
    /// As for [`Client::connect_to_all`], and if the transport cannot be used.
    pub fn connect_to_all_over(
        transport: Arc<dyn PacketTransport>,
        members: &[Member],
        placement: Placement,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        let servers = members.iter().map(Location::find);
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        if servers.is_empty() {
            return Err(ConnectError::no_server());
        }
        let mut client = Client {
            links: Links::open(servers, transport, settings)?,
            choice: Choice::among(placement, members, settings.eject),
        };
        client.links.find(settings.deadline_us)?;
        Ok(client)
    }

    /// Reads an item. Returns `None` if there is no item.
    ///
    /// # Errors
    ///
    /// See [`GetError`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Item>, GetError> {
        self.call(key, &operation::get(false))
    }

    /// Reads an item together with its CAS unique.
    ///
    /// # Errors
    ///
    /// See [`GetError`].
    pub fn get_for_swap(&mut self, key: &[u8]) -> Result<Option<Item>, GetError> {
        self.call(key, &operation::get(true))
    }

    /// Reads many items with requests that are sent together. Returns one result per key, in the
    /// order of the keys. The call has one deadline: keys that have no answer by then are silent,
    /// also those that were still waiting for room on the way to their server.
    ///
    /// # Errors
    ///
    /// If the socket fails. An error that concerns one key is that key's result.
    pub fn get_many(&mut self, keys: &[&[u8]]) -> io::Result<Vec<Result<Option<Item>, GetError>>> {
        let get = operation::get(false);
        let answers = self.call_many(keys, &get)?;
        let found = answers.into_iter().map(|answer| get.understand(answer));
        Ok(found.collect())
    }

    /// Stores an item. A number as `expiry` follows memcached: 0 means never, up to 30 days counts
    /// seconds from now, and larger values are seconds since 1970. [`Exptime::ms`] counts
    /// milliseconds from now.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn put(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: impl Into<Exptime>,
    ) -> Result<(), StoreError> {
        let put = operation::store(StoreMode::Set, value, flags, expiry.into());
        self.call(key, &put).map(drop)
    }

    /// Stores an item only if the key has none. Returns whether it was stored.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn add(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: impl Into<Exptime>,
    ) -> Result<bool, StoreError> {
        let add = operation::store(StoreMode::Add, value, flags, expiry.into());
        self.call(key, &add)
    }

    /// Stores an item only if the key has one already. Returns whether it was stored.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn replace(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: impl Into<Exptime>,
    ) -> Result<bool, StoreError> {
        let replace = operation::store(StoreMode::Replace, value, flags, expiry.into());
        self.call(key, &replace)
    }

    /// Stores an item only if the current item has this CAS unique. Returns whether it was stored.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn compare_and_swap(
        &mut self,
        key: &[u8],
        cas: u64,
        value: &[u8],
        flags: u32,
        expiry: impl Into<Exptime>,
    ) -> Result<bool, StoreError> {
        let swap = operation::store(StoreMode::Cas(cas), value, flags, expiry.into());
        self.call(key, &swap)
    }

    /// Adds to a decimal number, wrapping at 2^64. Returns the new number, or `None` if there is no
    /// item.
    ///
    /// # Errors
    ///
    /// See [`CountError`].
    pub fn increment(&mut self, key: &[u8], delta: u64) -> Result<Option<u64>, CountError> {
        self.call(key, &operation::increment(delta))
    }

    /// Subtracts from a decimal number, stopping at zero. Returns the new number, or `None` if
    /// there is no item.
    ///
    /// # Errors
    ///
    /// See [`CountError`].
    pub fn decrement(&mut self, key: &[u8], delta: u64) -> Result<Option<u64>, CountError> {
        self.call(key, &operation::decrement(delta))
    }

    /// Deletes an item. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// See [`RemoveError`].
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, RemoveError> {
        self.call(key, &operation::delete())
    }

    /// Sets an item's expiry time; see [`Client::put`]. Returns whether there is an item.
    ///
    /// # Errors
    ///
    /// See [`RemoveError`].
    pub fn touch(&mut self, key: &[u8], expiry: impl Into<Exptime>) -> Result<bool, RemoveError> {
        self.call(key, &operation::touch(expiry.into()))
    }

    fn call<T, E: From<io::Error>>(
        &mut self,
        key: &[u8],
        operation: &Operation<'_, T, E>,
    ) -> Result<T, E> {
        let mut answers = self.call_many(&[key], operation)?;
        operation.understand(answers.pop().expect("one request has one answer"))
    }

    fn call_many<T, E>(
        &mut self,
        keys: &[&[u8]],
        operation: &Operation<'_, T, E>,
    ) -> io::Result<Vec<Answer>> {
        self.links.enter()?;
        let called = Call::new(keys, operation, &self.choice).run(&mut self.links);
        if called.is_err() {
            // Their answers are not for the next call.
            self.links.give_up(&mut |_, _| {});
        }
        called
    }
}

/// A client may move between threads; one thread at a time uses it.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Client>();
};
