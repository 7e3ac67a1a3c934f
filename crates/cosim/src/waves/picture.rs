//! Signals over time as an SVG.

use glimmer_accel_rtl::lookup::{In, Out};
use std::fmt::Write;

/// Sizes in pixels: a cycle, a row, a wave within it, and the names.
const CYCLE: usize = 34;
const ROW: usize = 30;
const WAVE: usize = 18;
const NAMES: usize = 130;
const HEAD: usize = 46;

/// A port in a cycle.
#[derive(Clone, Debug, PartialEq)]
struct Port {
    is_valid: bool,
    is_ready: bool,
    /// What is offered, if it is valid.
    what: String,
}

/// All ports in a cycle.
#[derive(Clone, Debug)]
pub struct Sample {
    ports: [(&'static str, Port); 4],
    commands: [(&'static str, Port); 2],
    write_mode: bool,
    idle: bool,
}

impl Sample {
    /// The ports of the circuit that is one byte wide.
    pub fn of(inputs: &In, outputs: &Out) -> Sample {
        let port = |valid: u64, ready: u64, what: String| Port {
            is_valid: valid == 1,
            is_ready: ready == 1,
            what,
        };
        let letter = |byte: u64| char::from(byte as u8).to_string();
        let command = match inputs.cmd_rs1 {
            1 => "write",
            _ => "read",
        };
        Sample {
            ports: [
                (
                    "key_len",
                    port(
                        inputs.key_len_valid,
                        outputs.key_len_ready,
                        inputs.key_len.to_string(),
                    ),
                ),
                (
                    "key_data",
                    port(inputs.key_valid, outputs.key_ready, letter(inputs.key_data)),
                ),
                (
                    "val_len",
                    port(
                        outputs.val_len_valid,
                        inputs.val_len_ready,
                        outputs.val_len.to_string(),
                    ),
                ),
                (
                    "val_data",
                    port(
                        outputs.val_valid,
                        inputs.val_ready,
                        letter(outputs.val_data),
                    ),
                ),
            ],
            commands: [
                (
                    "cmd",
                    port(inputs.cmd_valid, outputs.cmd_ready, command.to_owned()),
                ),
                (
                    "rsp_rd",
                    port(
                        outputs.rsp_valid,
                        inputs.rsp_ready,
                        outputs.rsp_rd.to_string(),
                    ),
                ),
            ],
            write_mode: outputs.write_mode == 1,
            idle: outputs.lookup_idle == 1,
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct Picture {
    title: &'static str,
    samples: Vec<Sample>,
    has_commands: bool,
}

impl Picture {
    /// Without a cycle yet.
    pub fn new(title: &'static str) -> Picture {
        Picture {
            title,
            samples: Vec::new(),
            has_commands: false,
        }
    }

    /// Also shows operations and the mode.
    pub fn has_commands(&mut self) {
        self.has_commands = true;
    }

    /// Adds a cycle.
    pub fn sample(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// The picture.
    pub fn svg(&self) -> String {
        let mut rows = String::new();
        let mut count = 0;
        let mut next_row = || {
            count += 1;
            HEAD + (count - 1) * ROW
        };
        let shown = if self.has_commands { 2 } else { 0 };
        for number in 0..shown {
            let ports = self.samples.iter().map(|sample| &sample.commands[number]);
            port(&mut rows, next_row(), next_row(), ports);
        }
        for number in 0..4 {
            let ports = self.samples.iter().map(|sample| &sample.ports[number]);
            port(&mut rows, next_row(), next_row(), ports);
        }
        if self.has_commands {
            let mode = self.samples.iter().map(|sample| sample.write_mode);
            bit(&mut rows, next_row(), "write_mode", mode);
            let idle = self.samples.iter().map(|sample| sample.idle);
            bit(&mut rows, next_row(), "lookup_idle", idle);
        }
        let (cycles, title) = (self.samples.len(), self.title);
        let (width, height) = (NAMES + cycles * CYCLE + 10, HEAD + count * ROW);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"DejaVu Sans Mono, monospace\" font-size=\"12\">\n\
             <title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"8\" y=\"18\" font-size=\"13\" fill=\"#222222\">{title}</text>\n"
        );
        for cycle in 0..cycles {
            let x = NAMES + cycle * CYCLE;
            let _ = writeln!(
                svg,
                "<path d=\"M{x} {HEAD}V{height}\" stroke=\"#e4e4e4\"/>\
                 <text x=\"{}\" y=\"{}\" fill=\"#888888\" text-anchor=\"middle\" \
                 font-size=\"10\">{}</text>",
                x + CYCLE / 2,
                HEAD - 8,
                cycle + 1
            );
        }
        svg + &rows + "</svg>\n"
    }
}

fn name(rows: &mut String, y: usize, name: &str) {
    let _ = writeln!(
        rows,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#222222\">{name}</text>",
        NAMES - 10,
        y + WAVE - 4
    );
}

/// A port: its readiness, and what is offered. A cell ends where it is taken.
fn port<'a>(
    rows: &mut String,
    ready_at: usize,
    y: usize,
    ports: impl Iterator<Item = &'a (&'static str, Port)>,
) {
    let ports: Vec<_> = ports.collect();
    let label = ports.first().map_or("", |(label, _)| label);
    bit(
        rows,
        ready_at,
        &format!("{label} ready"),
        ports.iter().map(|(_, port)| port.is_ready),
    );
    name(rows, y, label);
    let mut cycle = 0;
    while cycle < ports.len() {
        let begin = cycle;
        let (_, port) = ports[cycle];
        cycle += 1;
        if !port.is_valid {
            let (from, to) = (NAMES + begin * CYCLE, NAMES + cycle * CYCLE);
            let middle = y + WAVE / 2;
            let _ = writeln!(
                rows,
                "<path d=\"M{from} {middle}H{to}\" stroke=\"#aaaaaa\"/>"
            );
            continue;
        }
        let mut is_taken = port.is_ready;
        while !is_taken && cycle < ports.len() && ports[cycle].1.is_valid {
            is_taken = ports[cycle].1.is_ready;
            cycle += 1;
        }
        let (from, cells) = (NAMES + begin * CYCLE, cycle - begin);
        let fill = if is_taken { "#cfe3f7" } else { "#f0f0f0" };
        let _ = writeln!(
            rows,
            "<rect x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{WAVE}\" rx=\"4\" fill=\"{fill}\" \
             stroke=\"#2b6cb0\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\" \
             fill=\"#123456\">{}</text>",
            from + 1,
            cells * CYCLE - 2,
            from + cells * CYCLE / 2,
            y + WAVE - 5,
            port.what
        );
    }
}

/// A single wire.
fn bit(rows: &mut String, y: usize, label: &str, values: impl Iterator<Item = bool>) {
    name(rows, y, label);
    let mut path = String::new();
    for (cycle, value) in values.enumerate() {
        let level = if value { y + 2 } else { y + WAVE };
        let command = if cycle == 0 { "M" } else { "L" };
        let x = NAMES + cycle * CYCLE;
        let _ = write!(path, "{command}{x} {level}H{}", x + CYCLE);
    }
    let _ = writeln!(
        rows,
        "<path d=\"{path}\" fill=\"none\" stroke=\"#2f855a\" stroke-width=\"1.5\"/>"
    );
}
