//! The traffic manager between a MAC, a CPU and a lookup.

use super::lookups::{Lookups, Pace};
use super::oracle::{HOST_IP, HOST_MAC, PORT, SOURCE_MASK, SOURCE_NET};
use super::streams::{Beat, Sink, Source};
use glimmer_accel_rtl::model::Model;
use glimmer_accel_rtl::random::from_seed;
use glimmer_accel_rtl::tools::Tools;
use glimmer_accel_rtl::tops::TRAFFIC;
use glimmer_accel_rtl::traffic::{In, Out, TrafficPorts};
use glimmer_accel_rtl::verilate::Variant;
use rand::rngs::SmallRng;

/// Patience without end.
pub const FOR_EVER: u64 = 0xFFFF;

/// Cycles without a beat after which all is done, and after which it should be.
const QUIET: u64 = 3000;
const STUCK: u64 = 100_000;

/// See the module's text.
#[derive(Debug)]
pub struct Bench {
    pub inputs: In,
    pub out: Out,
    pub rng: SmallRng,
    pub cycle: u64,
    pub width: usize,
    pub rx: Source,
    pub tx: Sink,
    pub cpu_rx: Sink,
    pub cpu_tx: Source,
    pub lookups: Lookups,
    /// The cycle after the last one in which a beat has passed a port.
    moved: u64,
    model: Model<TrafficPorts>,
}

impl Bench {
    /// After its reset. Every stream moves a beat in each cycle that it can.
    pub fn new(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) -> Bench {
        let mut variant = Variant::new(TRAFFIC).with("W", width as u64);
        variant.bug = bug;
        let mut bench = Bench {
            inputs: In {
                host_mac: HOST_MAC,
                host_ip: HOST_IP,
                host_port: PORT,
                source_net: SOURCE_NET,
                source_mask: SOURCE_MASK,
                reply_bytes_max: 1514,
                patience: FOR_EVER,
                ..In::default()
            },
            out: Out::default(),
            rng: from_seed(seed),
            cycle: 0,
            width,
            rx: Source::new(1.0),
            tx: Sink::new(1.0),
            cpu_rx: Sink::new(1.0),
            cpu_tx: Source::new(1.0),
            lookups: Lookups::new(Pace::Budget),
            moved: 0,
            model: Model::new(tools, &variant, seed),
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
        let (rng, width, inputs) = (&mut self.rng, self.width, &mut self.inputs);
        let rx = self.rx.offer(rng, width);
        inputs.rx_valid = rx.is_some().into();
        let beat = rx.unwrap_or_default();
        (inputs.rx_data, inputs.rx_keep, inputs.rx_last) = (beat.data, beat.keep, beat.last.into());
        let cpu = self.cpu_tx.offer(rng, width);
        inputs.cpu_tx_valid = cpu.is_some().into();
        let beat = cpu.unwrap_or_default();
        (inputs.cpu_tx_data, inputs.cpu_tx_keep, inputs.cpu_tx_last) =
            (beat.data, beat.keep, beat.last.into());
        inputs.tx_ready = self.tx.ready(rng);
        inputs.cpu_rx_ready = self.cpu_rx.ready(rng);
        self.lookups.drive(inputs, rng, self.cycle, width);

        let out = self.model.settle(inputs);
        self.model.rise();

        let cycle = self.cycle;
        self.rx.step(out.rx_ready == 1, cycle, width);
        self.cpu_tx.step(out.cpu_tx_ready == 1, cycle, width);
        let tx = Beat {
            data: out.tx_data,
            keep: out.tx_keep,
            last: out.tx_last == 1,
        };
        self.tx
            .step((out.tx_valid == 1).then_some(tx), cycle, width);
        let cpu = Beat {
            data: out.cpu_rx_data,
            keep: out.cpu_rx_keep,
            last: out.cpu_rx_last == 1,
        };
        let cpu = (out.cpu_rx_valid == 1).then_some(cpu);
        self.cpu_rx.step(cpu, cycle, width);
        self.lookups.step(inputs, &out, rng, cycle, width);
        self.out = out;
        self.cycle += 1;
        if self.has_moved() {
            self.moved = self.cycle;
        }
        assert!(self.cycle < self.moved + STUCK, "nothing moves any more");
    }

    /// Steps until nothing has moved for a while.
    pub fn drain(&mut self) {
        let from = self.cycle;
        while self.cycle < self.moved.max(from) + QUIET {
            self.step();
        }
    }

    /// Whether a beat has passed a port in this cycle.
    fn has_moved(&self) -> bool {
        let (inputs, out) = (&self.inputs, &self.out);
        let moved = inputs.rx_valid & out.rx_ready
            | inputs.cpu_tx_valid & out.cpu_tx_ready
            | inputs.tx_ready & out.tx_valid
            | inputs.cpu_rx_ready & out.cpu_rx_valid
            | inputs.key_ready & out.key_valid
            | inputs.val_valid & out.val_ready;
        moved == 1
    }
}
