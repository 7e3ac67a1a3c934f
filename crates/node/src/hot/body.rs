//! What answers reads of hot keys, as far as the rest of the node knows it.

use glimmer_base::sync::Arc;
use glimmer_hotset::Memory;
use glimmer_hotset::device::Device;

/// What answers.
#[derive(Debug)]
pub enum Body {
    /// Somebody who reads memory that he shares with the server.
    Memory {
        /// Slots, control block and counts.
        memory: Arc<Memory>,
        /// Who answers from the slots.
        readers: Readers,
    },
    /// A device that takes the paper's operations and shares no memory. Its slots are all empty.
    Device(Box<dyn Device + Send>),
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
        Body::Memory {
            memory: Arc::new(Memory::new(slots, workers, seed)),
            readers: Readers::Workers,
        }
    }

    /// Slots in memory that a body outside this process has mapped.
    pub fn elsewhere(memory: Arc<Memory>) -> Body {
        Body::Memory {
            memory,
            readers: Readers::Elsewhere,
        }
    }
}
