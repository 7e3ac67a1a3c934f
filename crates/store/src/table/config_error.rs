//! Why a table cannot be made.

use std::fmt;
use std::io::ErrorKind;

/// Why a table cannot be made.
#[derive(Debug)]
pub enum ConfigError {
    /// The memory cannot hold an index and two of the largest items.
    TooSmall {
        /// Bytes for items and index together.
        memory_bytes: usize,
        /// Bytes of the largest item.
        item_bytes_max: usize,
    },
    /// The memory is larger than the index can address.
    TooLarge {
        /// Bytes for items and index together.
        memory_bytes: usize,
        /// Bytes that one table has at most.
        memory_bytes_max: usize,
    },
    /// The index has no bucket.
    NoBuckets,
    /// What a file has of the table cannot be.
    Damaged(&'static str),
    /// The kernel gave no memory.
    Memory(std::io::Error),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::TooSmall {
                memory_bytes,
                item_bytes_max,
            } => write!(
                f,
                "a table of {memory_bytes} bytes cannot hold an index and two items of \
                 {item_bytes_max} bytes: more memory (-m) or a smaller item limit (-I) is needed"
            ),
            ConfigError::TooLarge {
                memory_bytes,
                memory_bytes_max,
            } => write!(
                f,
                "a table of {memory_bytes} bytes is larger than the {memory_bytes_max} bytes that \
                 its index can address: split it into more tables"
            ),
            ConfigError::Damaged(what) => write!(f, "the memory file is damaged: {what}"),
            ConfigError::NoBuckets => write!(f, "an index needs at least one bucket"),
            ConfigError::Memory(error) => {
                write!(f, "the kernel gave no memory for a table: {error}")
            }
        }
    }
}

impl ConfigError {
    /// What is wrong with the file that the table lies in, if that is the reason.
    pub fn damage(&self) -> Option<&'static str> {
        match self {
            ConfigError::Damaged(what) => Some(what),
            ConfigError::Memory(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Some("it is shorter than it was")
            }
            _ => None,
        }
    }

    /// Whether the kernel gave no memory.
    pub fn is_of_memory(&self) -> bool {
        matches!(self, ConfigError::Memory(_))
    }
}

impl std::error::Error for ConfigError {}
