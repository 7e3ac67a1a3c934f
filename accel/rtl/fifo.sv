// A queue of DEPTH words, at least 2, in order.
//
// Up to LUT_WORDS words lie in LUT RAM, and a word can be taken one cycle after it was put in. More
// words lie in block RAM, whose read is registered: a word can be taken two cycles after it was put
// in.
// Both move one word per cycle. `level` is the number of words that were put in and not yet taken.
module fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 16,
    parameter int LUT_WORDS = 64,
    localparam int LEVEL_BITS = $clog2(DEPTH + 1)
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic                  in_valid,
    output logic                  in_ready,
    input  logic [     WIDTH-1:0] in_data,
    output logic                  out_valid,
    input  logic                  out_ready,
    output logic [     WIDTH-1:0] out_data,
    output logic [LEVEL_BITS-1:0] level
);
  localparam int PLACE_BITS = $clog2(DEPTH);
  localparam logic [PLACE_BITS-1:0] LAST_PLACE = PLACE_BITS'(DEPTH - 1);

  logic [WIDTH-1:0] words[DEPTH];
  logic [PLACE_BITS-1:0] write_place;
  logic [PLACE_BITS-1:0] read_place;
  logic put, take;

`ifdef BUG_FIFO_OVERFLOW
  assign in_ready = 1'b1;
`else
  assign in_ready = level != LEVEL_BITS'(DEPTH);
`endif
  assign put  = in_valid && in_ready;
  assign take = out_valid && out_ready;

  function automatic logic [PLACE_BITS-1:0] after(input logic [PLACE_BITS-1:0] place);
    after = place == LAST_PLACE ? '0 : place + 1'b1;
  endfunction

  always_ff @(posedge clk) begin
    if (put) words[write_place] <= in_data;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      write_place <= '0;
      level <= '0;
    end else begin
      if (put) write_place <= after(write_place);
      level <= level + LEVEL_BITS'(put) - LEVEL_BITS'(take);
    end
  end

  generate
    if (DEPTH <= LUT_WORDS) begin : g_lut
      assign out_valid = level != '0;
      assign out_data  = words[read_place];

      always_ff @(posedge clk) begin
        if (rst) read_place <= '0;
`ifdef BUG_FIFO_ORDER
        else if (take && !put) read_place <= after(read_place);
`else
        else if (take) read_place <= after(read_place);
`endif
      end
    end else begin : g_block
      // The words in the RAM: all but the one in the output register.
      logic [LEVEL_BITS-1:0] stored;
      logic fetch;
      assign stored = level - LEVEL_BITS'(out_valid);
`ifdef BUG_FIFO_EARLY_FETCH
      assign fetch = stored != '0;
`else
      assign fetch = stored != '0 && (take || !out_valid);
`endif

      always_ff @(posedge clk) begin
        if (fetch) out_data <= words[read_place];
      end

      always_ff @(posedge clk) begin
        if (rst) begin
          read_place <= '0;
          out_valid  <= 1'b0;
        end else begin
          if (fetch) read_place <= after(read_place);
          if (fetch) out_valid <= 1'b1;
          else if (take) out_valid <= 1'b0;
        end
      end
    end
  endgenerate

`ifdef FORMAL_FIFO
  `include "fifo.svh"
`endif
endmodule
