//! The circuit, clocked.

use super::ports::{In, LookupPorts, Out};
use super::pressure::Pressure;
use super::shape::Shape;
use super::traffic::{Replies, Reply, Requests};
use crate::memory::{Memory, Requested};
use crate::model::Model;
use crate::random;
use crate::tools::Tools;
use glimmer_accel_device::models;
use rand::Rng;
use rand::rngs::SmallRng;

/// A circuit with its memory, and with what is sent and received.
#[derive(Debug)]
pub struct Circuit {
    model: Model<LookupPorts>,
    shape: Shape,
    inputs: In,
    outputs: Out,
    requests: Requests,
    replies: Replies,
    pub(super) command: Option<Command>,
    memory: Memory,
    rng: SmallRng,
    cycle: u64,
    next_tag: u8,
    /// Bytes of each slot's value, as associated.
    pub(super) lengths: Vec<usize>,
    /// A model without values, which tells where keys may lie.
    pub(super) places: models::Circuit,
    /// Ports' readiness.
    pub pressure: Pressure,
}

/// An operation under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    words: [u64; 3],
    is_taken: bool,
    result: Option<u64>,
}

/// Cycles after which something that waits is stuck. The longest operation writes 64 KiB.
const STUCK_CYCLES: u64 = 1_000_000;

impl Circuit {
    /// A circuit whose slots are empty, in read mode.
    pub fn new(tools: &Tools, shape: Shape, seed: u64) -> Circuit {
        let mut rng = random::from_seed(seed);
        let mut circuit = Circuit {
            model: Model::new(tools, &shape.variant(), rng.random()),
            shape,
            inputs: In::default(),
            outputs: Out::default(),
            requests: Requests::default(),
            replies: Replies::default(),
            command: None,
            memory: Memory::new(random::from_seed(rng.random())),
            rng,
            cycle: 0,
            next_tag: 0,
            lengths: vec![0; shape.slots],
            places: Shape {
                value_bytes: 0,
                ..shape
            }
            .model(),
            pressure: Pressure::NONE,
        };
        circuit.reset();
        circuit
    }

