//! A client for tasks on tokio. Any number of tasks share it. Requests that the tasks issue at
//! about the same time are sent together.

mod driver;

use crate::answer::{Answer, Item};
use crate::error::{
    ConnectError, CountError, Failed, GetError, RemoveError, StoreError, none_known,
};
use crate::location::Location;
use crate::operation::{self, Operation};
use crate::placement::{Choice, Member, Placement};
use crate::session::IN_FLIGHT_MAX;
use crate::{Ask, Exptime, Failure, Settings};
use driver::Server;
use glimmer_proto::StoreMode;
use glimmer_transport::packet::PacketTransport;
use glimmer_transport::transports;
use std::fmt::Debug;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::time::{Instant, timeout_at};

/// Keys of one `get_many` call that one server is asked for at once: half of a session's capacity.
const KEYS_AT_ONCE: usize = IN_FLIGHT_MAX / 2;

/// A client of one server, or of several servers among which keys are placed. Clones share its
/// sockets. A task on the runtime that created the client sends and receives; it ends with the last
/// clone. After that runtime has ended, requests fail like those of a failed socket
/// (`GetError::Socket` and so on). While the runtime exists but is not being run, requests wait.
/// Dropping the future of a change does not undo the change.
///
/// Like a runtime, it must not be used across a fork: each process creates its own.
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
    deadline: Duration,
}

impl Client {
    /// Like [`crate::Client::connect`].
    ///
    /// # Errors
    ///
    /// If the name has no address, no socket can be opened, or no answer arrives in time.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O and time enabled.
    pub async fn connect(server: impl ToSocketAddrs + Debug) -> Result<Client, ConnectError> {
        Client::connect_with(server, Settings::default()).await
    }

    /// Like [`Client::connect`], with explicit settings.
    ///
    /// # Errors
    ///
    /// As for [`Client::connect`].
    ///
    /// # Panics
    ///
    /// As for [`Client::connect`].
    pub async fn connect_with(
        server: impl ToSocketAddrs + Debug,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        Client::connect_over(transports::default(), server, settings).await
    }

    /// Like [`crate::Client::connect_over`]. While requests are in flight, the task of a client
    /// over DPDK takes a turn again and again and leaves a thread of the runtime to other tasks
    /// only in between.
    ///
    /// # Errors
    ///
    /// As for [`Client::connect`], and if the transport cannot be used.
    ///
    /// # Panics
    ///
    /// As for [`Client::connect`].
    pub async fn connect_over(
        transport: Arc<dyn PacketTransport>,
        server: impl ToSocketAddrs + Debug,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        let server = Location::fixed(look_up(server).await?);
        let servers = [Server::open(server, transport, settings)?];
        find(&servers, settings).await?;
        Ok(Client {
            servers: servers.into(),
            choice: Arc::new(Choice::one()),
            deadline: Duration::from_micros(settings.deadline_us),
        })
    }

    /// Like [`crate::Client::connect_to_all`].
    ///
    /// # Errors
    ///
    /// If the list is empty, a name has no address, no socket can be opened, or none of the servers
    /// answers.
    ///
    /// # Panics
    ///
    /// As for [`Client::connect`].
    pub async fn connect_to_all(
        members: &[Member],
        placement: Placement,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        Client::connect_to_all_over(transports::default(), members, placement, settings).await
    }

    /// Like [`crate::Client::connect_to_all_over`].
    ///
    /// # Errors
    ///
    /// As for [`Client::connect_to_all`], and if the transport cannot be used.
    ///
    /// # Panics
    ///
    /// As for [`Client::connect`].
    pub async fn connect_to_all_over(
        transport: Arc<dyn PacketTransport>,
        members: &[Member],
        placement: Placement,
        settings: Settings,
    ) -> Result<Client, ConnectError> {
        let mut servers = Vec::with_capacity(members.len());
        for member in members {
            let address = look_up((member.host.as_str(), member.native_port)).await?;
            let server = Location::of(member, address);
            servers.push(Server::open(server, transport.clone(), settings)?);
        }
        find(&servers, settings).await?;
        Ok(Client {
            servers: servers.into(),
            choice: Arc::new(Choice::among(placement, members, settings.eject)),
            deadline: Duration::from_micros(settings.deadline_us),
        })
    }

