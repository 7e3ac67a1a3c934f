//! The memory that connections hold, as it is counted and as the allocator sees it.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use glimmer_tls::{ClientCertificates, TlsStream};
use glimmer_transport::stream::{ByteStream, Handshaking, LocalStream, StreamFaults};
use rustls::{SupportedProtocolVersion, version};
use support::{Authority, Client, names};

/// Most bytes that an idle connection takes beyond a plain one.
const IDLE_BYTES_MAX: usize = 2_300;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is passed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Idle connections take little, and no more than is counted. One with a test at a time: the
/// allocator counts what all of them do.
#[test]
fn an_idle_connection_takes_what_is_counted() {
    const CONNECTIONS: usize = 32;
    let authority = Authority::new();
    let tls = authority.server();
    let versions: [&'static SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
    for version in versions {
        let config = authority.client(&[version], None);
        let counted_before = tls.counters().bytes();
        let mut connections = Vec::with_capacity(CONNECTIONS);
        for seed in 0..CONNECTIONS as u64 {
            let [near, far] = LocalStream::pair(StreamFaults::default(), names(), seed);
            let mut client = Client::new(config.clone(), far);
            client.pump(100_000).unwrap();
            let near: Box<dyn ByteStream> = Box::new(near);
            let config = tls.config(ClientCertificates::AsSet);
            let before = LIVE.load(Ordering::Relaxed);
            let mut server = TlsStream::new(near, config, tls.counters().clone()).unwrap();
            let shaking = LIVE.load(Ordering::Relaxed) - before;
            assert!(tls.counters().bytes() - counted_before >= shaking);
            while server.handshake() != Handshaking::Done {
                // What is in the stream between the ends is not the connection's.
                client.pump(100_000).unwrap();
            }
            client.pump(100_000).unwrap();
            connections.push((client, server));
        }
        let counted = (tls.counters().bytes() - counted_before) / CONNECTIONS;
        let (clients, servers): (Vec<_>, Vec<_>) = connections.into_iter().unzip();
        let mut held = 0;
        for server in servers {
            let server = Box::new(server);
            let before = LIVE.load(Ordering::Relaxed);
            server.reset();
            held += before - LIVE.load(Ordering::Relaxed);
        }
        let held = held / CONNECTIONS;
        println!("{version:?}: {held} bytes are freed with a connection, {counted} are counted");
        assert!(
            counted >= held && counted <= IDLE_BYTES_MAX,
            "{counted} for {held}"
        );
        drop(clients);
        assert_eq!(tls.counters().bytes(), counted_before);
    }
}
