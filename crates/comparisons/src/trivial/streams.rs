//! The dummy server over TCP.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use anyhow::Result;
use rustix::{
    event::{
        Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
    },
    io::Errno,
};

use super::{Answers, Life, Stall};

const INPUT_BYTES: usize = 64 << 10;
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The server's thread.
pub struct Streams {
    pub listener: TcpListener,
    pub answers: Answers,
    pub stall: Option<Stall>,
    pub life: Arc<Life>,
}

struct Peer {
    socket: TcpStream,
    input: Vec<u8>,
    filled: usize,
}

impl Streams {
    /// Serves until the server is stopped.
    pub fn serve(&self) -> Result<()> {
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
        while self.life.goes_on() {
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
            self.life.note_cpu();
        }
        Ok(())
    }

    /// Answers the requests of a peer. Returns false if the peer has gone or sent something else.
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
        while let Some(bytes) = self.answers.request(&peer.input[at..peer.filled], out) {
            at += bytes;
        }
        peer.input.copy_within(at..peer.filled, 0);
        peer.filled -= at;
        // Replies fit into the socket's buffer. A peer that does not read its replies is
        // disconnected.
        peer.filled < INPUT_BYTES && peer.socket.write_all(out).is_ok()
    }
}
