//! The configuration of the day, and its renewal.

use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use glimmer_transport::stream::{ByteStream, StreamListener};
use glimmer_transport::{Endpoint, Wakeup};
use rustls::ServerConfig;
use rustls::crypto::ring::Ticketer;
use rustls::server::ProducesTickets;

use crate::counters::Counters;
use crate::load::{LoadError, Loaded, load};
use crate::settings::{CLIENT_CERTIFICATES, ClientCertificates, Settings};
use crate::stream::TlsStream;

/// What a server has for all its encrypted connections.
pub struct Tls {
    settings: Settings,
    current: Mutex<Current>,
    counters: Arc<Counters>,
    /// When this was made, and what is shown of what is current, without a lock that a worker waits
    /// for.
    begun: Instant,
    renewed_s: AtomicU64,
    not_after_unix_s: AtomicI64,
}

/// What new connections use.
struct Current {
    loaded: Loaded,
    ticketers: Ticketers,
}

/// What makes tickets for sessions that are resumed, with keys that change every few hours: one
/// for each configuration. A client that resumes a session is not asked for its certificate, so a
/// ticket must be worth nothing at an address that asks for more than the one that gave it.
type Ticketers = [Arc<dyn ProducesTickets>; CLIENT_CERTIFICATES.len()];

fn ticketers() -> Result<Ticketers, rustls::Error> {
    Ok([Ticketer::new()?, Ticketer::new()?, Ticketer::new()?])
}

impl Tls {
    /// Reads the files. All connections together hold at most `bytes_max` bytes of memory for TLS.
    pub fn load(settings: Settings, bytes_max: usize) -> Result<Tls, LoadError> {
        let current = Mutex::new(Current::load(&settings, ticketers()?)?);
        let tls = Tls {
            settings: settings.with_absolute_paths(),
            current,
            counters: Arc::new(Counters::new(bytes_max)),
            begun: Instant::now(),
            renewed_s: AtomicU64::new(0),
            not_after_unix_s: AtomicI64::new(0),
        };
        tls.show();
        Ok(tls)
    }

    /// Reads the files again. New connections use what is in them; if something is wrong with it,
    /// they go on to use what was there before.
    ///
    /// Sessions can be resumed across it. Where clients show certificates they cannot, because a
    /// client is not asked for its certificate again when it resumes a session.
    pub fn renew(&self) -> Result<(), LoadError> {
        let ticketers = match self.settings.roots {
            Some(_) => ticketers()?,
            None => self.with(|current| current.ticketers.clone()),
        };
        match Current::load(&self.settings, ticketers) {
            Ok(renewed) => {
                let before = self.with(|current| std::mem::replace(current, renewed));
                drop(before);
                self.show();
                self.counters.note_renewal();
                Ok(())
            }
            Err(error) => {
                self.counters.note_renewal_error();
                Err(error)
            }
        }
    }

    /// What was given.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What is counted.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Until when the certificate is valid, in seconds since 1970.
    #[must_use]
    pub fn not_after_unix_s(&self) -> i64 {
        self.not_after_unix_s.load(Ordering::Relaxed)
    }

    /// For how long the certificate has been in use.
    #[must_use]
    pub fn since_renewal(&self) -> Duration {
        let renewed = Duration::from_secs(self.renewed_s.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(renewed)
    }

    /// Encrypts the connections of a listener.
    pub fn over(
        self: &Arc<Self>,
        listener: Box<dyn StreamListener>,
        clients: ClientCertificates,
    ) -> Box<dyn StreamListener> {
        Box::new(TlsListener {
            tls: self.clone(),
            inner: listener,
            clients,
        })
    }

    /// The configuration of new connections.
    #[must_use]
    pub fn config(&self, clients: ClientCertificates) -> Arc<ServerConfig> {
        self.with(|current| {
            let of = CLIENT_CERTIFICATES.iter().position(|of| *of == clients);
            current.loaded.configs[of.expect("every one is listed")].clone()
        })
    }

    /// Shows what is current.
    fn show(&self) {
        let not_after_unix_s = self.with(|current| current.loaded.not_after_unix_s);
        self.not_after_unix_s
            .store(not_after_unix_s, Ordering::Relaxed);
        let now_s = self.begun.elapsed().as_secs();
        self.renewed_s.store(now_s, Ordering::Relaxed);
    }

    fn with<T>(&self, look: impl FnOnce(&mut Current) -> T) -> T {
        let current = self.current.lock();
        look(&mut current.unwrap_or_else(PoisonError::into_inner))
    }
}

impl Current {
    fn load(settings: &Settings, ticketers: Ticketers) -> Result<Current, LoadError> {
        Ok(Current {
            loaded: load(settings, &ticketers)?,
            ticketers,
        })
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tls").field(&self.settings).finish()
    }
}

/// A listener whose connections are encrypted.
struct TlsListener {
    tls: Arc<Tls>,
    inner: Box<dyn StreamListener>,
    clients: ClientCertificates,
}

impl StreamListener for TlsListener {
    fn accept(&mut self) -> io::Result<Option<Box<dyn ByteStream>>> {
        let counters = &self.tls.counters;
        let stream = loop {
            let Some(stream) = self.inner.accept()? else {
                return Ok(None);
            };
            if !counters.is_full() {
                break stream;
            }
            counters.note_refusal();
        };
        let config = self.tls.config(self.clients);
        let stream = TlsStream::new(stream, config, self.tls.counters.clone());
        // The configuration has been tried, so this does not fail.
        let stream = stream.ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Some(Box::new(stream)))
    }

    fn wakeup(&self) -> Wakeup<'_> {
        self.inner.wakeup()
    }

    fn local(&self) -> Option<Endpoint> {
        self.inner.local()
    }
}
