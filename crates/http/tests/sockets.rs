//! The server with real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use glimmer_base::limits::HTTP_CONNECTIONS_MAX;
use glimmer_http::{Reply, Request, Server, Status};

/// Longer than any step takes.
const LONG_MS: u64 = 60_000;

fn page(request: &Request<'_>) -> Reply {
    Reply::text(Status::Ok, request.path)
}

/// Serves while `clients` runs, which gets the address.
fn served(clients: impl FnOnce(SocketAddr)) {
    let mut server = Server::bind(&[SocketAddr::from(([127, 0, 0, 1], 0))]).unwrap();
    let (address, waker) = (server.addresses()[0], server.waker());
    let is_over = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let over = is_over.clone();
        scope.spawn(move || {
            while !over.load(Ordering::Acquire) {
                server.turn(LONG_MS, &mut page);
            }
        });
        clients(address);
        is_over.store(true, Ordering::Release);
        waker.wake();
    });
}

fn get(stream: &mut TcpStream, path: &str) -> String {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let end = format!("\r\n\r\n{path}\n");
    let mut reply = String::new();
    while !reply.ends_with(&end) {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        assert_ne!(count, 0, "closed after {reply:?}");
        reply.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    reply
}

#[test]
fn a_connection_takes_one_request_after_another() {
    served(|address| {
        let mut stream = TcpStream::connect(address).unwrap();
        for path in ["/a", "/b"] {
            let reply = get(&mut stream, path);
            assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
            assert!(reply.contains("\r\nContent-Security-Policy: default-src 'none';"));
        }
        stream.write_all(b"DELETE / HTTP/1.1\r\n\r\n").unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(rest.starts_with("HTTP/1.1 405 "), "{rest}");
    });
}

/// The client sends all of what is refused before it reads. A reset would take the reply from it.
#[test]
fn what_is_refused_is_answered_however_long_it_is() {
    served(|address| {
        let long = "x".repeat(1 << 18);
        for (request, status) in [
            (
                format!(
                    "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{long}",
                    1 << 18
                ),
                405,
            ),
            (format!("GET / HTTP/1.1\r\nA: {long}\r\n\r\n"), 431),
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
        }
    });
}

#[test]
fn silent_connections_keep_nobody_out() {
    served(|address| {
        let connect = || TcpStream::connect(address).unwrap();
        let silent: Vec<_> = (0..2 * HTTP_CONNECTIONS_MAX).map(|_| connect()).collect();
        get(&mut connect(), "/a");
        drop(silent);
    });
}

#[test]
fn an_address_in_use_is_named() {
    let first = Server::bind(&[SocketAddr::from(([127, 0, 0, 1], 0))]).unwrap();
    let address = first.addresses()[0];
    let (named, error) = Server::bind(&[address]).err().unwrap();
    assert_eq!(named, address);
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}
