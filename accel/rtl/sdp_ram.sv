// A memory with one port to write and one to read. A word read in the cycle in which it is written
// is the old one.
module sdp_ram #(
    parameter int unsigned WIDTH = 8,
    parameter int unsigned DEPTH = 1024
) (
    input  logic                     clk,
    input  logic                     we,
    input  logic [$clog2(DEPTH)-1:0] waddr,
    input  logic [        WIDTH-1:0] wdata,
    input  logic                     re,     // rdata keeps its value without
    input  logic [$clog2(DEPTH)-1:0] raddr,
    output logic [        WIDTH-1:0] rdata
);

  logic [WIDTH-1:0] mem[DEPTH]  /*verilator public_flat_rd*/;

  always_ff @(posedge clk) begin
    if (we) mem[waddr] <= wdata;
    if (re) rdata <= mem[raddr];
  end

endmodule
