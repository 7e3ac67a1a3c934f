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

endmodule
