// A memory with one port to write and one to read. What is read comes one cycle later, and is the
// old word if it is being written.
module tm_ram #(
    parameter int WIDTH = 8,
    parameter int WORDS = 1024,
    parameter int A = $clog2(WORDS)
) (
    input  logic             clk,
    input  logic             we,
    input  logic [    A-1:0] waddr,
    input  logic [WIDTH-1:0] wdata,
    input  logic [    A-1:0] raddr,
    output logic [WIDTH-1:0] rdata
);
  logic [WIDTH-1:0] mem[0:WORDS-1];

  always_ff @(posedge clk) begin
    if (we) mem[waddr] <= wdata;
    rdata <= mem[raddr];
  end
endmodule
