//! The circuit with the CPU's memory and a driver of its rings.

use crate::wire::{Incoming, Outgoing};
use glimmer_accel_device::device::{Capabilities, DeviceCounters};
use glimmer_accel_device::link::Registers;
use glimmer_accel_rtl::lookup::device::operation;
use glimmer_accel_rtl::memory::{Memory, Requested};
use glimmer_accel_rtl::model::Model;
use glimmer_accel_rtl::random::from_seed;
use glimmer_accel_rtl::tools::Tools;
use glimmer_accel_rtl::top::{In, Out, TopPorts};
use glimmer_accel_rtl::tops::KV_TOP;
use glimmer_accel_rtl::verilate::Variant;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Where the driver's memory begins: for keys, values, frames that were received, and frames to
/// send.
const KEY_AT: u64 = 0x1_0000;
const VALUE_AT: u64 = 0x2_0000;
const RECEIVE_AT: u64 = 0x10_0000;
const SEND_AT: u64 = 0x20_0000;
/// Bytes from one buffer to the next, and buffers for either direction.
const BUFFER_BYTES: u64 = 2048;
const BUFFERS: u64 = 32;
/// Two bytes before a frame align its IP header.
const PAD: usize = 2;
/// Bits of a ring's pointer.
const POINTER: u64 = 0x7F;
/// A frame that was longer than its buffer.
const CUT: u64 = 1 << 15;

/// What a circuit is, and for whom it answers.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes in a beat: 1 or 8.
    pub width: usize,
    /// Number of slots.
    pub slots: usize,
    /// Bytes of the memory for values.
    pub value_bytes: usize,
    /// The server's hardware address.
    pub host_mac: u64,
    /// The server's address.
    pub host: Ipv4Addr,
    /// The server's UDP port.
    pub port: u16,
    /// Who is answered: the addresses that begin with the same bits as this one.
    pub sources: Ipv4Addr,
    /// The number of those bits.
    pub source_bits: u8,
}

/// Every signal of the circuit over time, as a file (VCD) that GTKWave and Surfer show.
#[derive(Clone, Debug)]
pub struct Waveform {
    /// The file.
    pub file: PathBuf,
    /// How many cycles are written. They begin with the first operation.
    pub cycles: u64,
}

/// See the module's text.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    seed: u64,
    inputs: In,
    out: Out,
    cycles: u64,
    model: Model<TopPorts>,
    memory: Memory,
    /// From the network.
    pub rx: Incoming,
    /// To the network.
    pub tx: Outgoing,
    /// To the CPU.
    pub to_cpu: VecDeque<Vec<u8>>,
    /// From the CPU.
    pub from_cpu: VecDeque<Vec<u8>>,
    /// Buffers for frames: those that the circuit has, and those to give it.
    posted: VecDeque<u64>,
    to_post: VecDeque<u64>,
    sent: u64,
    /// The cycle in which something moved.
    moved: u64,
    /// What has not begun to be written.
    waveform: Option<Waveform>,
    /// The cycle after which no more is written.
    written: u64,
}

impl Machine {
    /// A circuit after its reset, with empty slots, in read mode.
    pub fn new(
        tools: &Tools,
        settings: Settings,
        seed: u64,
        waveform: Option<Waveform>,
    ) -> Machine {
        let mut variant = Variant::new(KV_TOP)
            .with("W", settings.width as u64)
            .with("SLOTS", settings.slots as u64)
            .with("VALUE_BYTES", settings.value_bytes as u64);
        variant.is_traced = waveform.is_some();
        let ones = u64::from(u32::MAX);
        let mask = ones << (32 - u32::from(settings.source_bits)) & ones;
        let inputs = In {
            rst: 1,
            host_mac: settings.host_mac,
            host_ip: settings.host.to_bits().into(),
            host_port: settings.port.into(),
            source_net: u64::from(settings.sources.to_bits()),
            source_mask: mask,
            reply_bytes_max: crate::tap::FRAME_BYTES_MAX as u64,
            // The simulation waits for the CPU, and so does its network.
            patience: ones,
            ..In::default()
        };
        let mut machine = Machine {
            settings,
            seed,
            inputs,
            out: Out::default(),
            cycles: 0,
            model: Model::new(tools, &variant, seed),
            memory: Memory::new(from_seed(seed)),
            rx: Incoming::default(),
            tx: Outgoing::default(),
            to_cpu: VecDeque::new(),
            from_cpu: VecDeque::new(),
            posted: VecDeque::new(),
            to_post: VecDeque::new(),
            sent: 0,
            moved: 0,
            waveform,
            written: 0,
        };
        machine.reset();
        machine
    }

    /// Resets the circuit. Its slots are empty, and the frames in it are lost.
    pub fn reset(&mut self) {
        self.inputs.rst = 1;
        for _ in 0..3 {
            self.model.settle(&self.inputs);
            self.model.rise();
        }
        self.inputs.rst = 0;
        self.inputs.cmd_valid = 0;
        (self.rx, self.tx) = Default::default();
        self.memory = Memory::new(from_seed(self.seed));
        self.out = Out::default();
        self.posted.clear();
        self.to_post = (0..BUFFERS)
            .map(|buffer| RECEIVE_AT + buffer * BUFFER_BYTES)
            .collect();
        self.sent = 0;
        self.moved = self.cycles;
    }

