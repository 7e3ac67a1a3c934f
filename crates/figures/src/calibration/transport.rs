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
}

impl Transport {
    /// All of them.
    pub const ALL: [Transport; 3] = [Transport::Tcp, Transport::TcpBatches, Transport::Native];

    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "TCP, one request at a time",
            Transport::TcpBatches => "TCP, 16 requests at a time",
            Transport::Native => "native UDP, one request at a time",
        }
    }

    /// Connections, or sockets.
    pub fn connections(self) -> u32 {
        match self {
            Transport::TcpBatches => 4,
            Transport::Tcp | Transport::Native => 32,
        }
    }

    /// Requests at a time on each connection.
    pub fn burst(self) -> u32 {
        match self {
            Transport::TcpBatches => 16,
            Transport::Tcp | Transport::Native => 1,
        }
    }

    /// Requests in flight where a client waits for its replies.
    pub fn in_flight(self) -> u32 {
        self.connections() * self.burst()
    }
}

impl FromStr for Transport {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Transport, Self::Err> {
        match text {
            "tcp" => Ok(Transport::Tcp),
            "tcp-batches" => Ok(Transport::TcpBatches),
            "native" => Ok(Transport::Native),
            _ => Err("tcp, tcp-batches or native"),
        }
    }
}
