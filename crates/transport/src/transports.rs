//! Every packet transport that a server or a client can be told to use.

use crate::packet::{Named, PacketTransport, TransportKind};
use crate::udp::{PlainUdp, Udp};
use std::sync::Arc;

/// Every packet transport. The first is the default, and needs no argument.
pub const TRANSPORTS: &[TransportKind] = &[
    Udp::KIND,
    PlainUdp::KIND,
    #[cfg(feature = "xdp")]
    crate::xdp::Xdp::KIND,
    #[cfg(feature = "dpdk")]
    crate::dpdk::Dpdk::KIND,
];

/// What is said of a transport that needs a feature.
#[cfg(not(feature = "dpdk"))]
const WITHOUT_DPDK: &str = "this program was built without DPDK: build it with `--features dpdk`, \
                            which needs libdpdk-dev 22.11 or newer";

/// The default packet transport.
pub fn default() -> Arc<dyn PacketTransport> {
    (TRANSPORTS[0].with)(None).expect("the first transport needs no argument")
}

/// The packet transport that this text names: `NAME`, or `NAME:ARGUMENT` for one that takes an
/// argument.
///
/// # Errors
///
/// The names that there are, or what is wrong with the argument.
pub fn named(text: &str) -> Named {
    let (name, argument) = match text.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (text, None),
    };
    #[cfg(not(feature = "dpdk"))]
    if name == "dpdk" {
        return Err(WITHOUT_DPDK.into());
    }
    let Some(known) = TRANSPORTS.iter().find(|known| known.name == name) else {
        let names: Vec<_> = TRANSPORTS.iter().map(|known| known.name).collect();
        return Err(format!("one of {}", names.join(", ")));
    };
    (known.with)(argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_is_named_and_may_be_given_an_argument() {
        for known in TRANSPORTS {
            let text = match known.name {
                "xdp" => "xdp:eth0",
                "dpdk" => "dpdk:ip=10.0.0.1/24",
                name => name,
            };
            assert_eq!(named(text).unwrap().name(), known.name);
        }
        let error = named("udp:eth0").unwrap_err();
        assert_eq!(error, "udp takes no argument, as \"eth0\" is");
        assert!(
            named("tcp")
                .unwrap_err()
                .starts_with("one of udp, udp-plain")
        );
        assert_eq!(default().name(), "udp");
    }
}
