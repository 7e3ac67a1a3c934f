//! What answers reads of hot keys, as far as the rest of the node knows it.

use glimmer_base::sync::Arc;
use glimmer_hotset::Memory;

/// What answers: the memory that it shares with the server, and who reads it.
#[derive(Clone, Debug)]
pub struct Body {
    /// Slots, control block and counts.
    pub memory: Arc<Memory>,
    /// Who answers from the slots.
    pub readers: Readers,
}

/// Who answers from the slots. Each reader has a row of counts of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The workers: each looks in the slots before it parses a datagram.
    Workers,
    /// Somebody outside the process, such as a program in the kernel. What comes to a worker was
    /// passed on, so it would find nothing in the slots and does not look.
    Elsewhere,
}

impl Body {
    /// Slots in this process's memory, for workers to look in. The seed places keys.
    pub fn model(slots: usize, workers: usize, seed: u64) -> Body {
        Body {
            memory: Arc::new(Memory::new(slots, workers, seed)),
            readers: Readers::Workers,
        }
    }

    /// Slots in memory that a body outside this process has mapped.
    pub fn elsewhere(memory: Arc<Memory>) -> Body {
        Body {
            memory,
            readers: Readers::Elsewhere,
        }
    }
}
