//! Floor 1: one partition's data. Memory from the kernel ([`memory`]), items in circular logs and
//! other heaps ([`heap`]), indexes over them ([`index`]), eviction rules ([`evict`]), access modes
//! ([`access`]), three tables that join them ([`mica_cache`], [`mica_store`], [`memc3`]), what the
//! tables have in common ([`table`]), and the observer of items that leave a table without a
//! request ([`removals`]).
//!
//! ```
//! use glimmer_base::{Expiry, Moment, Seed};
//! use glimmer_store::access::Erew;
//! use glimmer_store::evict::S3_FIFO;
//! use glimmer_store::heap::{History, NewItem};
//! use glimmer_store::mica_cache::{Owner, PartitionConfig};
//! use glimmer_store::table::{Table, TableWriter};
//!
//! let (seed, now) = (Seed(1), Moment { ms: 2_000, epoch_unix_ms: 0 });
//! let config = PartitionConfig { hasher: seed.into(), ..PartitionConfig::default() };
//! let mut owner = Owner::<Erew>::new(&config, S3_FIFO)?;
//!
//! let (key, keyhash) = (b"greeting", seed.keyhash(b"greeting"));
//! let item = NewItem {
//!     key,
//!     value: [b"hello", b""],
//!     flags: 0,
//!     expiry: Expiry::NEVER,
//!     history: History::NEW,
//! };
//! let mut writer = owner.enter(0);
//! writer.put(keyhash, &item, now);
//!
//! let mut value = Vec::new();
//! writer.read(keyhash, key, now, |item| item.value().append_to(&mut value));
//! assert_eq!(value, b"hello");
//! # Ok::<(), glimmer_store::table::ConfigError>(())
//! ```

pub mod access;
pub mod batches;
pub mod evict;
mod flushes;
pub mod groups;
pub mod heap;
pub mod index;
pub mod memc3;
pub mod memory;
pub mod mica_cache;
pub mod mica_store;
pub mod removals;
pub mod table;
mod work;
