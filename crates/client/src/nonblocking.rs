//! A client for tasks on tokio. Any number of tasks share it; what they ask at about the same time leaves together.

mod driver;

use crate::answer::{Answer, Item};
use crate::error::{
    ConnectError, CountError, Failed, GetError, RemoveError, StoreError, none_known,
};
use crate::operation::{self, Operation};
use crate::placement::{Choice, Member, Placement};
use crate::session::FLIGHTS_MAX;
use crate::{Ask, Failure, Settings};
use driver::Server;
use glimmer_proto::StoreMode;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{ToSocketAddrs, lookup_host};

/// Keys of one call that are asked for at once: half of what a session takes on.
const KEYS_AT_ONCE: usize = FLIGHTS_MAX / 2;

/// A client of one server, or of several among which keys are placed. Its clones share its sockets. A task of the runtime that it was made on does the
/// sending and receiving, and ends with the last clone. Once the runtime has ended, requests fail as if their socket had (`GetError::Socket` and the like); while
/// nobody runs it, they wait. Who stops waiting for a change does not take it back.
///
/// It must not cross a fork, no more than a runtime may: each process makes its own.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use glimmer_client::nonblocking::Client;
///
/// let client = Client::connect("127.0.0.1:11300").await?;
/// client.put(b"greeting", b"hello", 0, 60).await?;
/// assert_eq!(client.get(b"greeting").await?.unwrap().value, b"hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    servers: Arc<[Server]>,
    choice: Arc<Choice>,
}

impl Client {
    /// As [`crate::Client::connect`].
    ///
    /// # Errors
    ///
    /// If the name has no address, there is no socket, or nobody answers.
    ///
    /// # Panics
    ///
    /// Outside a runtime of tokio's with I/O and time.
    pub async fn connect(server: impl ToSocketAddrs + Debug) -> Result<Client, ConnectError> {
        Client::connect_with(server, Settings::default()).await
    }

    /// [`Client::connect`] with settings of one's own.
    ///
    /// # Errors
    ///
    /// As [`Client::connect`].
    ///
    /// # Panics
    ///
    /// As [`Client::connect`].
    pub async fn connect_with(
        server: impl ToSocketAddrs + Debug,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        let servers = [open(server, settings).await?];
        find(&servers, settings).await?;
        Ok(Client {
            servers: servers.into(),
            choice: Arc::new(Choice::one()),
        })
    }

    /// As [`crate::Client::connect_to_all`].
    ///
    /// # Errors
    ///
    /// If there is no server, a name has no address, there is no socket, or none of the servers answers.
    ///
    /// # Panics
    ///
    /// As [`Client::connect`].
    pub async fn connect_to_all(
        members: &[Member],
        placement: Placement,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        let mut servers = Vec::with_capacity(members.len());
        for member in members {
            servers.push(open((member.host.as_str(), member.native_port), settings).await?);
        }
        find(&servers, settings).await?;
        Ok(Client {
            servers: servers.into(),
            choice: Arc::new(Choice::among(placement, members, settings.eject)),
        })
    }

