//! The circuit between a MAC, the CPU's memory and a driver.

use super::item::Item;
use super::oracle::{HOST_IP, HOST_MAC, PORT, SOURCE_MASK, SOURCE_NET};
use super::streams::{Beat, Sink, Source};
use glimmer_accel_rtl::memory::{Memory, Requested};
use glimmer_accel_rtl::model::Model;
use glimmer_accel_rtl::random::from_seed;
use glimmer_accel_rtl::tools::Tools;
use glimmer_accel_rtl::top::{In, Out, TopPorts};
use glimmer_accel_rtl::tops::KV_TOP;
use glimmer_accel_rtl::verilate::Variant;
use rand::rngs::SmallRng;
use std::collections::VecDeque;

/// Where the driver's memory begins: for keys and values, for frames that were received, and for
/// those to send.
const KEY_AT: u64 = 0x1_0003;
const VALUE_AT: u64 = 0x2_0007;
const RECEIVE_AT: u64 = 0x10_0000;
const SEND_AT: u64 = 0x20_0000;
/// Bytes from one buffer to the next.
const BUFFER_BYTES: u64 = 2048;
const BUFFERS: u64 = 32;
/// Two bytes before a frame align its IP header.
const PAD: u64 = 2;

/// Cycles without a beat after which all is done, and after which it should be.
const QUIET: u64 = 3000;
const STUCK: u64 = 100_000;

/// See the module's text.
#[derive(Debug)]
pub struct Bench {
    pub inputs: In,
    pub out: Out,
    pub cycle: u64,
    pub rx: Source,
    pub tx: Sink,
    /// The frames that the driver was given.
    pub received: Vec<Vec<u8>>,
    /// The frames that it is to send.
    pub to_send: VecDeque<Vec<u8>>,
    /// The cycles in which the traffic manager offered the CPU the last beat of a frame.
    pub passed: Vec<u64>,
    rng: SmallRng,
    width: usize,
    memory: Memory,
    model: Model<TopPorts>,
    /// Buffers for frames: those that the circuit has, and the next one to give it.
    posted: VecDeque<u64>,
    to_post: VecDeque<u64>,
    sent: u64,
    /// Slots, and the first byte of the memory for values that is free.
    value_at: u64,
    moved: u64,
}

impl Bench {
    /// After its reset, in read mode.
    pub fn new(tools: &Tools, width: usize, seed: u64) -> Bench {
        let variant = Variant::new(KV_TOP)
            .with("W", width as u64)
            .with("VALUE_BYTES", 1 << 16);
        let mut bench = Bench {
            inputs: In {
                host_mac: HOST_MAC,
                host_ip: HOST_IP,
                host_port: PORT,
                source_net: SOURCE_NET,
                source_mask: SOURCE_MASK,
                reply_bytes_max: 1514,
                patience: 0xFFFF,
                ..In::default()
            },
            out: Out::default(),
            cycle: 0,
            rx: Source::new(1.0),
            tx: Sink::new(1.0),
            received: Vec::new(),
            to_send: VecDeque::new(),
            passed: Vec::new(),
            rng: from_seed(seed),
            width,
            memory: Memory::new(from_seed(seed ^ 1)),
            model: Model::new(tools, &variant, seed),
            posted: VecDeque::new(),
            to_post: (0..BUFFERS)
                .map(|buffer| RECEIVE_AT + buffer * BUFFER_BYTES)
                .collect(),
            sent: 0,
            value_at: 0,
            moved: 0,
        };
        bench.inputs.rst = 1;
        for _ in 0..3 {
            bench.model.settle(&bench.inputs);
            bench.model.rise();
        }
        bench.inputs.rst = 0;
        bench
    }

