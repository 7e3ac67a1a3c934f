//! How requests come to a server whose costs are measured.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A transport, and how many requests arrive together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP, with one request at a time on each of many connections.
    Tcp,
    /// TCP, with several requests at a time on each of a few connections.
    #[default]
    TcpBatches,
    /// The native protocol over UDP, with one request at a time on each of many sockets.
    Native,
    /// The native protocol over AF_XDP, with several requests at a time from each of a few devices.
    Xdp,
    /// The same over DPDK's ports.
    Dpdk,
}

impl Transport {
    /// All of them.
    pub const ALL: [Transport; 5] = [
        Transport::Tcp,
        Transport::TcpBatches,
        Transport::Native,
        Transport::Xdp,
        Transport::Dpdk,
    ];

    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "TCP, one request at a time",
            Transport::TcpBatches => "TCP, 16 requests at a time",
            Transport::Native => "native UDP, one request at a time",
            Transport::Xdp => "AF_XDP, native",
            Transport::Dpdk => "DPDK, native",
        }
    }

    /// The kind of what is past the kernel's stack, between two namespaces; `None` for sockets on
    /// loopback.
    pub fn past_kernel(self) -> Option<&'static str> {
        match self {
            Transport::Tcp | Transport::TcpBatches | Transport::Native => None,
            Transport::Xdp => Some("xdp"),
            Transport::Dpdk => Some("dpdk"),
        }
    }

    /// Connections, sockets or devices.
    pub fn connections(self) -> u32 {
        match self {
            Transport::Tcp | Transport::Native => 32,
            Transport::TcpBatches | Transport::Xdp | Transport::Dpdk => 4,
        }
    }

    /// Requests in flight on each connection where a client waits for its replies.
    pub fn pipeline(self) -> u32 {
        match self {
            Transport::Tcp | Transport::Native => 1,
            Transport::TcpBatches => 16,
            Transport::Xdp | Transport::Dpdk => 8,
        }
    }

    /// Requests that arrive together where they come at random times.
    pub fn burst(self) -> u32 {
        match self {
            Transport::TcpBatches => 16,
            Transport::Tcp | Transport::Native | Transport::Xdp | Transport::Dpdk => 1,
        }
    }

    /// Requests in flight where a client waits for its replies.
    pub fn in_flight(self) -> u32 {
        self.connections() * self.pipeline()
    }

    /// Whether a client loses what overflows: nothing is sent again.
    pub fn is_lossy(self) -> bool {
        !matches!(self, Transport::Tcp | Transport::TcpBatches)
    }
}

impl FromStr for Transport {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Transport, Self::Err> {
        match text {
            "tcp" => Ok(Transport::Tcp),
            "tcp-batches" => Ok(Transport::TcpBatches),
            "native" => Ok(Transport::Native),
            "xdp" => Ok(Transport::Xdp),
            "dpdk" => Ok(Transport::Dpdk),
            _ => Err("tcp, tcp-batches, native, xdp or dpdk"),
        }
    }
}
