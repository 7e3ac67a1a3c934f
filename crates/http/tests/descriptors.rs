//! The server in a process that has no descriptor left. The limit is the whole process's, so this
//! test has one of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use glimmer_http::{Reply, Request, Server, Status};
use rustix::process::{Resource, getrlimit, setrlimit};

fn page(request: &Request<'_>) -> Reply {
    Reply::text(Status::Ok, request.path)
}

/// A connection that cannot be accepted ends no wait at once: 100 ms pass between two attempts.
#[test]
fn without_descriptors_the_server_waits_and_then_accepts() {
    let mut server = Server::bind(&[SocketAddr::from(([127, 0, 0, 1], 0))]).unwrap();
    let mut client = TcpStream::connect(server.addresses()[0]).unwrap();
    let request = b"GET /a HTTP/1.1\r\nConnection: close\r\n\r\n";
    client.write_all(request).unwrap();

    let before = getrlimit(Resource::Nofile);
    let next = File::open("/dev/null").unwrap().as_raw_fd();
    let mut none_left = before;
    none_left.current = Some(next as u64);
    setrlimit(Resource::Nofile, none_left).unwrap();
    let (began, mut errors) = (Instant::now(), 0);
    while errors < 4 {
        server.turn(60_000, &mut page);
        errors += usize::from(server.take_accept_error().is_some());
    }
    let waited = began.elapsed();
    setrlimit(Resource::Nofile, before).unwrap();
    assert!(waited > Duration::from_millis(250), "{waited:?}");

    client.set_nonblocking(true).unwrap();
    let mut reply = Vec::new();
    while client.read_to_end(&mut reply).is_err() {
        server.turn(60_000, &mut page);
    }
    assert!(reply.starts_with(b"HTTP/1.1 200 OK\r\n") && reply.ends_with(b"/a\n"));
}