    /// One cycle.
    pub fn step(&mut self) {
        let width = self.width;
        let inputs = &mut self.inputs;
        let rx = self.rx.offer(&mut self.rng, width);
        inputs.rx_valid = rx.is_some().into();
        let beat = rx.unwrap_or_default();
        (inputs.rx_data, inputs.rx_keep, inputs.rx_last) = (beat.data, beat.keep, beat.last.into());
        inputs.tx_ready = self.tx.ready(&mut self.rng);
        inputs.rx_count_ready = 1;
        inputs.rx_post_valid = (!self.to_post.is_empty()).into();
        inputs.rx_post_line = self.to_post.front().map_or(0, |address| address / 64);
        self.drive_transmission();
        let inputs = &mut self.inputs;
        let offered = self.memory.offer();
        inputs.mem_req_ready = offered.request_ready.into();
        inputs.mem_rsp_valid = offered.response.is_some().into();
        inputs.mem_rsp_data = offered.response.unwrap_or_default();

        let out = self.model.settle(inputs);
        if self.model.peek(0, 0) == 1 {
            self.passed.push(self.cycle);
        }
        self.model.rise();

        let moved = inputs.rx_valid & out.rx_ready
            | inputs.tx_ready & out.tx_valid
            | inputs.mem_req_ready & out.mem_req_valid
            | inputs.mem_rsp_valid & out.mem_rsp_ready
            | out.rx_count_valid;
        self.memory.step(&Requested {
            valid: out.mem_req_valid == 1,
            address: out.mem_req_addr,
            write: out.mem_req_write == 1,
            data: out.mem_req_data,
            response_ready: out.mem_rsp_ready == 1,
        });
        self.rx.step(out.rx_ready == 1, self.cycle, width);
        let tx = Beat {
            data: out.tx_data,
            keep: out.tx_keep,
            last: out.tx_last == 1,
        };
        let tx = (out.tx_valid == 1).then_some(tx);
        self.tx.step(tx, self.cycle, width);
        self.drive_reception(&out);
        if self.inputs.tx_post_valid & out.tx_post_ready == 1 {
            self.to_send.pop_front();
            self.sent += 1;
        }
        self.out = out;
        self.cycle += 1;
        if moved == 1 {
            self.moved = self.cycle;
        }
        assert!(self.cycle < self.moved + STUCK, "nothing moves any more");
    }

    /// Takes a frame out of its buffer, and posts the buffer again.
    fn drive_reception(&mut self, out: &Out) {
        if self.inputs.rx_post_valid & out.rx_post_ready == 1 {
            self.posted.extend(self.to_post.pop_front());
        }
        if out.rx_count_valid == 1 {
            let buffer = self.posted.pop_front().expect("a buffer was posted");
            let bytes = out.rx_count_data as usize;
            let frame = self.memory.read(buffer, PAD as usize + bytes);
            self.received.push(frame[PAD as usize..].to_vec());
            self.to_post.push_back(buffer);
        }
    }

    fn drive_transmission(&mut self) {
        self.inputs.tx_post_valid = 0;
        // Half a ring of places, so that none is written before it was sent.
        let on_the_way = (self
            .out
            .tx_write_pointer
            .wrapping_sub(self.out.tx_read_pointer))
            & 0x7F;
        if let Some(frame) = self.to_send.front()
            && on_the_way < BUFFERS / 2
        {
            let address = SEND_AT + self.sent % BUFFERS * BUFFER_BYTES + self.sent % 64;
            self.memory.write(address, frame);
            self.inputs.tx_post_valid = 1;
            self.inputs.tx_post_addr = address;
            self.inputs.tx_post_count = frame.len() as u64;
        }
    }

    /// Steps until nothing has moved for a while.
    pub fn drain(&mut self) {
        let from = self.cycle;
        while self.cycle < self.moved.max(from) + QUIET {
            self.step();
        }
    }

    /// Executes an operation, and returns its result.
    pub fn execute(&mut self, funct7: u64, rs1: u64, rs2: u64) -> u64 {
        (
            self.inputs.cmd_funct7,
            self.inputs.cmd_rs1,
            self.inputs.cmd_rs2,
        ) = (funct7, rs1, rs2);
        self.inputs.cmd_valid = 1;
        self.inputs.rsp_ready = 1;
        loop {
            self.step();
            if self.out.cmd_ready == 1 {
                self.inputs.cmd_valid = 0;
            }
            if self.out.rsp_valid == 1 {
                return self.out.rsp_rd;
            }
        }
    }

    /// Stores an item, in write mode. Its place in the memory for values is a new one.
    pub fn store(&mut self, key: &[u8], item: &Item) {
        self.memory.write(KEY_AT, key);
        self.memory.write(VALUE_AT, &item.value);
        let slot = self.execute(2, KEY_AT, key.len() as u64 | 63 << 8);
        assert!(slot < 0xFFFF_0000, "{slot:x}");
        let bytes = item.value.len() as u64;
        for (funct7, operand) in [
            (3, self.value_at),
            (4, bytes | u64::from(item.flags) << 32),
            (5, VALUE_AT),
            (7, item.cas),
        ] {
            assert_eq!(self.execute(funct7, slot, operand), 0, "{funct7}");
        }
        self.value_at += bytes.next_multiple_of(8);
    }

    /// Switches to write mode (1) or read mode (0).
    pub fn switch(&mut self, mode: u64) {
        assert_eq!(self.execute(0, mode, 0), 0);
        assert_eq!(self.out.write_mode, mode);
    }
}
