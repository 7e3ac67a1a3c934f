//! The ceiling of a server that is sent one request at a time: a process that waits in `epoll`,
//! and answers each request with one `recv` and one `send`. It has no store, no state of its
//! connections, no clock and no timer; it invents the values that it is asked for. What a server
//! takes beyond this is its own, and the rest is the kernel's.

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener, TcpStream},
};

use anyhow::{Context, Result};
use rustix::{
    buffer::spare_capacity,
    event::epoll::{self, CreateFlags, EventData, EventFlags},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};

use crate::trivial::Answers;

/// Length in bytes of a request at most.
const INPUT_BYTES: usize = 64 << 10;
/// Length in bytes of a value at most: a request to store it fits.
pub const VALUE_BYTES_MAX: usize = INPUT_BYTES / 2;
/// Ready connections that one wait tells of.
const EVENTS: usize = 256;
/// What stands for the listener among the places of connections.
const LISTENER: u64 = u64::MAX;

/// Serves memcached's `set`, and `get` of the load generator's keys with values of `value_bytes`,
/// at this address. It ends with its process. A connection that sends anything else, or a second
/// request before the first one's answer, is closed.
///
/// # Errors
///
/// If the address cannot be used.
pub fn serve(address: SocketAddr, value_bytes: usize) -> Result<()> {
    let within = || format!("listening on {address}");
    let listener = TcpListener::bind(address).with_context(within)?;
    eprintln!("glimmer bench echo: ready on {}", listener.local_addr()?);
    serve_at(listener, value_bytes)
}

fn serve_at(listener: TcpListener, value_bytes: usize) -> Result<()> {
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let waits = EventData::new_u64(LISTENER);
    epoll::add(&epoll, &listener, waits, EventFlags::IN)?;
    let answers = Answers { value_bytes };
    let mut sockets: Vec<Option<TcpStream>> = Vec::new();
    let mut events = Vec::with_capacity(EVENTS);
    let mut input = vec![0; INPUT_BYTES];
    let mut out = Vec::with_capacity(INPUT_BYTES);
    loop {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let place = event.data.u64();
            if place == LISTENER {
                accept(&listener, &epoll, &mut sockets)?;
            } else if let Some(socket) = &sockets[place as usize]
                && !answer(socket, answers, &mut input, &mut out)
            {
                sockets[place as usize] = None;
            }
        }
    }
}

fn accept(
    listener: &TcpListener,
    epoll: &impl std::os::fd::AsFd,
    sockets: &mut Vec<Option<TcpStream>>,
) -> Result<()> {
    loop {
        let socket = match listener.accept() {
            Ok((socket, _)) => socket,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("accepting a connection"),
        };
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let free = sockets.iter().position(Option::is_none);
        let place = free.unwrap_or(sockets.len());
        epoll::add(
            epoll,
            &socket,
            EventData::new_u64(place as u64),
            EventFlags::IN,
        )?;
        match free {
            Some(place) => sockets[place] = Some(socket),
            None => sockets.push(Some(socket)),
        }
    }
}

/// Answers the request that has arrived. Returns false if the connection is to be closed.
#[inline]
fn answer(socket: &TcpStream, answers: Answers, input: &mut [u8], out: &mut Vec<u8>) -> bool {
    let bytes = match recv(socket, &mut *input, RecvFlags::empty()) {
        Ok((_, 0)) => return false,
        Ok((_, bytes)) => bytes,
        Err(error) => return matches!(error, Errno::AGAIN | Errno::INTR),
    };
    out.clear();
    let is_one = answers.request(&input[..bytes], out) == Some(bytes);
    is_one && send(socket, out, SendFlags::NOSIGNAL) == Ok(out.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_loadgen::workload::{Key, value};
    use std::io::{BufRead, BufReader, Read, Write};

    #[test]
    fn requests_are_answered_one_at_a_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // It ends with the test's process.
        std::thread::spawn(move || serve_at(listener, 64));
        let connect = || BufReader::new(TcpStream::connect(address).unwrap());
        let (mut one, mut other) = (connect(), connect());
        let key = Key::new(7, 16);
        for client in [&mut one, &mut other] {
            let mut get = b"get ".to_vec();
            key.write(&mut get);
            get.extend_from_slice(b"\r\n");
            client.get_mut().write_all(&get).unwrap();
            let mut line = String::new();
            client.read_line(&mut line).unwrap();
            assert!(
                line.starts_with("VALUE ") && line.ends_with(" 0 64\r\n"),
                "{line:?}"
            );
            let mut rest = [0; 64 + 2 + 5];
            client.read_exact(&mut rest).unwrap();
            assert_eq!(value::verify(&rest[..64], 7), Some(0));
            assert!(rest.ends_with(b"\r\nEND\r\n"), "{rest:?}");
        }
        one.get_mut().write_all(b"set a 0 0 1\r\nx\r\n").unwrap();
        let mut line = String::new();
        one.read_line(&mut line).unwrap();
        assert_eq!(line, "STORED\r\n");
        // Anything else ends the connection, and the other one's place stays its own.
        one.get_mut().write_all(b"stats\r\n").unwrap();
        assert_eq!(one.read(&mut [0]).unwrap(), 0);
        other.get_mut().write_all(b"set a 0 0 1\r\nx\r\n").unwrap();
        other.read_line(&mut line).unwrap();
        assert!(line.ends_with("STORED\r\n"), "{line:?}");
    }
}
