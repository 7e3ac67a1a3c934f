// First stage (section IV-A1): takes a key, writes it into one half of the doubled key memory, and
// hashes it on the way. The next stage reads the other half. When both are done with their keys,
// they exchange halves.
module key_write #(
    parameter int unsigned W = 1,
    parameter int unsigned SLOTS = 1024,
    parameter int unsigned HASH_BYTES = 2,
    parameter int unsigned TAG_W = 8
) (
    input logic clk,
    input logic rst,

    input  logic             len_valid,
    output logic             len_ready,
    input  logic [      7:0] len,
    input  logic [TAG_W-1:0] tag,

    input  logic           key_valid,
    output logic           key_ready,
    input  logic [8*W-1:0] key_data,
    input  logic [  W-1:0] key_keep,
    input  logic           key_last,

    // The key that is whole. The halves are exchanged when it is taken.
    output logic                     out_valid,
    input  logic                     out_ready,
    output logic [              7:0] out_len,
    output logic [        TAG_W-1:0] out_tag,
    output logic [$clog2(SLOTS)-1:0] out_primary,
    output logic [$clog2(SLOTS)-1:0] out_secondary,

    // The key that was taken last. Bytes beyond its end are zero within its last word.
    input  logic [$clog2(kv_pkg::KEY_SPACE/W)-1:0] rd_word,
    output logic [                        8*W-1:0] rd_data
);

  localparam int unsigned WORDS = kv_pkg::KEY_SPACE / W;
  localparam int unsigned WORD_W = $clog2(WORDS);
  localparam int unsigned SLOT_W = $clog2(SLOTS);

  typedef enum logic [1:0] {
    IDLE,
    BYTES,
    WHOLE
  } state_t;
  state_t state;

  logic [WORD_W-1:0] word;
  logic half;  // the one that is written
  logic read_half;

  assign len_ready = state == IDLE;
  assign key_ready = state == BYTES;
  assign out_valid = state == WHOLE;

  logic put;
  assign put = key_valid && key_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
      half  <= 1'b0;
    end else begin
      case (state)
        IDLE:
        if (len_valid) begin
          state   <= len == 8'd0 ? WHOLE : BYTES;
          out_len <= len;
          out_tag <= tag;
          word    <= '0;
        end
        BYTES:
        if (put) begin
          word <= word + 1'b1;
          if (key_last) state <= WHOLE;
        end
        default:  // WHOLE
        if (out_ready) begin
          state <= IDLE;
`ifndef BUG_HALVES
          half  <= ~half;
`endif
        end
      endcase
    end
  end

`ifdef BUG_HALVES
  assign read_half = half;
`else
  assign read_half = ~half;
`endif

  // Bytes beyond the end are stored as zeros, so that words can be compared as a whole.
  logic [8*W-1:0] data;
  always_comb begin
    for (int i = 0; i < W; i++) begin
`ifdef BUG_PADDING
      data[8*i+:8] = key_data[8*i+:8] | {8{1'b0 & key_keep[i]}};
`else
      data[8*i+:8] = key_data[8*i+:8] & {8{key_keep[i]}};
`endif
    end
  end

  sdp_ram #(
      .WIDTH(8 * W),
      .DEPTH(2 * WORDS)
  ) halves (
      .clk,
      .we   (put),
      .waddr({half, word}),
      .wdata(data),
      .re   (1'b1),
      .raddr({read_half, rd_word}),
      .rdata(rd_data)
  );

  generate
    if (W == 1) begin : narrow
      logic [8*HASH_BYTES-1:0] primary, secondary;
      pearson #(
          .HASH_BYTES(HASH_BYTES),
          .SECONDARY (1'b0)
      ) primary_hash (
          .clk,
          .first(word == '0),
          .valid(put),
          .data,
          .hash (primary)
      );
      pearson #(
          .HASH_BYTES(HASH_BYTES),
          .SECONDARY (1'b1)
      ) secondary_hash (
          .clk,
          .first(word == '0),
          .valid(put),
          .data,
          .hash (secondary)
      );
      assign out_primary   = primary[SLOT_W-1:0];
      assign out_secondary = secondary[SLOT_W-1:0];
      logic unused_bits;
      assign unused_bits = &{1'b0, primary, secondary};
    end else begin : wide
      logic [31:0] hash;
      crc32c #(
          .W(W)
      ) both_hashes (
          .clk,
          .first(word == '0),
          .valid(put),
          .len  (out_len),
          .data,
          .hash
      );
      assign out_primary   = hash[SLOT_W-1:0];
      assign out_secondary = hash[16+:SLOT_W];
      logic unused_bits;
      assign unused_bits = &{1'b0, hash};
    end
  endgenerate

`ifdef FORMAL_KEY_WRITE
  `include "key_write.svh"
`endif
endmodule
