// Joins two streams of frames into one. A frame leaves whole: the other stream waits for its last
// beat. When both have a frame, they take turns, so that a frame waits for one other frame at most.
//
// A beat passes in the cycle in which it arrives, and there is no gap between two frames.
module tm_arb #(
    parameter int W = 1
) (
    input  logic           clk,
    input  logic           rst,
    input  logic           a_valid,
    output logic           a_ready,
    input  logic [8*W-1:0] a_data,
    input  logic [  W-1:0] a_keep,
    input  logic           a_last,
    input  logic           b_valid,
    output logic           b_ready,
    input  logic [8*W-1:0] b_data,
    input  logic [  W-1:0] b_keep,
    input  logic           b_last,
    output logic           out_valid,
    input  logic           out_ready,
    output logic [8*W-1:0] out_data,
    output logic [  W-1:0] out_keep,
    output logic           out_last
);
  // The stream whose beat is offered, which cannot change until the last beat has been taken.
  logic held;
  // The stream that was served last, or is being served while `held`; 1 is stream b.
  logic served;
  logic choice;

  always_comb begin
    if (held) choice = served;
`ifdef BUG_ARB_STARVES
    else choice = !a_valid;
`else
    else if (a_valid && b_valid) choice = !served;
    else choice = b_valid;
`endif
  end

  assign out_valid = choice ? b_valid : a_valid;
  assign out_data  = choice ? b_data : a_data;
  assign out_keep  = choice ? b_keep : a_keep;
  assign out_last  = choice ? b_last : a_last;
`ifdef BUG_ARB_LOSES
  assign a_ready   = out_ready && (!choice || out_last);
`else
  assign a_ready   = out_ready && !choice;
`endif
  assign b_ready   = out_ready && choice;

  always_ff @(posedge clk) begin
    if (rst) begin
      held   <= 1'b0;
      served <= 1'b0;
    end else if (out_valid) begin
      served <= choice;
`ifdef BUG_ARB_MIXES
      held   <= !out_ready;
`else
      held   <= !(out_ready && out_last);
`endif
    end
  end

`ifdef FORMAL_TM_ARB
  `include "tm_arb.svh"
`endif
endmodule
