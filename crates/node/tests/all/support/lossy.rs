//! A network that loses and repeats datagrams, between sockets.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Passes datagrams between a client and the server's port, and loses or repeats every fourth.
pub fn pass_on(seed: u64, front: &UdpSocket, back: &UdpSocket, stop: &AtomicBool) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut client = None;
    let mut room = [0; 2_048];
    for socket in [front, back] {
        socket.set_nonblocking(true).unwrap();
    }
    while !stop.load(Ordering::Relaxed) {
        while let Ok((bytes, from)) = front.recv_from(&mut room) {
            client = Some(from);
            for _ in 0..copies(&mut rng) {
                back.send(&room[..bytes]).unwrap();
            }
        }
        while let Ok(bytes) = back.recv(&mut room) {
            for _ in 0..copies(&mut rng) {
                front.send_to(&room[..bytes], client.unwrap()).unwrap();
            }
        }
        std::thread::yield_now();
    }
}

fn copies(rng: &mut SmallRng) -> usize {
    match rng.random_range(0..8) {
        0 => 0,
        1 => 2,
        _ => 1,
    }
}
