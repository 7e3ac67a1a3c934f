//! Simulates the accelerator's circuit between a network and a server: `glimmer-cosim circuit` and
//! `glimmer-cosim serve` for one's own experiments, and `glimmer-cosim try` for a whole one.

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use glimmer_accel_rtl::tools::Tools;
use glimmer_cosim::machine::{Settings, Waveform};
use glimmer_cosim::network::Network;
use glimmer_cosim::tap::Tap;
use glimmer_cosim::trial::{self, Trial};
use glimmer_cosim::{assembly, bed};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Simulates the hot-key accelerator's circuit with real packets
#[derive(Debug, Parser)]
#[command(name = "glimmer-cosim", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Simulate the circuit between two network interfaces, until it is stopped
    ///
    /// It makes two TAP devices. One is the circuit's network; the other is the interface of the
    /// server behind it. Move the server's to a network namespace, give it the address and the
    /// hardware address that you name here, and start `glimmer-cosim serve --circuit SOCKET -U
    /// PORT` there. Give the network's device an address in the same net, in another namespace,
    /// for clients.
    Circuit(Circuit),
    /// Serve behind a circuit: `glimmer serve`, and the server fills the circuit
    Serve(Box<Serve>),
    /// Try the circuit with a server behind it and clients in front
    ///
    /// It makes two network namespaces with the simulated circuit between them, starts
    /// `glimmer-cosim serve` behind it, and sends requests to it: by the load generator,
    /// by libmemcached's one, by raw sockets, and by some that change keys while others read them.
    /// Then memcached takes the server's place. Every byte of every answer is checked. The first
    /// answer that is wrong, outdated or lost ends it with an error. Nothing is left behind.
    Try(Try),
    /// Draw the circuit's ports during a hit, a miss and a switch of the mode
    Draw {
        /// The folder of the pictures
        #[arg(default_value = "docs/figures")]
        folder: PathBuf,
    },
}

#[derive(Args, Debug)]
struct Circuit {
    /// The Unix socket at which the server fills the circuit
    #[arg(long)]
    socket: PathBuf,
    /// The TAP device on the network's side
    #[arg(long, default_value = "circuit")]
    network: String,
    /// The TAP device on the server's side
    #[arg(long, default_value = "behind")]
    server: String,
    /// The hardware address of the server's device
    #[arg(long, value_parser = hardware_address)]
    host_mac: u64,
    /// The server's address
    #[arg(long)]
    host: Ipv4Addr,
    /// The server's UDP port
    #[arg(long, default_value_t = 11211)]
    port: u16,
    /// The clients that are answered, as a network
    #[arg(long, value_parser = network, value_name = "ADDRESS/BITS")]
    from: (Ipv4Addr, u8),
    /// Bytes that the circuit handles in a cycle: 1 as in the paper, or 8
    #[arg(long, default_value_t = 1, value_parser = width)]
    width: usize,
    /// Number of slots, a power of two; the server's --accelerate-slots must be the same
    #[arg(long, default_value_t = 1024, value_parser = slots)]
    slots: usize,
    /// Bytes of the memory for values
    #[arg(long, default_value_t = 512 << 10)]
    value_bytes: usize,
    /// The seed of the memory's latencies and of what registers hold before their reset
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Args, Debug)]
struct Try {
    /// Requests of the load generator
    #[arg(long, default_value = "100k", value_parser = count)]
    requests: u64,
    /// Seconds for which keys are changed and read at a time
    #[arg(long, default_value_t = 30)]
    hammer_seconds: u64,
    /// Bytes that the circuit handles in a cycle: 1 as in the paper, or 8
    #[arg(long, default_value_t = 1, value_parser = width)]
    width: usize,
    /// Number of slots, a power of two
    #[arg(long, default_value_t = 1024, value_parser = slots)]
    slots: usize,
    /// The seed of the requests, the memory's latencies and what registers hold before their reset
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write every signal of the circuit to this file (VCD), from the first operation on
    #[arg(long, value_name = "FILE")]
    vcd: Option<PathBuf>,
    /// How many cycles are written to it; each takes two kilobytes at most
    #[arg(long, default_value_t = 20_000, requires = "vcd")]
    vcd_cycles: u64,
}

