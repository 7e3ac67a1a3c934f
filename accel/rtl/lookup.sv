// The lookup: a key in, its value or a miss out, and the operations that change what is stored
// (section IV-A of the paper).
//
// Lookup requests. The length first, then the bytes; one request's bytes end before the next one's
// length. Bytes lie in key_data from bit 0 on: byte i of a beat is key_data[8*i +: 8]. Each beat
// but the last has W bytes, and key_last is in the beat with the last byte of key_len. A length of
// 0 has no bytes and is a miss. Once key_len is accepted the bytes must come; nothing else waits
// for them but the switch to write mode.
//
// Write mode. key_len_ready is low while write_mode is high. The offerer may then, and only then,
// withdraw key_len_valid: key_len_valid may depend on write_mode in the same cycle. What was
// accepted before is answered; the command's reply comes after the last of those answers.
//
// Replies, in the order of requests. val_len, val_tag, val_flags and val_cas hold while
// val_len_valid waits for val_len_ready. If val_len is not 0, its bytes follow: the first is
// offered after val_len was accepted, and the next reply's val_len_valid comes after the last was.
//
// After rst the circuit clears its slots, one each cycle. cmd_ready and key_len_ready stay low
// meanwhile. It begins in read mode.
module lookup #(
    parameter int unsigned W = 1,  // bytes in a beat: 1 or 8
    parameter int unsigned SLOTS = 1024,  // a power of two, at most 65,536
    parameter int unsigned VALUE_BYTES = 524288,  // a power of two
    parameter int unsigned HASH_BYTES = 2,  // bytes of Pearson's hash
    parameter int unsigned TAG_W = kv_pkg::TAG_W
) (
    input logic clk,
    input logic rst,

    // Requests.
    input  logic             key_len_valid,
    output logic             key_len_ready,
    input  logic [      7:0] key_len,
    input  logic [TAG_W-1:0] key_tag,

    input  logic           key_valid,
    output logic           key_ready,
    input  logic [8*W-1:0] key_data,
    input  logic [  W-1:0] key_keep,
    input  logic           key_last,

    // Replies.
    output logic             val_len_valid,
    input  logic             val_len_ready,
    output logic [     15:0] val_len,
    output logic [TAG_W-1:0] val_tag,
    output logic [     31:0] val_flags,
    output logic [     63:0] val_cas,

    output logic           val_valid,
    input  logic           val_ready,
    output logic [8*W-1:0] val_data,
    output logic [  W-1:0] val_keep,
    output logic           val_last,

    // Commands, one at a time: cmd_ready is low until the reply of the last one was accepted.
    input  logic        cmd_valid,
    output logic        cmd_ready,
    input  logic [ 6:0] cmd_funct7,
    input  logic [63:0] cmd_rs1,
    input  logic [63:0] cmd_rs2,

    output logic        rsp_valid,
    input  logic        rsp_ready,
    output logic [63:0] rsp_rd,

    // High from the moment that a switch to write mode was accepted until the switch to read mode.
    output logic write_mode,
    // No request is in the circuit: none has been accepted whose reply has not been.
    output logic lookup_idle,

    // The CPU's memory, in whole lines: mem_req_addr is a multiple of 64. One request at a time.
    // This half only reads: mem_req_write is 0.
    output logic         mem_req_valid,
    input  logic         mem_req_ready,
    output logic [ 63:0] mem_req_addr,
    output logic         mem_req_write,
    output logic [511:0] mem_req_data,

    input  logic         mem_rsp_valid,
    output logic         mem_rsp_ready,
    input  logic [511:0] mem_rsp_data
);

  localparam int unsigned SLOT_W = $clog2(SLOTS);
  localparam int unsigned WORD_W = $clog2(kv_pkg::KEY_SPACE / W);
  localparam int unsigned COUNT_W = kv_pkg::COUNT_W;

  // The first stage takes keys from the port, and in write mode from the memory handler.
  logic from_memory;
  logic ctrl_len_valid;
  logic [7:0] ctrl_len;
  logic [TAG_W-1:0] ctrl_tag;
  logic mem_valid, mem_ready, mem_last;
  logic [8*W-1:0] mem_data;
  logic [W-1:0] mem_keep;
  logic len_ready, bytes_ready;
  logic clearing;

  assign key_len_ready = len_ready && !write_mode && !clearing;
  assign key_ready = bytes_ready && !from_memory;

  logic whole_valid, whole_ready;
  logic [7:0] whole_len;
  logic [TAG_W-1:0] whole_tag;
  logic [SLOT_W-1:0] whole_primary, whole_secondary;
  logic [WORD_W-1:0] key_word;
  logic [8*W-1:0] key_word_data;

  key_write #(
      .W(W),
      .SLOTS(SLOTS),
      .HASH_BYTES(HASH_BYTES),
      .TAG_W(TAG_W)
  ) key_write_i (
      .clk,
      .rst,
      .len_valid(from_memory ? ctrl_len_valid : key_len_valid && !write_mode && !clearing),
      .len_ready,
      .len(from_memory ? ctrl_len : key_len),
      .tag(from_memory ? ctrl_tag : key_tag),
      .key_valid(from_memory ? mem_valid : key_valid),
      .key_ready(bytes_ready),
      .key_data(from_memory ? mem_data : key_data),
      .key_keep(from_memory ? mem_keep : key_keep),
      .key_last(from_memory ? mem_last : key_last),
      .out_valid(whole_valid),
      .out_ready(whole_ready),
      .out_len(whole_len),
      .out_tag(whole_tag),
      .out_primary(whole_primary),
      .out_secondary(whole_secondary),
      .rd_word(key_word),
      .rd_data(key_word_data)
  );

  logic deleting, reserving;
  logic [COUNT_W-1:0] weight;
  logic res_valid, res_ready, res_hit;
  logic [TAG_W-1:0] res_tag;
  logic done, done_found;
  logic [SLOT_W-1:0] found_slot;
  logic ask_valid, ask_owned;
  logic [SLOT_W-1:0] ctrl_slot;
  logic inc_valid, set_valid, rd_valid;
  logic [COUNT_W-1:0] set_count, rd_count;
  logic [SLOT_W-1:0] rd_slot;
  logic forget;
  logic clearing_slots, clearing_counts;
  assign clearing = clearing_slots || clearing_counts;

  key_compare #(
      .W(W),
      .SLOTS(SLOTS),
      .TAG_W(TAG_W)
  ) key_compare_i (
      .clk,
      .rst,
      .deleting,
      .reserving,
      .weight,
      .in_valid(whole_valid),
      .in_ready(whole_ready),
      .in_len(whole_len),
      .in_tag(whole_tag),
      .in_primary(whole_primary),
      .in_secondary(whole_secondary),
      .key_word,
      .key_data(key_word_data),
      .res_valid,
      .res_ready,
      .res_hit,
      .res_tag,
      .done,
      .done_found,
      .slot(found_slot),
      .ask_valid,
      .ask_slot(ctrl_slot),
      .ask_owned,
      .inc_valid,
      .set_valid,
      .set_count,
      .rd_valid,
      .rd_slot,
      .rd_count,
      .forget,
      .clearing(clearing_slots)
  );

  logic reset_counts, reset_counts_ready;

  weights #(
      .SLOTS(SLOTS)
  ) weights_i (
      .clk,
      .rst,
      .inc_valid,
      .inc_slot(found_slot),
      .set_valid,
      .set_slot(found_slot),
      .set_count,
      .rd_valid,
      .rd_slot,
      .rd_count,
      .reset_valid(reset_counts),
      .reset_ready(reset_counts_ready),
      .clearing(clearing_counts)
  );

  logic set_address, set_length, set_cas;
  logic [63:0] set_data;
  logic write_begin, write_fits;
  logic [16:0] write_len;

  value_mem #(
      .W(W),
      .SLOTS(SLOTS),
      .VALUE_BYTES(VALUE_BYTES),
      .TAG_W(TAG_W)
  ) value_mem_i (
      .clk,
      .rst,
      .in_valid(res_valid),
      .in_ready(res_ready),
      .in_hit(res_hit),
      .in_slot(found_slot),
      .in_tag(res_tag),
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
      .forget,
      .forget_slot(found_slot),
      .set_address,
      .set_length,
      .set_cas,
      .set_slot(ctrl_slot),
      .set_data,
      .write_begin,
      .write_slot(ctrl_slot),
      .write_fits,
      .write_len,
      .write_valid(mem_valid && !from_memory),
      .write_data(mem_data),
      .write_keep(mem_keep)
  );

  logic mem_start, mem_idle;
  logic [63:0] mem_addr;
  logic [16:0] mem_len;
  assign mem_ready = from_memory ? bytes_ready : 1'b1;

  mem_handler #(
      .W(W)
  ) mem_handler_i (
      .clk,
      .rst,
      .start(mem_start),
      .start_addr(mem_addr),
      .start_len(mem_len),
      .idle(mem_idle),
      .out_valid(mem_valid),
      .out_ready(mem_ready),
      .out_data(mem_data),
      .out_keep(mem_keep),
      .out_last(mem_last),
      .mem_req_valid,
      .mem_req_ready,
      .mem_req_addr,
      .mem_req_write,
      .mem_req_data,
      .mem_rsp_valid,
      .mem_rsp_ready,
      .mem_rsp_data
  );

  ctrl #(
      .SLOTS(SLOTS),
      .TAG_W(TAG_W)
  ) ctrl_i (
      .clk,
      .rst,
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
      .clearing,
      .from_memory,
      .key_len_valid(ctrl_len_valid),
      .key_len_ready(len_ready),
      .key_len(ctrl_len),
      .key_tag(ctrl_tag),
      .deleting,
      .reserving,
      .weight,
      .done,
      .done_found,
      .done_slot(found_slot),
      .ask_valid,
      .slot(ctrl_slot),
      .ask_owned,
      .set_address,
      .set_length,
      .set_cas,
      .set_data,
      .write_begin,
      .write_fits,
      .write_len,
      .reset_counts,
      .reset_counts_ready,
      .mem_start,
      .mem_addr,
      .mem_len,
      .mem_idle
  );

  // Requests in the circuit: one in each stage at most.
  logic [2:0] requests;
  logic comes, goes;
  assign comes = key_len_valid && key_len_ready;
  assign goes = (val_len_valid && val_len_ready && val_len == 16'd0)
      || (val_valid && val_ready && val_last);
  assign lookup_idle = requests == 3'd0;
  always_ff @(posedge clk) begin
    if (comes && !goes) requests <= requests + 3'd1;
    if (goes && !comes) requests <= requests - 3'd1;
    if (rst) requests <= 3'd0;
  end

endmodule
