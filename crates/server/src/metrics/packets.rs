//! Datagrams past the kernel's stack.

use glimmer_transport::packet::Bypass;

use super::Source;
use super::family::{Family, In, Samples};

/// A figure of the transport, if it goes past the kernel's stack.
fn put(source: &Source, out: &mut Samples, figure: fn(&Bypass) -> u64) {
    if let Some(bypass) = &source.figures.bypass {
        out.put(figure(bypass));
    }
}

#[rustfmt::skip]
pub(super) const ALL: &[Family] = &[
    Family::gauge("glimmer_packet_transport_info", In::Units,
        "What carries datagrams, and of an interface past the kernel's stack its name and mode",
        |source, out| {
            let (interface, mode) = match &source.figures.bypass {
                Some(bypass) => (bypass.interface.clone(), bypass.mode.clone()),
                None => ("none".to_owned(), "none".to_owned()),
            };
            let name = source.figures.config.packets.name();
            let labels = [
                ("transport", name.into()),
                ("interface", interface.into()),
                ("mode", mode.into()),
            ];
            out.with(labels, 1u64);
        }),
    Family::counter("glimmer_packets_received", In::Units,
        "Datagrams that arrived at the interface of --packet-transport xdp or dpdk, past the \
         kernel's stack or by it",
        |source, out| {
            if let Some(bypass) = &source.figures.bypass {
                out.one("way", "queue", bypass.received);
                out.one("way", "kernel", bypass.kernel_received);
            }
        }),
    Family::counter("glimmer_packets_sent", In::Units,
        "Datagrams that left past the kernel's stack or by it",
        |source, out| {
            if let Some(bypass) = &source.figures.bypass {
                out.one("way", "queue", bypass.sent);
                out.one("way", "kernel", bypass.kernel_sent);
            }
        }),
    Family::counter("glimmer_packets_elsewhere", In::Units,
        "Datagrams that arrived at another queue than that of the worker with their port",
        |source, out| put(source, out, |it| it.elsewhere)),
    Family::counter("glimmer_packets_refused", In::Units,
        "Frames that were not answered, by reason: stats packets explains them",
        |source, out| {
            for (reason, count) in source.figures.bypass.iter().flat_map(|it| &it.refused) {
                out.one("reason", reason, *count);
            }
        }),
    Family::counter("glimmer_packets_answered", In::Units,
        "Questions to the host that were answered in the kernel's stead, by kind: \
         --packet-transport dpdk has to",
        |source, out| {
            for (kind, count) in source.figures.bypass.iter().flat_map(|it| &it.answered) {
                out.one("kind", kind, *count);
            }
        }),
    Family::counter("glimmer_packets_dropped", In::Units,
        "Frames that were dropped, by reason: a full ring, no free frame, or a receiver to whom \
         nobody knew the way",
        |source, out| {
            if let Some(bypass) = &source.figures.bypass {
                out.one("reason", "ring_full", bypass.dropped_full);
                out.one("reason", "no_frame", bypass.dropped_no_frame);
                if let Some(unresolved) = bypass.unresolved {
                    out.one("reason", "unresolved", unresolved);
                }
            }
        }),
    Family::gauge("glimmer_packets_waiting", In::Units,
        "Frames in rings: to be received, to be sent, to be filled, and free ones",
        |source, out| {
            if let Some(bypass) = &source.figures.bypass {
                out.one("ring", "rx", bypass.rx_waiting);
                out.one("ring", "tx", bypass.tx_waiting);
                out.one("ring", "fill", bypass.fill_waiting);
                out.one("ring", "free", bypass.frames_free);
            }
        }),
    Family::counter("glimmer_packet_bursts", In::Units,
        "Bursts received past the kernel's stack, by the number of their frames: at least as many \
         as the label says, and fewer than twice as many",
        |source, out| {
            let bursts = source.figures.bypass.iter().flat_map(|it| &it.bursts);
            for (class, count) in bursts.enumerate() {
                out.with([("frames", (1 << class).to_string().into())], *count);
            }
        }),
];
