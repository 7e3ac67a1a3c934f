// One count of hits to a slot, of 6 bits, which stays at its maximum (section VI-A).
//
// A reset sets all counts to zero at once, while a sweep over the memory takes one cycle to a slot:
// each count carries one bit of the number of resets, and a count of the reset before is zero. The
// sweep brings all counts to the present reset, so that one bit is enough for the next one, which
// waits for the sweep. Hits have precedence over the sweep and are counted exactly during it.
module weights #(
    parameter int unsigned SLOTS = 1024
) (
    input logic clk,
    input logic rst,

    // A hit. Taken in any cycle.
    input logic                     inc_valid,
    input logic [$clog2(SLOTS)-1:0] inc_slot,

    // Sets a count. The caller sees to it that no hit comes in the same cycle: there are none in
    // write mode.
    input logic                                set_valid,
    input logic [           $clog2(SLOTS)-1:0] set_slot,
    input logic [     kv_pkg::COUNT_W-1:0] set_count,

    // Reads a count, likewise. rd_count is valid one cycle later.
    input  logic                            rd_valid,
    input  logic [       $clog2(SLOTS)-1:0] rd_slot,
    output logic [ kv_pkg::COUNT_W-1:0] rd_count,

    // Sets all to zero.
    input  logic reset_valid,
    output logic reset_ready,

    // The sweep after rst is not done yet. There must be no hits.
    output logic clearing
);

  localparam int unsigned SLOT_W = $clog2(SLOTS);
  localparam int unsigned COUNT_W = kv_pkg::COUNT_W;

  logic epoch  /*verilator public_flat_rd*/;
  logic sweeping;
  logic [SLOT_W-1:0] sweep_slot;

  // First cycle: the memory is read. One operation each cycle; the sweep waits for all others.
  logic sweep;
  logic [SLOT_W-1:0] slot;
  assign sweep = sweeping && !inc_valid && !set_valid && !rd_valid;
  always_comb begin
    slot = sweep_slot;
    if (rd_valid) slot = rd_slot;
    if (set_valid) slot = set_slot;
    if (inc_valid) slot = inc_slot;
  end

  // Second cycle: the count is written back.
  logic inc_q, set_q, sweep_q;
  logic [SLOT_W-1:0] slot_q;
  logic [COUNT_W-1:0] set_count_q;
  logic forward_q;  // the cycle before wrote this slot, after the memory was read
  logic [COUNT_W:0] forward_data;

  logic [COUNT_W:0] stored, read;
  logic [COUNT_W-1:0] count, next;
  logic write;
  assign read = forward_q ? forward_data : stored;
`ifdef BUG_SWEEP
  assign count = read[COUNT_W-1:0];
`else
  assign count = read[COUNT_W] == epoch ? read[COUNT_W-1:0] : '0;
`endif
  assign write = inc_q || set_q || sweep_q;
  always_comb begin
    next = count;
`ifdef BUG_SATURATE
    if (inc_q) next = count + 1'b1;
`else
    if (inc_q && count != kv_pkg::COUNT_MAX) next = count + 1'b1;
`endif
    if (set_q) next = set_count_q;
`ifdef BUG_SWEEP
    if (sweep_q) next = '0;
`else
    if (sweep_q && clearing) next = '0;
`endif
  end
  assign rd_count = count;

  assign reset_ready = !sweeping && !write;

  always_ff @(posedge clk) begin
    inc_q <= inc_valid;
    set_q <= set_valid;
    sweep_q <= sweep;
    slot_q <= slot;
    set_count_q <= set_count;
    forward_q <= write && slot_q == slot;
    forward_data <= {epoch, next};
    if (sweep) begin
      sweep_slot <= sweep_slot + 1'b1;
      if (sweep_slot == SLOT_W'(SLOTS - 1)) sweeping <= 1'b0;
    end
    if (clearing && !sweeping && !sweep_q) clearing <= 1'b0;
    if (reset_valid && reset_ready) begin
      epoch <= ~epoch;
      sweeping <= 1'b1;
      sweep_slot <= '0;
    end
    if (rst) begin
      epoch <= 1'b0;
      clearing <= 1'b1;
      sweeping <= 1'b1;
      sweep_slot <= '0;
      inc_q <= 1'b0;
      set_q <= 1'b0;
      sweep_q <= 1'b0;
    end
  end

  sdp_ram #(
      .WIDTH(COUNT_W + 1),
      .DEPTH(SLOTS)
  ) counts (
      .clk,
      .we   (write),
      .waddr(slot_q),
      .wdata({epoch, next}),
      .re   (1'b1),
      .raddr(slot),
      .rdata(stored)
  );

`ifdef FORMAL_WEIGHTS
  `include "weights.svh"
`endif
endmodule
