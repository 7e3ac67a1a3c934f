//! Slow senders and slow readers, alternately.

use std::sync::atomic::AtomicBool;

use anyhow::Result;

use super::{Case, Crowd, Scenario, Subject, slow};

pub(super) struct SlowMixture;

impl Scenario for SlowMixture {
    fn name(&self) -> &'static str {
        "slow-mixture"
    }

    fn about(&self) -> &'static str {
        "half of the clients are slow senders, the others slow readers"
    }

    fn cases(&self, every: bool) -> Vec<Case> {
        slow::cases(every, &[16_000, 100_000])
    }

    fn prepare(&self, subject: &Subject, case: &Case) -> Result<()> {
        slow::store(subject, case)
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let speeches = [
            slow::sender(case.value_bytes),
            slow::reader(case.value_bytes),
        ];
        let address = subject.address();
        let mut crowd = Crowd::new(address, case.connections, Some(slow::RECEIVE_BYTES));
        slow::drive(&mut crowd, |number| &speeches[number % 2], stop)
    }
}
