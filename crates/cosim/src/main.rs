//! Simulates the accelerator's circuit between a network and a server. `docs/accelerator-rtl.md`
//! describes the circuit, and `docs/accelerator-rtl-server.md` the server behind it.
//!
//! | file | idea |
//! | --- | --- |
//! | `network` | frames between two devices pass the circuit, and a server fills it |
//! | `machine` | the circuit with the CPU's memory and a driver of its rings |
//! | `wire` | frames as beats |
//! | `tap` | a network interface of the kernel |

mod machine;
mod network;
mod tap;
mod wire;

use anyhow::{Context, Result, bail};
use clap::Parser;
use glimmer_accel_rtl::tools::Tools;
use machine::Settings;
use network::Network;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use tap::Tap;

/// Simulates the hot-key accelerator's circuit between two network interfaces
///
/// It makes two TAP devices. One is the circuit's network; the other is the interface of the server
/// behind it. Move the server's to a network namespace, give it the address and the hardware
/// address that you name here, and start the server there with `-U PORT --accelerate rtl:SOCKET`.
/// Give the network's device an address in the same net, in another namespace, for clients.
#[derive(Debug, Parser)]
#[command(name = "glimmer-cosim", version)]
struct Arguments {
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

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let tools = Tools::find().map_err(anyhow::Error::msg)?;
    let settings = Settings {
        width: arguments.width,
        slots: arguments.slots,
        value_bytes: arguments.value_bytes,
        host_mac: arguments.host_mac,
        host: arguments.host,
        port: arguments.port,
        sources: arguments.from.0,
        source_bits: arguments.from.1,
    };
    let taps = [Tap::new(&arguments.network)?, Tap::new(&arguments.server)?];
    // A socket that a former run has left.
    let _ = std::fs::remove_file(&arguments.socket);
    let listener = UnixListener::bind(&arguments.socket)
        .with_context(|| format!("cannot listen at {}", arguments.socket.display()))?;
    let mut network = Network::new(&tools, settings, arguments.seed, taps, listener)?;
    println!("ready");
    loop {
        network.turn()?;
    }
}
