//! The program by which the kernel gives each datagram to the socket of the worker that owns its
//! first key, where all workers share one native port.
//!
//! Fragments carry no keyhash. They are steered by the client's number, so that one worker receives
//! all fragments of a message. Every other datagram goes to the worker that the kernel chooses.

use glimmer_dispatch::PartitionMap;
use glimmer_proto::native::{Kind, RequestHeader};
use glimmer_transport::packet::Instruction;

// Classic BPF has one accumulator, and an index register that only `OR` below uses. Operation codes
// are those of Linux' `bpf_common.h`; multi-byte loads are big-endian.
const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD: u16 = 0x20;
const MULTIPLY: u16 = 0x24;
const OR_INDEX: u16 = 0x4c;
const SHIFT_LEFT: u16 = 0x64;
const SHIFT_RIGHT: u16 = 0x74;
const REMAINDER: u16 = 0x94;
const TO_INDEX: u16 = 0x07;
const IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const RETURN_ACCUMULATOR: u16 = 0x16;

/// Where a datagram tells its kind.
const KIND: u32 = 2;
/// Where it tells half of the client's random number; each half is as good as the other.
const CLIENT: u32 = 16;
/// Where the upper two bytes of the first request's keyhash are, the lower one first.
const KEYHASH: u32 = RequestHeader::BYTES as u32 + 14;
/// No socket has this number, so that the kernel chooses.
const ANY: u32 = u32::MAX;

/// The program for the sockets of all workers, in the workers' order.
pub fn program(map: PartitionMap) -> [Instruction; 16] {
    let (partitions, workers) = (map.partitions() as u32, map.cores() as u32);
    [
        step(LOAD_BYTE, KIND),
        skip_unless_equal(Kind::Fragment as u32, 3),
        step(LOAD_WORD, CLIENT),
        step(REMAINDER, workers),
        step(RETURN_ACCUMULATOR, 0),
        skip_unless_equal(Kind::Requests as u32, 9),
        step(LOAD_BYTE, KEYHASH + 1),
        step(SHIFT_LEFT, 8),
        step(TO_INDEX, 0),
        step(LOAD_BYTE, KEYHASH),
        step(OR_INDEX, 0),
        // The product of two 16-bit numbers fits.
        step(MULTIPLY, partitions),
        step(SHIFT_RIGHT, 16),
        step(REMAINDER, workers),
        step(RETURN_ACCUMULATOR, 0),
        step(RETURN, ANY),
    ]
}

const fn step(code: u16, operand: u32) -> Instruction {
    Instruction {
        code,
        if_true: 0,
        if_false: 0,
        operand,
    }
}

const fn skip_unless_equal(operand: u32, instructions: u8) -> Instruction {
    Instruction {
        code: IF_EQUAL,
        if_true: 0,
        if_false: instructions,
        operand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_base::Keyhash;
    use glimmer_base::limits::{PARTITIONS_MAX, WORKERS_MAX};
    use glimmer_proto::native::{Reach, Record, request::Action, request::Change};
    use rand::rngs::SmallRng;
    use rand::{Rng, RngCore, SeedableRng};

    /// What the kernel does with a program.
    fn run(program: &[Instruction], datagram: &[u8]) -> u32 {
        let (mut accumulator, mut index, mut at) = (0_u32, 0, 0);
        loop {
            let Instruction { operand, .. } = program[at];
            let load = |bytes: usize| {
                let start = operand as usize;
                let loaded = datagram.get(start..start + bytes)?;
                Some(
                    loaded
                        .iter()
                        .fold(0, |all, &byte| all << 8 | u32::from(byte)),
                )
            };
            let loaded = match program[at].code {
                LOAD_BYTE => load(1),
                LOAD_WORD => load(4),
                MULTIPLY => Some(accumulator.checked_mul(operand).expect("no overflow")),
                OR_INDEX => Some(accumulator | index),
                SHIFT_LEFT => Some(accumulator << operand),
                SHIFT_RIGHT => Some(accumulator >> operand),
                REMAINDER => Some(accumulator % operand),
                TO_INDEX => {
                    index = accumulator;
                    Some(accumulator)
                }
                IF_EQUAL => {
                    let is_equal = accumulator == operand;
                    at += usize::from(match is_equal {
                        true => program[at].if_true,
                        false => program[at].if_false,
                    });
                    Some(accumulator)
                }
                RETURN => return operand,
                RETURN_ACCUMULATOR => return accumulator,
                code => panic!("no operation {code:#x}"),
            };
            let Some(loaded) = loaded else { return 0 };
            accumulator = loaded;
            at += 1;
        }
    }

    fn datagram(kind: Kind, client: u64, keyhash: Keyhash) -> Vec<u8> {
        let header = RequestHeader {
            kind,
            count: 1,
            directory: 1,
            sequence: 2,
            timestamp: 3,
            client,
            token: 4,
        };
        let mut datagram = header.bytes().to_vec();
        let action = Action::Mutate {
            mutation: 5,
            reach: Reach::UNKNOWN,
            change: Change::Delete,
        };
        let record = Record {
            action,
            keyhash,
            key: b"key",
            shows_cas: true,
        };
        record.write(&mut datagram);
        datagram
    }

    #[test]
    fn requests_go_to_the_owner_of_the_first_key() {
        const SEED: u64 = 7;
        let mut rng = SmallRng::seed_from_u64(SEED);
        for _ in 0..20_000 {
            let partitions = rng.random_range(1..=PARTITIONS_MAX);
            let map = PartitionMap::new(partitions, rng.random_range(1..=WORKERS_MAX));
            let keyhash = match rng.random_range(0..8) {
                0 => u64::MAX,
                1 => 0,
                _ => rng.next_u64(),
            };
            let sent = datagram(Kind::Requests, rng.next_u64(), Keyhash(keyhash));
            let worker = run(&program(map), &sent) as usize;
            assert_eq!(worker, map.owner(Keyhash(keyhash)), "{map:?} {keyhash:x}");
        }
    }

    #[test]
    fn all_fragments_of_a_client_go_to_one_worker() {
        let map = PartitionMap::new(16, 4);
        let mut workers = [0; 4];
        for client in 0..400_u64 {
            let client = client.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let send = |keyhash| datagram(Kind::Fragment, client, Keyhash(keyhash));
            let worker = run(&program(map), &send(0));
            assert_eq!(worker, run(&program(map), &send(u64::MAX)));
            workers[worker as usize] += 1;
        }
        assert!(workers.iter().all(|&clients| clients > 50), "{workers:?}");
    }

    #[test]
    fn everything_else_goes_to_any_worker() {
        let program = program(PartitionMap::new(16, 4));
        let whole = datagram(Kind::Directory, u64::MAX, Keyhash(u64::MAX));
        assert_eq!(run(&program, &whole), ANY);
        for kind in [Kind::Requests, Kind::Fragment, Kind::Directory] {
            let whole = datagram(kind, u64::MAX, Keyhash(u64::MAX));
            for end in 0..whole.len() {
                let worker = run(&program, &whole[..end]);
                assert!(worker < 4 || worker == ANY);
            }
        }
        assert_eq!(run(&program, &[]), 0);
    }
}