    /// Reads an item. Returns `None` if there is no item.
    ///
    /// # Errors
    ///
    /// See [`GetError`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Item>, GetError> {
        self.call(key, &operation::get(false)).await
    }

    /// Reads an item together with its CAS unique.
    ///
    /// # Errors
    ///
    /// See [`GetError`].
    pub async fn get_for_swap(&self, key: &[u8]) -> Result<Option<Item>, GetError> {
        self.call(key, &operation::get(true)).await
    }

    /// Reads many items with requests that are sent together. Returns one result per key, in the
    /// order of the keys. The call has one deadline: keys that have no answer by then are silent,
    /// also those that were not asked for yet.
    pub async fn get_many(&self, keys: &[&[u8]]) -> Vec<Result<Option<Item>, GetError>> {
        let mut indexes_of = vec![Vec::new(); self.servers.len()];
        for (index, key) in keys.iter().enumerate() {
            indexes_of[self.choose(key)].push(index);
        }
        let get = operation::get(false);
        let asked = indexes_of.iter().enumerate().map(|(server, indexes)| {
            let asks = indexes.iter().map(|&index| get.ask(keys[index]));
            self.ask_many(server, asks.collect())
        });
        let answers = all(asked).await;
        let mut found: Vec<_> = keys.iter().map(|_| None).collect();
        let indexes = indexes_of.into_iter().flatten();
        for (index, answer) in indexes.zip(answers.into_iter().flatten()) {
            found[index] = Some(get.understand(answer));
        }
        found.into_iter().flatten().collect()
    }

    /// Stores an item. A number as `expiry` follows memcached: 0 means never, up to 30 days counts
    /// seconds from now, and larger values are seconds since 1970. [`Exptime::ms`] counts
    /// milliseconds from now.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub async fn put(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: impl Into<Exptime>,
    ) -> Result<(), StoreError> {
        let put = operation::store(StoreMode::Set, value, flags, expiry.into());
        self.call(key, &put).await.map(drop)
    }

    /// Stores an item only if the key has none. Returns whether it was stored.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub async fn add(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: impl Into<Exptime>,
    ) -> Result<bool, StoreError> {
        let add = operation::store(StoreMode::Add, value, flags, expiry.into());
        self.call(key, &add).await
    }

    /// Stores an item only if the key has one already. Returns whether it was stored.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub async fn replace(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expiry: impl Into<Exptime>,
    ) -> Result<bool, StoreError> {
        let replace = operation::store(StoreMode::Replace, value, flags, expiry.into());
        self.call(key, &replace).await
    }

    /// Stores an item only if the current item has this CAS unique. Returns whether it was stored.
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
        expiry: impl Into<Exptime>,
    ) -> Result<bool, StoreError> {
        let swap = operation::store(StoreMode::Cas(cas), value, flags, expiry.into());
        self.call(key, &swap).await
    }

    /// Adds to a decimal number, wrapping at 2^64. Returns the new number, or `None` if there is no
    /// item.
    ///
    /// # Errors
    ///
    /// See [`CountError`].
    pub async fn increment(&self, key: &[u8], delta: u64) -> Result<Option<u64>, CountError> {
        self.call(key, &operation::increment(delta)).await
    }

    /// Subtracts from a decimal number, stopping at zero. Returns the new number, or `None` if
    /// there is no item.
    ///
    /// # Errors
    ///
    /// See [`CountError`].
    pub async fn decrement(&self, key: &[u8], delta: u64) -> Result<Option<u64>, CountError> {
        self.call(key, &operation::decrement(delta)).await
    }

    /// Deletes an item. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// See [`RemoveError`].
    pub async fn delete(&self, key: &[u8]) -> Result<bool, RemoveError> {
        self.call(key, &operation::delete()).await
    }

    /// Sets an item's expiry time; see [`Client::put`]. Returns whether there is an item.
    ///
    /// # Errors
    ///
    /// See [`RemoveError`].
    pub async fn touch(&self, key: &[u8], expiry: impl Into<Exptime>) -> Result<bool, RemoveError> {
        self.call(key, &operation::touch(expiry.into())).await
    }

    async fn call<T, E>(&self, key: &[u8], operation: &Operation<'_, T, E>) -> Result<T, E> {
        operation.understand(self.ask(&operation.ask(key)).await)
    }

    fn choose(&self, key: &[u8]) -> usize {
        (self.choice).of(key, |server| self.servers[server].is_away())
    }

    /// Issues the request at once. The returned future waits for the answer.
    fn ask(&self, ask: &Ask<'_>) -> impl Future<Output = Answer> + use<> {
        self.ask_at(self.choose(ask.key), ask)
    }

    fn ask_at(&self, server: usize, ask: &Ask<'_>) -> impl Future<Output = Answer> + use<> {
        let server = &self.servers[server];
        let asked = server.ask(ask);
        let server = server.address();
        let answered = async { asked?.await.unwrap_or(Err(Failure::Ended)) };
        async move {
            let answer = answered.await;
            answer.map_err(|failure| Failed { failure, server })
        }
    }

    /// Asks one server for all of them, and waits for the answers until the deadline at most.
    async fn ask_many(&self, server: usize, asks: Vec<Ask<'_>>) -> Vec<Answer> {
        let until = Instant::now().checked_add(self.deadline);
        let mut answers = Vec::with_capacity(asks.len());
        for asks in asks.chunks(KEYS_AT_ONCE) {
            let is_first = answers.is_empty();
            if !is_first && until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let asked: Vec<_> = asks.iter().map(|ask| self.ask_at(server, ask)).collect();
            for answer in asked {
                answers.push(match until {
                    // They were issued later than the call, and so are their deadlines.
                    Some(until) if !is_first => {
                        let answer = timeout_at(until, answer).await;
                        answer.unwrap_or_else(|_| Err(self.silence(server)))
                    }
                    _ => answer.await,
                });
            }
        }
        answers.resize_with(asks.len(), || Err(self.silence(server)));
        answers
    }

    fn silence(&self, server: usize) -> Failed {
        Failed {
            failure: Failure::Silent,
            server: self.servers[server].address(),
        }
    }
}

/// Waits for all of them at the same time.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut outputs: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut are_ready = true;
        for (future, output) in &mut outputs {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(ready) => *output = Some(ready),
                    Poll::Pending => are_ready = false,
                }
            }
        }
        match are_ready {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    let outputs = outputs.into_iter().map(|(_, output)| output);
    outputs.flatten().collect()
}

/// Waits until every server has sent its directory or refused, or until the deadline. Succeeds if
/// at least one server is known.
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

/// The first address of a name.
async fn look_up(server: impl ToSocketAddrs + Debug) -> Result<SocketAddr, ConnectError> {
    let name = format!("{server:?}");
    let no_address = |reason| ConnectError::NoAddress {
        server: name,
        reason,
    };
    let address = match lookup_host(server).await {
        Ok(mut addresses) => addresses.next().ok_or_else(none_known),
        Err(reason) => Err(reason),
    };
    address.map_err(no_address)
}
