// The hash of the wide circuit: CRC-32C (Castagnoli) of the key's words of 8 bytes, the last one
// filled up with zeros. The length is folded into the initial value, so that a key differs from the
// same key with zeros behind it. Eight steps of Pearson's hash in one cycle would be a chain of
// eight tables; this is one network of XORs of any width. The two halves are the two hashes.
module crc32c #(
    parameter int unsigned W = 8
) (
    input  logic           clk,
    input  logic           first,  // data is the first word of a key
    input  logic           valid,
    input  logic [    7:0] len,    // of the key
    input  logic [8*W-1:0] data,
    output logic [   31:0] hash    // of the words so far
);

  localparam logic [31:0] POLYNOMIAL = 32'h82f6_3b78;  // reflected

  function automatic logic [31:0] fold(input logic [31:0] from, input logic [8*W-1:0] word);
    logic [31:0] crc;
    integer i;
    crc = from;
    for (i = 0; i < 8 * W; i = i + 1) begin
      crc = {1'b0, crc[31:1]} ^ ((crc[0] ^ word[i]) ? POLYNOMIAL : 32'd0);
    end
    fold = crc;
  endfunction

  logic [31:0] from;
  assign from = first ? {24'hff_ffff, ~len} : hash;
  always_ff @(posedge clk) if (valid) hash <= fold(from, data);

endmodule
