//! TLS over any [`ByteStream`](glimmer_transport::stream::ByteStream): a server's end.
//!
//! A [`Tls`] is what a server has for all its connections: certificates, which can be renewed, and
//! counters. It wraps a listener, whose connections are then encrypted.
//!
//! | file | idea |
//! | --- | --- |
//! | `settings` | what a server is told: files, versions, cipher suites |
//! | `load` | from files to a configuration, with an error that says what to do |
//! | `x509` | what a certificate says of itself: until when it is valid, and its common name |
//! | `tls` | the configuration of the day, its renewal, and the listeners that use it |
//! | `counters` | what is counted, and the memory that connections hold |
//! | `handshake` | from the first byte to traffic keys, by rustls |
//! | `record` | records: encrypted from slices, decrypted in place |
//! | `kept` | what has been received and does not fit or is incomplete |
//! | `stream` | a connection |
//! | `open` | its keys, and the records that change them |
//!
//! **Division of labour.** rustls shakes hands. It then gives up its traffic keys, through the
//! interface that exists for kernels, and this crate encrypts and decrypts records by the same
//! cryptographic library. rustls would copy each record into memory of its own and allocate twice
//! for it; here a burst is decrypted where it was received, and replies are gathered into full
//! records. rustls still derives the next keys when an end asks for them.
//!
//! **Memory.** A connection holds its keys. It has a buffer only while it holds an incomplete
//! record, or a record that the other end does not take. [`Counters::bytes`] has the sum.

mod counters;
mod handshake;
mod kept;
mod load;
mod open;
mod record;
mod settings;
mod stream;
mod tls;
mod x509;

pub use counters::Counters;
pub use load::LoadError;
pub use settings::{ClientCertificates, KeyFormat, MinVersion, Settings, Verify};
pub use stream::TlsStream;
pub use tls::Tls;
