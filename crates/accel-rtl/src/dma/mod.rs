//! The ports of the DMA engine's two rings.
//!
//! | file | idea |
//! | --- | --- |
//! | `receive` | the ports of `dma_rx.sv` |
//! | `transmit` | the ports of `dma_tx.sv` |

pub mod receive;
pub mod transmit;
