//! The CPU's memory behind a memory port: whole lines, one request at a time, and a random number
//! of cycles until the answer.

use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// Bytes of a line.
pub const LINE_BYTES: usize = 64;

/// A line as the ports carry it: byte 0 in the lowest bits of word 0.
pub type Line = [u64; LINE_BYTES / 8];

/// Cycles between a request and its answer (§IV-C1).
pub const LATENCY_CYCLES: RangeInclusive<u32> = 30..=50;

/// Memory that is zero where nothing was written.
#[derive(Debug)]
pub struct Memory {
    lines: HashMap<u64, [u8; LINE_BYTES]>,
    rng: SmallRng,
    latency_cycles: RangeInclusive<u32>,
    /// What is being done, and the cycles that it still takes.
    pending: Option<(u32, Line)>,
}

/// What the circuit shows on its memory port in a cycle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requested {
    /// `mem_req_valid`
    pub valid: bool,
    /// `mem_req_addr`
    pub address: u64,
    /// `mem_req_write`
    pub write: bool,
    /// `mem_req_data`
    pub data: Line,
    /// `mem_rsp_ready`
    pub response_ready: bool,
}

/// What the memory shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offered {
    /// `mem_req_ready`
    pub request_ready: bool,
    /// `mem_rsp_valid`. A write is answered as well, with any data.
    pub response: Option<Line>,
}

impl Memory {
    /// Memory with the paper's latency.
    pub fn new(rng: SmallRng) -> Memory {
        Memory {
            lines: HashMap::new(),
            rng,
            latency_cycles: LATENCY_CYCLES,
            pending: None,
        }
    }

    /// Copies bytes in, at once.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        for (at, &byte) in (address..).zip(bytes) {
            let line = self.lines.entry(at / LINE_BYTES as u64);
            line.or_insert([0; LINE_BYTES])[at as usize % LINE_BYTES] = byte;
        }
    }

    /// Copies bytes out, at once.
    pub fn read(&self, address: u64, bytes: usize) -> Vec<u8> {
        let byte = |at: u64| {
            let line = self.lines.get(&(at / LINE_BYTES as u64));
            line.map_or(0, |line| line[at as usize % LINE_BYTES])
        };
        (address..).take(bytes).map(byte).collect()
    }

    /// What the memory shows in this cycle.
    pub fn offer(&self) -> Offered {
        Offered {
            request_ready: self.pending.is_none(),
            response: match self.pending {
                Some((0, line)) => Some(line),
                _ => None,
            },
        }
    }

    /// The end of a cycle in which the memory showed [`Memory::offer`].
    ///
    /// # Panics
    ///
    /// If an address is not a line's.
    pub fn step(&mut self, requested: &Requested) {
        match &mut self.pending {
            Some((0, _)) if requested.response_ready => self.pending = None,
            Some((0, _)) => {}
            Some((cycles, _)) => *cycles -= 1,
            None if requested.valid => {
                let address = requested.address;
                assert_eq!(address % LINE_BYTES as u64, 0, "the address of a line");
                if requested.write {
                    let bytes: Vec<u8> = requested
                        .data
                        .iter()
                        .flat_map(|word| word.to_le_bytes())
                        .collect();
                    self.write(address, &bytes);
                }
                let bytes = self.read(address, LINE_BYTES);
                let line = std::array::from_fn(|word| {
                    let bytes = bytes[8 * word..][..8].try_into().expect("eight bytes");
                    u64::from_le_bytes(bytes)
                });
                let cycles = self.rng.random_range(self.latency_cycles.clone());
                self.pending = Some((cycles, line));
            }
            None => {}
        }
    }
}
