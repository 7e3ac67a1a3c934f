// A short queue in distributed memory. The oldest entry is visible while `valid` is high. Who
// pushes knows that there is room.
module tm_queue #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 16,
    parameter int A = $clog2(DEPTH)
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             push,
    input  logic [WIDTH-1:0] in,
    output logic             valid,
    output logic [WIDTH-1:0] out,
    input  logic             pop,
    output logic [      A:0] used
);
  logic [WIDTH-1:0] mem[0:DEPTH-1];
  logic [A-1:0] write_at, read_at;

  assign valid = used != 0;
  assign out   = mem[read_at];

  always_ff @(posedge clk) begin
    if (push) mem[write_at] <= in;
    if (rst) begin
      write_at <= '0;
      read_at  <= '0;
      used     <= '0;
    end else begin
      if (push) write_at <= write_at + 1'b1;
      if (pop) read_at <= read_at + 1'b1;
      if (push && !pop) used <= used + 1'b1;
      if (pop && !push) used <= used - 1'b1;
    end
  end
endmodule