fn hardware_address(text: &str) -> Result<u64> {
    let bytes: Vec<u8> = text
        .split(':')
        .map(|part| u8::from_str_radix(part, 16))
        .collect::<Result<_, _>>()?;
    if bytes.len() != 6 {
        bail!("a hardware address has six bytes, as in 02:00:00:00:00:01");
    }
    Ok(bytes
        .iter()
        .fold(0, |address, &byte| address << 8 | u64::from(byte)))
}

fn network(text: &str) -> Result<(Ipv4Addr, u8)> {
    let (address, bits) = text.split_once('/').context("ADDRESS/BITS")?;
    let bits: u8 = bits.parse()?;
    if !(1..=32).contains(&bits) {
        bail!("a network has 1 to 32 bits");
    }
    Ok((address.parse()?, bits))
}

fn width(text: &str) -> Result<usize> {
    match text {
        "1" => Ok(1),
        "8" => Ok(8),
        _ => bail!("1 or 8"),
    }
}

fn slots(text: &str) -> Result<usize> {
    let slots: usize = text.parse()?;
    if !slots.is_power_of_two() || !(256..=65_536).contains(&slots) {
        bail!("a power of two from 256 to 65536");
    }
    Ok(slots)
}

fn count(text: &str) -> Result<u64, String> {
    glimmer_notation::count(text)
}

#[derive(Args, Debug)]
struct Serve {
    /// The Unix socket of the circuit. It answers binary GETs before the server sees them
    ///
    /// The server fills the circuit by that socket, and waits for it when hot keys change. Start
    /// the simulation first, with as many slots as --accelerate-slots says.
    #[arg(long, value_name = "SOCKET", conflicts_with = "accelerate")]
    circuit: PathBuf,
    #[command(flatten)]
    server: glimmer::ServeArguments,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("glimmer-cosim: {error:#}");
            ExitCode::from(glimmer::exit_code(&error).unwrap_or(1))
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Circuit(circuit) => circuit.run(),
        Command::Serve(serve) => {
            let Serve { circuit, server } = *serve;
            server.run_with(Arc::new(assembly::Circuit { socket: circuit }))
        }
        Command::Try(try_) => try_.run(),
        Command::Draw { folder } => draw(&folder),
    }
}

fn draw(folder: &Path) -> Result<()> {
    let tools = Tools::find().map_err(anyhow::Error::msg)?;
    for (name, picture) in glimmer_cosim::waves::draw(&tools) {
        let file = folder.join(name);
        std::fs::write(&file, picture).with_context(|| file.display().to_string())?;
        println!("{}", file.display());
    }
    Ok(())
}

impl Circuit {
    fn run(self) -> Result<()> {
        let tools = Tools::find().map_err(anyhow::Error::msg)?;
        let settings = Settings {
            width: self.width,
            slots: self.slots,
            value_bytes: self.value_bytes,
            host_mac: self.host_mac,
            host: self.host,
            port: self.port,
            sources: self.from.0,
            source_bits: self.from.1,
        };
        let taps = [Tap::new(&self.network)?, Tap::new(&self.server)?];
        // A socket that a former run has left.
        let _ = std::fs::remove_file(&self.socket);
        let listener = UnixListener::bind(&self.socket)
            .with_context(|| format!("cannot listen at {}", self.socket.display()))?;
        let mut network = Network::new(&tools, settings, self.seed, taps, listener, None)?;
        println!("ready");
        loop {
            network.turn()?;
        }
    }
}

impl Try {
    fn run(self) -> Result<()> {
        let cycles = self.vcd_cycles;
        trial::run(&Trial {
            requests: self.requests,
            hammered: Duration::from_secs(self.hammer_seconds),
            circuit: bed::Circuit {
                width: self.width,
                slots: self.slots,
                seed: self.seed,
                waveform: self.vcd.map(|file| Waveform { file, cycles }),
            },
            server: std::env::current_exe()?,
        })
    }
}
