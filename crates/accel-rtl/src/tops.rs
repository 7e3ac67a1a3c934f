//! The tops that can be built. A new one is one entry in [`TOPS`], one shim, and a type that
//! implements [`crate::model::Ports`].

/// A module that is simulated as the top of its design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Top {
    /// The module's name.
    pub name: &'static str,
    /// Its source files in `accel/rtl/`, the package first.
    pub sources: &'static [&'static str],
    /// The file in `shims/` that gives it a flat C interface.
    pub shim: &'static str,
}

/// Every top.
pub const TOPS: &[Top] = &[LOOKUP, TRAFFIC, DMA_RX, DMA_TX, KV_TOP];

/// The lookup: keys in, values out, and the operations.
pub const LOOKUP: Top = Top {
    name: "lookup",
    sources: &[
        "kv_pkg.sv",
        "sdp_ram.sv",
        "pearson.sv",
        "crc32c.sv",
        "key_write.sv",
        "key_compare.sv",
        "weights.sv",
        "value_mem.sv",
        "mem_handler.sv",
        "ctrl.sv",
        "lookup.sv",
    ],
    shim: "lookup.cpp",
};

/// The traffic manager: frames in and out, the lookup's ports open.
pub const TRAFFIC: Top = Top {
    name: "traffic",
    sources: &[
        "sdp_ram.sv",
        "fifo.sv",
        "tm_classify.sv",
        "tm_keys.sv",
        "tm_buffers.sv",
        "tm_reply.sv",
        "tm_respond.sv",
        "tm_arb.sv",
        "traffic.sv",
    ],
    shim: "traffic.cpp",
};

/// The whole circuit: MAC, commands, rings and memory are open.
pub const KV_TOP: Top = Top {
    name: "kv_top",
    sources: &[
        "kv_pkg.sv",
        "sdp_ram.sv",
        "fifo.sv",
        "pearson.sv",
        "crc32c.sv",
        "key_write.sv",
        "key_compare.sv",
        "weights.sv",
        "value_mem.sv",
        "mem_handler.sv",
        "ctrl.sv",
        "lookup.sv",
        "tm_classify.sv",
        "tm_keys.sv",
        "tm_buffers.sv",
        "tm_reply.sv",
        "tm_respond.sv",
        "tm_arb.sv",
        "traffic.sv",
        "dma_rx.sv",
        "dma_tx.sv",
        "mem_mux.sv",
        "kv_top.sv",
    ],
    shim: "kv_top.cpp",
};

/// The receive ring: frames in, buffers in the CPU's memory out.
pub const DMA_RX: Top = Top {
    name: "dma_rx",
    sources: &["fifo.sv", "dma_rx.sv"],
    shim: "dma_rx.cpp",
};

/// The transmit ring: frames in the CPU's memory in, frames out.
pub const DMA_TX: Top = Top {
    name: "dma_tx",
    sources: &["fifo.sv", "dma_tx.sv"],
    shim: "dma_tx.cpp",
};
