//! CPU time of a server whose workers never sleep, without their looks in vain.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;

use super::Server;

/// Looks at a server while it is measured.
pub struct BusyTime<'a> {
    server: &'a Server,
    workers: usize,
    looks: Mutex<Vec<Look>>,
}

/// What a server has used by a moment.
#[derive(Clone, Copy)]
struct Look {
    at: Instant,
    cpu: Duration,
    /// Turns with something to do, of workers that never sleep; zero for others.
    busy: Duration,
}

impl<'a> BusyTime<'a> {
    /// Of a server of ours with this many workers.
    pub fn of(server: &'a Server, workers: usize) -> BusyTime<'a> {
        BusyTime {
            server,
            workers,
            looks: Mutex::default(),
        }
    }

    /// Looks, and returns the CPU time that the server has used so far.
    ///
    /// # Errors
    ///
    /// The server has ended.
    pub fn look(&self) -> Result<Duration> {
        let busy_us = self
            .server
            .stats("glimmer")?
            .get("polling_busy_us")
            .copied();
        let look = Look {
            at: Instant::now(),
            cpu: self.server.cpu()?,
            busy: Duration::from_micros(busy_us.unwrap_or(0)),
        };
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.push(look);
        Ok(look.cpu)
    }

    /// The part of the CPU time between the first look and the last that is not spent on looking
    /// in vain. Where a worker shares its core, the time of turns includes that of others, and so
    /// does the elapsed time.
    pub fn part(&self) -> f64 {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(first), Some(last)) = (looks.first(), looks.last()) else {
            return 1.0;
        };
        let busy = (last.busy - first.busy).as_secs_f64();
        let elapsed = (last.at - first.at).as_secs_f64() * self.workers as f64;
        match busy > 0.0 && elapsed > 0.0 {
            true => (busy / elapsed).min(1.0),
            false => 1.0,
        }
    }
}
