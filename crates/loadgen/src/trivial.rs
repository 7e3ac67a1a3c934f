//! A server without a store: it answers every read with the value that belongs to the key, computed. What a client measures against it is the
//! ceiling that loopback TCP and the client itself set for any server.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::{
    event::{
        Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
    },
    io::Errno,
};

use crate::{
    client::closed,
    driver::Target,
    load::{self, Outcome},
    machine,
    workload::{Key, value},
};

const INPUT_BYTES: usize = 64 << 10;
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// A running trivial server: one thread, ended when this is dropped.
pub struct Trivial {
    address: SocketAddr,
    value_bytes: usize,
    stop: Arc<AtomicBool>,
    cpu_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Trivial {
    /// Serves memcached's `get` of any number of our keys, with values of `value_bytes`, and `set`, on a core or on any. After every
    /// `stall.0` of time it does nothing for `stall.1`, if given.
    pub fn start(value_bytes: usize, core: Option<usize>, stall: Option<Stall>) -> Result<Trivial> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("binding a port")?;
        let address = listener.local_addr()?;
        let (stop, cpu_ns) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let worker = Worker {
            listener,
            value_bytes,
            stall,
            stop: stop.clone(),
            cpu_ns: cpu_ns.clone(),
        };
        let thread = std::thread::spawn(move || {
            if let Some(core) = core {
                machine::pin([core]).expect("a core that this process may use");
            }
            worker.serve().expect("loopback works");
        });
        Ok(Trivial {
            address,
            value_bytes,
            stop,
            cpu_ns,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Drives it as fast as it answers.
    pub fn closed(&self, plan: &closed::Plan) -> Result<Outcome> {
        let target = Target::text(self.address);
        let cpu = || Ok(self.cpu());
        load::run(
            &target,
            &plan.with_values(self.value_bytes),
            Some(&cpu),
            &mut |_| {},
        )
    }

    /// CPU time that its thread has used, as of its last burst.
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu_ns.load(Ordering::Relaxed))
    }
}

impl Drop for Trivial {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A server that regularly does nothing, to try an open loop on.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// From the beginning of one stall to the next.
    pub every: Duration,
    /// How long it lasts.
    pub lasts: Duration,
}

struct Worker {
    listener: TcpListener,
    value_bytes: usize,
    stall: Option<Stall>,
    stop: Arc<AtomicBool>,
    cpu_ns: Arc<AtomicU64>,
}

struct Peer {
    socket: TcpStream,
    input: Vec<u8>,
    filled: usize,
}

impl Worker {
    fn serve(&self) -> Result<()> {
        const LISTENER: u64 = u64::MAX;
        self.listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &self.listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        let mut peers: Vec<Option<Peer>> = Vec::new();
        let mut events = Vec::with_capacity(64);
        let mut out = Vec::with_capacity(INPUT_BYTES);
        let mut next_stall = self
            .stall
            .map(|stall| std::time::Instant::now() + stall.every);
        while !self.stop.load(Ordering::Relaxed) {
            events.clear();
            let ready = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&epoll, ready, Some(&TICK)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let (Some(stall), Some(at)) = (self.stall, next_stall)
                && std::time::Instant::now() >= at
            {
                std::thread::sleep(stall.lasts);
                next_stall = Some(at + stall.every);
            }
            for event in &events {
                let place = event.data.u64();
                if place == LISTENER {
                    while let Ok((socket, _)) = self.listener.accept() {
                        socket.set_nonblocking(true)?;
                        socket.set_nodelay(true)?;
                        let data = EventData::new_u64(peers.len() as u64);
                        epoll::add(&epoll, &socket, data, EventFlags::IN)?;
                        peers.push(Some(Peer {
                            socket,
                            input: vec![0; INPUT_BYTES],
                            filled: 0,
                        }));
                    }
                } else if let Some(peer) = &mut peers[place as usize]
                    && !self.answer(peer, &mut out)
                {
                    peers[place as usize] = None;
                }
            }
            self.cpu_ns
                .store(machine::thread_cpu().as_nanos() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Answers what a peer has sent; false when it is gone or says something else.
    fn answer(&self, peer: &mut Peer, out: &mut Vec<u8>) -> bool {
        match peer.socket.read(&mut peer.input[peer.filled..]) {
            Ok(0) => return false,
            Ok(bytes) => peer.filled += bytes,
            Err(error) => {
                return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
            }
        }
        out.clear();
        let mut at = 0;
        while let Some(bytes) = self.request(&peer.input[at..peer.filled], out) {
            at += bytes;
        }
        peer.input.copy_within(at..peer.filled, 0);
        peer.filled -= at;
        // A reply fits the socket's buffer; a peer that does not read its replies is let go.
        peer.filled < INPUT_BYTES && peer.socket.write_all(out).is_ok()
    }

    /// Answers the request at the beginning of `input` and returns its length, if it is complete.
    #[inline]
    fn request(&self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let line_end = memchr::memchr(b'\n', input)?;
        let line = input[..line_end].strip_suffix(b"\r")?;
        if let Some(keys) = line.strip_prefix(b"get ") {
            keys.split(|&byte| byte == b' ')
                .for_each(|key| self.value(key, out));
            out.extend_from_slice(b"END\r\n");
            return Some(line_end + 1);
        }
        let length = line
            .strip_prefix(b"set ")?
            .rsplit(|&byte| byte == b' ')
            .next()?;
        let value_bytes: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
        let bytes = line_end + 1 + value_bytes + 2;
        if input.len() < bytes {
            return None;
        }
        out.extend_from_slice(b"STORED\r\n");
        Some(bytes)
    }

    #[inline]
    fn value(&self, key: &[u8], out: &mut Vec<u8>) {
        let Some(number) = Key::parse(key).map(Key::number) else {
            return;
        };
        out.extend_from_slice(b"VALUE ");
        out.extend_from_slice(key);
        out.extend_from_slice(b" 0 ");
        out.extend_from_slice(itoa::Buffer::new().format(self.value_bytes).as_bytes());
        out.extend_from_slice(b"\r\n");
        value::append(out, self.value_bytes, number, 0);
        out.extend_from_slice(b"\r\n");
    }
}