    /// What it can do as a device.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            slots: self.settings.slots,
            key_bytes_max: 250,
            value_bytes_max: self.settings.value_bytes.min(1436),
            value_memory_bytes: Some(self.settings.value_bytes),
            has_write_mode: true,
            has_readable_counts: false,
            is_coherent: false,
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> DeviceCounters {
        DeviceCounters {
            cycles: self.cycles,
            hits: self.out.hits,
            misses: self.out.misses,
            bypassed: self.out.bypassed,
            defer_high_water: self.out.defer_high_water,
        }
    }

    /// Whether nothing has moved for this many cycles.
    pub fn is_quiet(&self, cycles: u64) -> bool {
        self.cycles > self.moved + cycles
    }

    /// One cycle.
    pub fn step(&mut self) {
        let width = self.settings.width;
        let inputs = &mut self.inputs;
        let beat = self.rx.offer(width);
        inputs.rx_valid = beat.is_some().into();
        let beat = beat.unwrap_or_default();
        (inputs.rx_data, inputs.rx_keep, inputs.rx_last) = (beat.data, beat.keep, beat.last.into());
        inputs.tx_ready = 1;
        inputs.rx_count_ready = 1;
        inputs.rx_post_valid = (!self.to_post.is_empty()).into();
        inputs.rx_post_line = self.to_post.front().map_or(0, |address| address / 64);
        self.offer_transmission();
        let inputs = &mut self.inputs;
        let offered = self.memory.offer();
        inputs.mem_req_ready = offered.request_ready.into();
        inputs.mem_rsp_valid = offered.response.is_some().into();
        inputs.mem_rsp_data = offered.response.unwrap_or_default();

        let out = self.model.settle(inputs);
        self.model.rise();

        let moved = inputs.rx_valid & out.rx_ready
            | out.tx_valid
            | inputs.mem_req_ready & out.mem_req_valid
            | inputs.mem_rsp_valid & out.mem_rsp_ready
            | out.rx_count_valid
            | inputs.tx_post_valid & out.tx_post_ready;
        self.memory.step(&Requested {
            valid: out.mem_req_valid == 1,
            address: out.mem_req_addr,
            write: out.mem_req_write == 1,
            data: out.mem_req_data,
            response_ready: out.mem_rsp_ready == 1,
        });
        if inputs.rx_valid & out.rx_ready == 1 {
            self.rx.taken(width);
        }
        if out.tx_valid == 1 {
            self.tx.take(out.tx_data, out.tx_keep, out.tx_last == 1);
        }
        self.take_reception(&out);
        if self.inputs.tx_post_valid & out.tx_post_ready == 1 {
            self.from_cpu.pop_front();
            self.sent += 1;
        }
        self.out = out;
        self.cycles += 1;
        if self.cycles == self.written {
            self.model.stop_trace();
        }
        if moved == 1 {
            self.moved = self.cycles;
        }
    }

    /// Takes a frame out of its buffer, and posts the buffer again.
    fn take_reception(&mut self, out: &Out) {
        if self.inputs.rx_post_valid & out.rx_post_ready == 1 {
            self.posted.extend(self.to_post.pop_front());
        }
        if out.rx_count_valid == 1 {
            let buffer = self.posted.pop_front().expect("a buffer was posted");
            if out.rx_count_data & CUT == 0 {
                let frame = self.memory.read(buffer, PAD + out.rx_count_data as usize);
                self.to_cpu.push_back(frame[PAD..].to_vec());
            }
            self.to_post.push_back(buffer);
        }
    }

    /// Posts the next frame of the CPU, if a place is free.
    fn offer_transmission(&mut self) {
        self.inputs.tx_post_valid = 0;
        let (write, read) = (self.out.tx_write_pointer, self.out.tx_read_pointer);
        // Half as many frames as places, so that none is written before it was sent.
        if let Some(frame) = self.from_cpu.front()
            && write.wrapping_sub(read) & POINTER < BUFFERS / 2
        {
            let address = SEND_AT + self.sent % BUFFERS * BUFFER_BYTES;
            self.memory.write(address, frame);
            self.inputs.tx_post_valid = 1;
            self.inputs.tx_post_addr = address;
            self.inputs.tx_post_count = frame.len() as u64;
        }
    }

    /// Executes an operation while frames go on, and returns its result.
    pub fn execute(&mut self, registers: &Registers<'_>) -> u64 {
        let Registers {
            funct7,
            mut rs1,
            mut rs2,
            memory,
        } = *registers;
        if let Some(waveform) = self.waveform.take() {
            self.model.trace(&waveform.file);
            self.written = self.cycles + waveform.cycles;
        }
        let number = u64::from(funct7);
        // An address of the server is that of the bytes that came along.
        match number {
            operation::DELETE | operation::RESERVE => {
                rs1 = KEY_AT;
                self.memory.write(KEY_AT, memory);
            }
            operation::WRITE_VALUE => {
                rs2 = VALUE_AT;
                self.memory.write(VALUE_AT, memory);
            }
            _ => {}
        }
        self.inputs.cmd_funct7 = number;
        (self.inputs.cmd_rs1, self.inputs.cmd_rs2) = (rs1, rs2);
        self.inputs.cmd_valid = 1;
        self.inputs.rsp_ready = 1;
        loop {
            self.step();
            if self.out.cmd_ready == 1 {
                self.inputs.cmd_valid = 0;
            }
            if self.out.rsp_valid == 1 {
                self.inputs.cmd_valid = 0;
                return self.out.rsp_rd;
            }
        }
    }
}
