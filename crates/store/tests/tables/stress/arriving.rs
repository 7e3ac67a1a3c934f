//! Large values that are received by a thread of their own: it pauses, gives some up, and hands
//! all back to the writers that have begun them.

use super::World;
use glimmer_store::table::Upload;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

/// Values that the receiver has at a time.
const TOGETHER: usize = 4;

/// A value on its way to its place.
pub struct Arriving {
    pub n: u32,
    pub version: u64,
    /// None once it was given up.
    pub upload: Option<Upload>,
    pub value: Vec<u8>,
    /// Where it goes when it is complete, or was given up.
    pub home: Sender<Arriving>,
}

impl Arriving {
    /// Stores some bytes of it; says whether all are there.
    fn go_on(&self, arrived: &mut usize, rng: &mut SmallRng) -> bool {
        let upload = self.upload.as_ref().expect("it is being received");
        let left = &self.value[*arrived..];
        let part = &left[..rng.random_range(1..=left.len())];
        match rng.random_bool(0.5) {
            true => upload.write(*arrived, part),
            false => upload.receive(*arrived, part.len(), |mut region| {
                assert_eq!(region.bytes(), part.len());
                // SAFETY: there is room for as many bytes.
                unsafe { region.start().copy_from(part.as_ptr(), part.len()) };
            }),
        }
        *arrived += part.len();
        *arrived == self.value.len()
    }
}

/// Receives values until all writers are done. The first is not given up, so that one is stored
/// however slow this thread is.
pub fn receive(values: &Receiver<Arriving>, world: &World, seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut arriving: Vec<(Arriving, usize)> = Vec::new();
    let mut has_completed = false;
    loop {
        let is_done = world.is_done();
        while arriving.len() < TOGETHER
            && let Ok(next) = values.try_recv()
        {
            arriving.push((next, 0));
        }
        arriving.shuffle(&mut rng);
        let Some((value, arrived)) = arriving.last_mut() else {
            if is_done {
                return;
            }
            // Until then the writers may be done.
            let next = values.recv_timeout(Duration::from_millis(1));
            arriving.extend(next.map(|next| (next, 0)));
            continue;
        };
        let is_complete = value.go_on(arrived, &mut rng);
        has_completed |= is_complete;
        if is_complete || (has_completed && rng.random_bool(0.05)) {
            let (mut value, _) = arriving.pop().expect("there is one");
            value.upload = value.upload.filter(|_| is_complete);
            let home = value.home.clone();
            home.send(value).expect("its writer waits for it");
        }
        thread::yield_now();
    }
}