    /// Reads an item; none if there is none.
    ///
    /// # Errors
    ///
    /// See [`GetError`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Item>, GetError> {
        self.call(key, &operation::get(false)).await
    }

    /// Reads an item with its CAS unique.
    ///
    /// # Errors
    ///
    /// See [`GetError`].
    pub async fn get_for_swap(&self, key: &[u8]) -> Result<Option<Item>, GetError> {
        self.call(key, &operation::get(true)).await
    }

    /// Reads many items with requests that leave together; an answer for each key, in their order.
    pub async fn get_many(&self, keys: &[&[u8]]) -> Vec<Result<Option<Item>, GetError>> {
        let get = operation::get(false);
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AT_ONCE) {
            let asked: Vec<_> = keys.iter().map(|key| self.ask(&get.ask(key))).collect();
            for answer in asked {
                found.push(get.understand(answer.await));
            }
        }
        found
    }

    /// Stores an item. `expiry` is memcached's: 0 is never, up to 30 days is in seconds from now, and more is seconds since 1970.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub async fn put(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> Result<(), StoreError> {
        let put = operation::store(StoreMode::Set, value, flags, expiry);
        self.call(key, &put).await.map(drop)
    }

    /// Stores an item if there is none. Returns whether it did.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub async fn add(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> Result<bool, StoreError> {
        let add = operation::store(StoreMode::Add, value, flags, expiry);
        self.call(key, &add).await
    }

    /// Stores an item if there is one. Returns whether it did.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub async fn replace(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> Result<bool, StoreError> {
        let replace = operation::store(StoreMode::Replace, value, flags, expiry);
        self.call(key, &replace).await
    }

    /// Stores an item if the one that is there has this CAS unique. Returns whether it did.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub async fn compare_and_swap(
        &self,
        key: &[u8],
        cas: u64,
        value: &[u8],
        flags: u32,
        expiry: u32,
    ) -> Result<bool, StoreError> {
        let swap = operation::store(StoreMode::Cas(cas), value, flags, expiry);
        self.call(key, &swap).await
    }

    /// Adds to a decimal number, wrapping at 2^64. Returns the result; none if there is no item.
    ///
    /// # Errors
    ///
    /// See [`CountError`].
    pub async fn increment(&self, key: &[u8], delta: u64) -> Result<Option<u64>, CountError> {
        self.call(key, &operation::increment(delta)).await
    }

    /// Subtracts from a decimal number, stopping at zero. Returns the result; none if there is no item.
    ///
    /// # Errors
    ///
    /// See [`CountError`].
    pub async fn decrement(&self, key: &[u8], delta: u64) -> Result<Option<u64>, CountError> {
        self.call(key, &operation::decrement(delta)).await
    }

    /// Removes an item. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// See [`RemoveError`].
    pub async fn delete(&self, key: &[u8]) -> Result<bool, RemoveError> {
        self.call(key, &operation::delete()).await
    }

    /// Gives an item a new expiry time; see [`Client::put`]. Returns whether there is one.
    ///
    /// # Errors
    ///
    /// See [`RemoveError`].
    pub async fn touch(&self, key: &[u8], expiry: u32) -> Result<bool, RemoveError> {
        self.call(key, &operation::touch(expiry)).await
    }

    async fn call<T, E>(&self, key: &[u8], operation: &Operation<'_, T, E>) -> Result<T, E> {
        operation.understand(self.ask(&operation.ask(key)).await)
    }

    /// Has a server asked at once; what is returned waits for the answer.
    fn ask(&self, ask: &Ask<'_>) -> impl Future<Output = Answer> + use<> {
        let servers = &self.servers;
        let server = self.choice.of(ask.key, |server| servers[server].is_away());
        let asked = servers[server].ask(ask);
        let server = servers[server].address();
        let answered = async { asked?.await.unwrap_or(Err(Failure::Ended)) };
        async move {
            let answer = answered.await;
            answer.map_err(|failure| Failed { failure, server })
        }
    }
}

/// Waits until every server has sent its directory or refuses, or until the time is up. One server
/// that is known is enough.
async fn find(servers: &[Server], settings: Settings) -> Result<(), ConnectError> {
    let all = async {
        for server in servers {
            server.settle().await;
        }
    };
    let patience = Duration::from_micros(settings.deadline_us);
    let _ = tokio::time::timeout(patience, all).await;
    let Some(first) = servers.first() else {
        return Err(ConnectError::no_server());
    };
    let mut silent = servers.iter().filter(|server| !server.is_settled());
    match (servers.iter().any(Server::is_found), silent.next()) {
        (true, _) => Ok(()),
        (false, Some(silent)) => Err(ConnectError::Silent(silent.address())),
        (false, None) => Err(ConnectError::Refused(first.address())),
    }
}

async fn open(
    server: impl ToSocketAddrs + Debug,
    settings: Settings,
) -> Result<Server, ConnectError> {
    let name = format!("{server:?}");
    let no_address = |reason| ConnectError::NoAddress {
        server: name,
        reason,
    };
    let address = match lookup_host(server).await {
        Ok(mut addresses) => addresses.next().ok_or_else(none_known),
        Err(reason) => Err(reason),
    };
    let address = address.map_err(no_address)?;
    Ok(Server::open(address, settings)?)
}
