// Reads a key or a value from the CPU's memory, by whole lines, and sends it as a stream (section
// IV-A2). It takes one byte out of a line each cycle, at any alignment, whatever the stream's width:
// nothing is answered meanwhile in any case, and a line takes 30 to 50 cycles to come.
module mem_handler #(
    parameter int unsigned W = 1
) (
    input logic clk,
    input logic rst,

    // At least one byte. Taken if idle.
    input  logic        start,
    input  logic [63:0] start_addr,
    input  logic [16:0] start_len,
    output logic        idle,

    output logic           out_valid,
    input  logic           out_ready,
    output logic [8*W-1:0] out_data,
    output logic [  W-1:0] out_keep,
    output logic           out_last,

    output logic         mem_req_valid,
    input  logic         mem_req_ready,
    output logic [ 63:0] mem_req_addr,
    output logic         mem_req_write,
    output logic [511:0] mem_req_data,

    input  logic         mem_rsp_valid,
    output logic         mem_rsp_ready,
    input  logic [511:0] mem_rsp_data
);

  typedef enum logic [1:0] {
    IDLE,
    REQUEST,
    WAIT,
    BYTES
  } state_t;
  state_t state;

  logic [63:0] at;  // the next byte
  logic [16:0] left;
  logic [kv_pkg::LINE_BITS-1:0] line;
  logic [2:0] lane;  // of the next byte in its beat

  assign idle = state == IDLE && !out_valid;

  assign mem_req_valid = state == REQUEST;
  assign mem_req_addr = {at[63:6], 6'd0};
  assign mem_req_write = 1'b0;
  assign mem_req_data = '0;
  assign mem_rsp_ready = state == WAIT;

  logic take, is_last, fills;
  assign take = state == BYTES && (!out_valid || out_ready);
  assign is_last = left == 17'd1;
  assign fills = is_last || lane == 3'(W - 1);

  logic [7:0] next_byte;
  assign next_byte = line[{at[5:0], 3'd0}+:8];

  always_ff @(posedge clk) begin
    if (out_valid && out_ready) out_valid <= 1'b0;
    case (state)
      IDLE:
      if (start && idle) begin
        at <= start_addr;
        left <= start_len;
        lane <= 3'd0;
        state <= REQUEST;
      end
      REQUEST: if (mem_req_ready) state <= WAIT;
      WAIT:
      if (mem_rsp_valid) begin
        line  <= mem_rsp_data;
        state <= BYTES;
      end
      default:  // BYTES
      if (take) begin
        for (int i = 0; i < W; i++) begin
          if (3'(i) == lane) begin
            out_data[8*i+:8] <= next_byte;
            out_keep[i] <= 1'b1;
          end else if (lane == 3'd0) begin
            out_data[8*i+:8] <= 8'd0;
            out_keep[i] <= 1'b0;
          end
        end
        out_valid <= fills;
        out_last <= is_last;
        lane <= fills ? 3'd0 : lane + 3'd1;
        at <= at + 64'd1;
        left <= left - 17'd1;
        if (is_last) state <= IDLE;
`ifdef BUG_LINE
        else if (&at[5:1] && !at[0]) state <= REQUEST;
`else
        else if (&at[5:0]) state <= REQUEST;
`endif
      end
    endcase
    if (rst) begin
      state <= IDLE;
      out_valid <= 1'b0;
    end
  end

endmodule
