//! The cores on which threads run.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that the calling thread may run on, in ascending order.
pub fn cores_allowed() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| allowed.is_set(core))
        .collect())
}

/// Pins the calling thread to one core. Fails if the machine lacks the core or the process may not
/// use it.
pub fn pin_to(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_its_core_only() {
        std::thread::spawn(|| {
            let core = *cores_allowed().unwrap().last().unwrap();
            pin_to(core).unwrap();
            assert_eq!(cores_allowed().unwrap(), [core]);
            assert!(pin_to(usize::MAX).is_err());
        })
        .join()
        .unwrap();
    }
}
