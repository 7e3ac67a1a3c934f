// The whole circuit: traffic manager, lookup, and the rings between it and the CPU's memory.
//
//   MAC <-> traffic <-> lookup
//              ^           ^ commands
//              v           |
//      dma_rx, dma_tx ---- mem_mux <-> memory
//
// A board adds what is around it: a MAC on rx and tx, a bus on the memory port, and registers of
// that bus for the configuration, the commands, the rings and the counters.
module kv_top #(
    parameter int W = 1,  // bytes in a beat: 1 or 8
    parameter int SLOTS = 1024,
    parameter int VALUE_BYTES = 524288,
    parameter int HASH_BYTES = 2,
    parameter int MAIN_BYTES = 8192,
    parameter int DEFER_BYTES = 16384,
    parameter int ENTRIES = 64,  // of a ring
    localparam int POINTER_BITS = $clog2(ENTRIES) + 1
) (
    input logic clk,
    input logic rst,

    // Configuration, as in traffic.sv.
    input logic [47:0] host_mac,
    input logic [31:0] host_ip,
    input logic [15:0] host_port,
    input logic [31:0] source_net,
    input logic [31:0] source_mask,
    input logic [15:0] reply_bytes_max,
    input logic [15:0] patience,

    // The MAC.
    input  logic           rx_valid,
    output logic           rx_ready,
    input  logic [8*W-1:0] rx_data,
    input  logic [  W-1:0] rx_keep,
    input  logic           rx_last,
    output logic           tx_valid,
    input  logic           tx_ready,
    output logic [8*W-1:0] tx_data,
    output logic [  W-1:0] tx_keep,
    output logic           tx_last,

    // Commands, as in lookup.sv.
    input  logic        cmd_valid,
    output logic        cmd_ready,
    input  logic [ 6:0] cmd_funct7,
    input  logic [63:0] cmd_rs1,
    input  logic [63:0] cmd_rs2,
    output logic        rsp_valid,
    input  logic        rsp_ready,
    output logic [63:0] rsp_rd,
    output logic        write_mode,
    output logic        lookup_idle,

    // The ring of received frames, as in dma_rx.sv.
    input  logic                    rx_post_valid,
    output logic                    rx_post_ready,
    input  logic [            57:0] rx_post_line,
    output logic                    rx_count_valid,
    input  logic                    rx_count_ready,
    output logic [            15:0] rx_count_data,
    output logic [POINTER_BITS-1:0] rx_read_pointer,
    output logic [POINTER_BITS-1:0] rx_current_pointer,
    output logic [POINTER_BITS-1:0] rx_write_pointer,
    output logic                    rx_irq,
    input  logic                    rx_irq_clear,

    // The ring of frames to send, as in dma_tx.sv.
    input  logic                    tx_post_valid,
    output logic                    tx_post_ready,
    input  logic [            63:0] tx_post_addr,
    input  logic [            15:0] tx_post_count,
    output logic [POINTER_BITS-1:0] tx_read_pointer,
    output logic [POINTER_BITS-1:0] tx_current_pointer,
    output logic [POINTER_BITS-1:0] tx_write_pointer,
    output logic                    tx_irq,
    input  logic                    tx_irq_clear,

    // The CPU's memory.
    output logic         mem_req_valid,
    input  logic         mem_req_ready,
    output logic [ 63:0] mem_req_addr,
    output logic         mem_req_write,
    output logic [511:0] mem_req_data,
    input  logic         mem_rsp_valid,
    output logic         mem_rsp_ready,
    input  logic [511:0] mem_rsp_data,

    // Counters, as in traffic.sv.
    output logic [31:0] hits,
    output logic [31:0] misses,
    output logic [31:0] bypassed,
    output logic [31:0] too_long,
    output logic [31:0] dropped_main,
    output logic [31:0] dropped_defer,
    output logic [31:0] jumbos,
    output logic [31:0] runts,
    output logic [15:0] defer_high_water,
    output logic        has_wrong_tag
);
  localparam int TAG_W = 8;

  logic cpu_rx_valid  /*verilator public_flat_rd*/;
  logic cpu_rx_last  /*verilator public_flat_rd*/;
  logic cpu_rx_ready;
  logic cpu_tx_valid, cpu_tx_ready, cpu_tx_last;
  logic [8*W-1:0] cpu_rx_data, cpu_tx_data;
  logic [W-1:0] cpu_rx_keep, cpu_tx_keep;

  logic key_len_valid, key_len_ready, key_valid, key_ready, key_last;
  logic [7:0] key_len;
  logic [TAG_W-1:0] key_tag, val_tag;
  logic [8*W-1:0] key_data, val_data;
  logic [W-1:0] key_keep, val_keep;
  logic val_len_valid, val_len_ready, val_valid, val_ready, val_last;
  logic [15:0] val_len;
  logic [31:0] val_flags;
  logic [63:0] val_cas;

  // Memory's clients: 0 the lookup, 1 received frames, 2 frames to send.
  logic [2:0] req_valid, req_ready, mux_rsp_valid, mux_rsp_ready;
  logic lookup_write;
  logic [63:0] lookup_addr, rx_addr, tx_addr;
  logic [511:0] lookup_data, rx_line, mux_rsp_data;

  traffic #(
      .W(W),
      .TAG_W(TAG_W),
      .MAIN_BYTES(MAIN_BYTES),
      .DEFER_BYTES(DEFER_BYTES)
  ) manager (
      .clk,
      .rst,
      .host_mac,
      .host_ip,
      .host_port,
      .source_net,
      .source_mask,
      .reply_bytes_max,
      .patience,
      .rx_valid,
      .rx_ready,
      .rx_data,
      .rx_keep,
      .rx_last,
      .tx_valid,
      .tx_ready,
      .tx_data,
      .tx_keep,
      .tx_last,
      .cpu_rx_valid,
      .cpu_rx_ready,
      .cpu_rx_data,
      .cpu_rx_keep,
      .cpu_rx_last,
      .cpu_tx_valid,
      .cpu_tx_ready,
      .cpu_tx_data,
      .cpu_tx_keep,
      .cpu_tx_last,
      .write_mode,
      .key_len_valid,
      .key_len_ready,
      .key_len,
      .key_tag,
      .key_valid,
      .key_ready,
      .key_data,
      .key_keep,
      .key_last,
      .val_len_valid,
      .val_len_ready,
      .val_len,
      .val_tag,
      .val_flags,
      .val_cas,
      .val_valid,
      .val_ready,
      .val_data,
      .val_keep,
      .val_last,
      .hits,
      .misses,
      .bypassed,
      .too_long,
      .dropped_main,
      .dropped_defer,
      .jumbos,
      .runts,
      .defer_high_water,
      .has_wrong_tag
  );

  lookup #(
      .W(W),
      .SLOTS(SLOTS),
      .VALUE_BYTES(VALUE_BYTES),
      .HASH_BYTES(HASH_BYTES),
      .TAG_W(TAG_W)
  ) accelerator (
      .clk,
      .rst,
      .key_len_valid,
      .key_len_ready,
      .key_len,
      .key_tag,
      .key_valid,
      .key_ready,
      .key_data,
      .key_keep,
      .key_last,
      .val_len_valid,
      .val_len_ready,
      .val_len,
      .val_tag,
      .val_flags,
      .val_cas,
      .val_valid,
      .val_ready,
      .val_data,
      .val_keep,
      .val_last,
      .cmd_valid,
      .cmd_ready,
      .cmd_funct7,
      .cmd_rs1,
      .cmd_rs2,
      .rsp_valid,
      .rsp_ready,
      .rsp_rd,
      .write_mode,
      .lookup_idle,
      .mem_req_valid(req_valid[0]),
      .mem_req_ready(req_ready[0]),
      .mem_req_addr(lookup_addr),
      .mem_req_write(lookup_write),
      .mem_req_data(lookup_data),
      .mem_rsp_valid(mux_rsp_valid[0]),
      .mem_rsp_ready(mux_rsp_ready[0]),
      .mem_rsp_data(mux_rsp_data)
  );

  dma_rx #(
      .W(W),
      .ENTRIES(ENTRIES)
  ) receive (
      .clk,
      .rst,
      .in_valid(cpu_rx_valid),
      .in_ready(cpu_rx_ready),
      .in_data(cpu_rx_data),
      .in_keep(cpu_rx_keep),
      .in_last(cpu_rx_last),
      .post_valid(rx_post_valid),
      .post_ready(rx_post_ready),
      .post_line(rx_post_line),
      .count_valid(rx_count_valid),
      .count_ready(rx_count_ready),
      .count_data(rx_count_data),
      .read_pointer(rx_read_pointer),
      .current_pointer(rx_current_pointer),
      .write_pointer(rx_write_pointer),
      .irq(rx_irq),
      .irq_clear(rx_irq_clear),
      .mem_req_valid(req_valid[1]),
      .mem_req_ready(req_ready[1]),
      .mem_req_addr(rx_addr),
      .mem_req_data(rx_line),
      .mem_rsp_valid(mux_rsp_valid[1]),
      .mem_rsp_ready(mux_rsp_ready[1])
  );

  dma_tx #(
      .W(W),
      .ENTRIES(ENTRIES)
  ) transmit (
      .clk,
      .rst,
      .post_valid(tx_post_valid),
      .post_ready(tx_post_ready),
      .post_addr(tx_post_addr),
      .post_count(tx_post_count),
      .read_pointer(tx_read_pointer),
      .current_pointer(tx_current_pointer),
      .write_pointer(tx_write_pointer),
      .irq(tx_irq),
      .irq_clear(tx_irq_clear),
      .mem_req_valid(req_valid[2]),
      .mem_req_ready(req_ready[2]),
      .mem_req_addr(tx_addr),
      .mem_rsp_valid(mux_rsp_valid[2]),
      .mem_rsp_ready(mux_rsp_ready[2]),
      .mem_rsp_data(mux_rsp_data),
      .out_valid(cpu_tx_valid),
      .out_ready(cpu_tx_ready),
      .out_data(cpu_tx_data),
      .out_keep(cpu_tx_keep),
      .out_last(cpu_tx_last)
  );

  mem_mux mux (
      .clk,
      .rst,
      .req_valid,
      .req_ready,
      .req_addr({tx_addr, rx_addr, lookup_addr}),
      .req_write({1'b0, 1'b1, lookup_write}),
      .req_data({512'd0, rx_line, lookup_data}),
      .rsp_valid(mux_rsp_valid),
      .rsp_ready(mux_rsp_ready),
      .rsp_data(mux_rsp_data),
      .mem_req_valid,
      .mem_req_ready,
      .mem_req_addr,
      .mem_req_write,
      .mem_req_data,
      .mem_rsp_valid,
      .mem_rsp_ready,
      .mem_rsp_data
  );
endmodule
