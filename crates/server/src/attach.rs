//! Makes the partitions of a memory file. After a process that was ended by force each of them is
//! looked through, and none needs another one for that: so several threads do it.

use crate::patience::Patience;
use glimmer_store::table::{Attach, ConfigError};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time after which it is asked again whether the service manager has to hear that this takes long.
const ASKED: Duration = Duration::from_secs(1);

/// Makes the partitions, on so many threads. They come in the order of `mapped`.
pub fn by_several<T: Send>(mapped: Vec<Attach<T>>, threads: usize) -> Result<Vec<T>, ConfigError> {
    let mut made: Vec<Option<T>> = mapped.iter().map(|_| None).collect();
    let left = Mutex::new(mapped.into_iter().enumerate());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        let (done, ready) = channel();
        for _ in 0..threads {
            let done = done.clone();
            scope.spawn(move || {
                while let Some((partition, attach)) = next() {
                    // Nobody waits for it if another partition has failed.
                    if done.send((partition, attach())).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        let mut patience = Patience::default();
        loop {
            patience.ask();
            match ready.recv_timeout(ASKED) {
                Ok((partition, table)) => made[partition] = Some(table?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    })?;
    let made = made
        .into_iter()
        .map(|table| table.expect("a thread made it"));
    Ok(made.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn attached(count: usize, threads: usize, fails: Option<usize>) -> Result<Vec<usize>, usize> {
        let calls = Arc::new(AtomicUsize::new(0));
        let mapped = (0..count).map(|number| -> Attach<usize> {
            let calls = calls.clone();
            Box::new(move || {
                calls.fetch_add(1, Relaxed);
                match fails {
                    Some(failing) if failing == number => Err(ConfigError::NoBuckets),
                    _ => Ok(number),
                }
            })
        });
        let made = by_several(mapped.collect(), threads);
        made.map_err(|_| calls.load(Relaxed))
    }

    #[test]
    fn partitions_keep_their_order_whichever_thread_makes_them() {
        for threads in [1, 2, 7] {
            let made = attached(5, threads, None).unwrap();
            assert_eq!(made, [0, 1, 2, 3, 4], "{threads} threads");
        }
    }

    #[test]
    fn one_that_cannot_be_made_fails_all() {
        let calls = attached(4, 1, Some(2)).unwrap_err();
        assert!((3..=4).contains(&calls), "{calls}");
        assert!(attached(4, 3, Some(3)).is_err());
    }
}