    /// Holds `rst` for two cycles and waits for the slots to be empty.
    pub fn reset(&mut self) {
        (self.requests, self.replies) = (Requests::default(), Replies::default());
        self.command = None;
        for rst in [1, 1, 0] {
            self.inputs = In {
                rst,
                ..In::default()
            };
            self.outputs = self.model.settle(&self.inputs);
            self.model.rise();
        }
        self.step_until("cleared", |circuit| circuit.outputs.cmd_ready == 1);
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The inputs in the last cycle.
    pub fn inputs(&self) -> &In {
        &self.inputs
    }

    /// The outputs in the last cycle.
    pub fn outputs(&self) -> &Out {
        &self.outputs
    }

    /// Number of cycles so far.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The CPU's memory.
    pub fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Sends a key when the requests before it are sent. Returns its tag.
    pub fn offer(&mut self, key: &[u8]) -> u8 {
        let tag = self.next_tag;
        self.next_tag = tag.wrapping_add(1);
        self.requests.push(tag, key);
        tag
    }

    /// Sends a key under a tag that it had before.
    pub fn offer_again(&mut self, tag: u8, key: &[u8]) {
        self.requests.push(tag, key);
    }

    /// Takes back the keys that were offered and not yet taken, with their tags.
    pub fn withdraw(&mut self) -> Vec<(u8, Vec<u8>)> {
        self.requests.withdraw()
    }

    /// Whether all keys that were offered have been taken.
    pub fn all_is_sent(&self) -> bool {
        self.requests.is_empty()
    }

    /// The next reply, if it is whole.
    pub fn reply(&mut self) -> Option<Reply> {
        self.replies.done.pop_front()
    }

    /// The next reply.
    pub fn wait_for_reply(&mut self) -> Reply {
        self.step_until("a reply", |circuit| !circuit.replies.done.is_empty());
        self.reply().expect("whole")
    }

    /// Begins an operation: its number and two operands.
    pub fn begin(&mut self, operation: u64, rs1: u64, rs2: u64) {
        assert!(self.command.is_none(), "one operation at a time");
        self.command = Some(Command {
            words: [operation, rs1, rs2],
            is_taken: false,
            result: None,
        });
    }

    /// The result of the operation, if it is done.
    pub fn result(&mut self) -> Option<u64> {
        let result = self.command.as_ref()?.result?;
        self.command = None;
        Some(result)
    }

    /// Carries an operation out.
    pub fn execute(&mut self, operation: u64, rs1: u64, rs2: u64) -> u64 {
        self.begin(operation, rs1, rs2);
        self.step_until("a result", |circuit| {
            circuit
                .command
                .as_ref()
                .is_some_and(|command| command.result.is_some())
        });
        self.result().expect("done")
    }

    /// The count of a slot: the simulator shows what no port does.
    pub fn peek_count(&self, slot: usize) -> u8 {
        self.model.peek(0, slot) as u8
    }

    /// Clocks until something holds.
    ///
    /// # Panics
    ///
    /// If that takes too long.
    pub fn step_until(&mut self, what: &str, mut holds: impl FnMut(&Circuit) -> bool) {
        let stuck = self.cycle + STUCK_CYCLES;
        while !holds(self) {
            assert!(self.cycle < stuck, "stuck: no sign of {what}");
            self.step();
        }
    }

    /// One cycle.
    pub fn step(&mut self) {
        let width = self.shape.width;
        let pressure = self.pressure;
        let go = |rng: &mut SmallRng, share: f64| share == 0.0 || !rng.random_bool(share);
        let write_mode = self.outputs.write_mode == 1;
        let request_goes = go(&mut self.rng, pressure.request);
        self.requests
            .drive(&mut self.inputs, width, request_goes, write_mode);
        Replies::drive(&mut self.inputs, &pressure, &mut self.rng);
        self.inputs.cmd_valid = 0;
        if let Some(Command {
            words: [operation, rs1, rs2],
            is_taken: false,
            ..
        }) = self.command
        {
            self.inputs.cmd_valid = 1;
            self.inputs.cmd_funct7 = operation;
            (self.inputs.cmd_rs1, self.inputs.cmd_rs2) = (rs1, rs2);
        }
        self.inputs.rsp_ready = u64::from(go(&mut self.rng, pressure.result));
        let offered = self.memory.offer();
        let memory_goes = go(&mut self.rng, pressure.memory);
        self.inputs.mem_req_ready = u64::from(offered.request_ready && memory_goes);
        self.inputs.mem_rsp_valid = u64::from(offered.response.is_some());
        if let Some(line) = offered.response {
            self.inputs.mem_rsp_data = line;
        }
        self.outputs = self.model.settle(&self.inputs);
        if self.outputs.write_mode == 1 && self.inputs.key_len_valid == 1 {
            // A length may be withdrawn in the cycle in which write mode begins.
            self.inputs.key_len_valid = 0;
            self.outputs = self.model.settle(&self.inputs);
        }
        self.sample(width);
        self.model.rise();
        self.cycle += 1;
    }

    fn sample(&mut self, width: usize) {
        let (inputs, outputs) = (&self.inputs, &self.outputs);
        self.requests.sample(inputs, outputs, width, self.cycle);
        self.replies
            .sample(inputs, outputs, width, self.cycle, &mut self.requests);
        if let Some(command) = &mut self.command {
            command.is_taken |= inputs.cmd_valid & outputs.cmd_ready == 1;
            if outputs.rsp_valid & inputs.rsp_ready == 1 {
                assert!(command.is_taken, "a result without an operation");
                command.result = Some(outputs.rsp_rd);
            }
        }
        self.memory.step(&Requested {
            valid: outputs.mem_req_valid & inputs.mem_req_ready == 1,
            address: outputs.mem_req_addr,
            write: outputs.mem_req_write == 1,
            data: outputs.mem_req_data,
            response_ready: outputs.mem_rsp_ready == 1,
        });
    }
}
