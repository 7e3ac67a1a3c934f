// Carries the operations out (section VI-A), one at a time. All but the switch of the mode are
// refused in read mode. The switch to write mode ends when no lookup is under way.
module ctrl #(
    parameter int unsigned SLOTS = 1024,
    parameter int unsigned TAG_W = 8
) (
    input logic clk,
    input logic rst,

    input  logic        cmd_valid,
    output logic        cmd_ready,
    input  logic [ 6:0] cmd_funct7,
    input  logic [63:0] cmd_rs1,
    input  logic [63:0] cmd_rs2,

    output logic        rsp_valid,
    input  logic        rsp_ready,
    output logic [63:0] rsp_rd,

    output logic write_mode,
    // No request is in the lookup.
    input  logic lookup_idle,
    // The memories are being cleared after rst.
    input  logic clearing,

    // The key of a deletion or reservation goes through the lookup's first two stages. from_memory:
    // these get their key from the memory handler.
    output logic                       from_memory,
    output logic                       key_len_valid,
    input  logic                       key_len_ready,
    output logic [                7:0] key_len,
    output logic [          TAG_W-1:0] key_tag,
    output logic                       deleting,
    output logic                       reserving,
    output logic [kv_pkg::COUNT_W-1:0] weight,
    input  logic                       done,
    input  logic                       done_found,
    input  logic [  $clog2(SLOTS)-1:0] done_slot,

    output logic                     ask_valid,
    output logic [$clog2(SLOTS)-1:0] slot,
    input  logic                     ask_owned,

    output logic        set_address,
    output logic        set_length,
    output logic        set_cas,
    output logic [63:0] set_data,

    output logic        write_begin,
    input  logic        write_fits,
    input  logic [16:0] write_len,

    output logic reset_counts,
    input  logic reset_counts_ready,

    output logic        mem_start,
    output logic [63:0] mem_addr,
    output logic [16:0] mem_len,
    input  logic        mem_idle
);

  localparam int unsigned SLOT_W = $clog2(SLOTS);

  typedef enum logic [3:0] {
    IDLE,
    DECODE,
    DRAIN,
    KEY,
    SEARCH,
    ASK,
    OWNED,
    FITS,
    VALUE,
    RESET,
    RESPOND
  } state_t;
  state_t state;

  logic [ 6:0] operation;
  logic [63:0] rs1;
  logic [63:0] rs2;

  assign cmd_ready = state == IDLE && !clearing;
  assign rsp_valid = state == RESPOND;

  assign deleting = operation == kv_pkg::OP_DELETE && from_memory;
  assign reserving = operation == kv_pkg::OP_RESERVE && from_memory;
  assign weight = rs2[13:8];
  assign from_memory = state == KEY || state == SEARCH;
  assign key_len_valid = state == KEY;
  assign key_len = rs2[7:0];
  assign key_tag = '0;

  assign slot = rs1[SLOT_W-1:0];
  assign ask_valid = state == ASK;

  logic owned;
  assign owned = state == OWNED && ask_owned;
  assign set_address = owned && operation == kv_pkg::OP_ADDRESS;
  assign set_length = owned && operation == kv_pkg::OP_LENGTH;
  assign set_cas = owned && operation == kv_pkg::OP_CAS;
  assign set_data = rs2;
  assign write_begin = owned && operation == kv_pkg::OP_WRITE_VALUE;

  assign reset_counts = state == RESET;

  logic fits;
  assign fits = state == FITS && write_fits && write_len != 17'd0;
  assign mem_start = (state == KEY && key_len_ready) || fits;
  assign mem_addr = state == KEY ? rs1 : rs2;
  assign mem_len = state == KEY ? {9'd0, rs2[7:0]} : write_len;

  always_ff @(posedge clk) begin
    case (state)
      IDLE: begin
        operation <= cmd_funct7;
        rs1 <= cmd_rs1;
        rs2 <= cmd_rs2;
        if (cmd_valid && cmd_ready) begin
          state <= DECODE;
          if (cmd_funct7 == kv_pkg::OP_SWITCH_MODE) write_mode <= cmd_rs1[0];
        end
      end

      DECODE: begin
        state  <= RESPOND;
        rsp_rd <= kv_pkg::RD_READ_MODE;
        case (operation)
          kv_pkg::OP_SWITCH_MODE: state <= DRAIN;
`ifdef BUG_READ_MODE
          kv_pkg::OP_DELETE, kv_pkg::OP_RESERVE: begin
`else
          kv_pkg::OP_DELETE, kv_pkg::OP_RESERVE:
          if (write_mode) begin
`endif
            rsp_rd <= kv_pkg::RD_BAD_KEY;
            if (rs2[7:0] != 8'd0) state <= KEY;
          end
          kv_pkg::OP_ADDRESS, kv_pkg::OP_LENGTH, kv_pkg::OP_CAS, kv_pkg::OP_WRITE_VALUE:
          if (write_mode) begin
            rsp_rd <= kv_pkg::RD_BAD_SLOT;
            if (rs1 < 64'(SLOTS)) state <= ASK;
          end
          kv_pkg::OP_RESET_COUNTS: if (write_mode) state <= RESET;
          default: rsp_rd <= kv_pkg::RD_BAD_OP;
        endcase
      end

      DRAIN: begin
        rsp_rd <= kv_pkg::RD_OK;
`ifdef BUG_DRAIN
        state <= RESPOND;
`else
        if (!write_mode || lookup_idle) state <= RESPOND;
`endif
      end

      KEY: if (key_len_ready) state <= SEARCH;

      SEARCH: begin
        rsp_rd <= done_found ? 64'(done_slot) : kv_pkg::RD_NO_SLOT;
        if (done) state <= RESPOND;
      end

      ASK: state <= OWNED;

      OWNED: begin
        rsp_rd <= ask_owned ? kv_pkg::RD_OK : kv_pkg::RD_BAD_SLOT;
        state  <= write_begin ? FITS : RESPOND;
      end

      FITS: begin
        if (!write_fits) rsp_rd <= kv_pkg::RD_BAD_VALUE;
        state <= fits ? VALUE : RESPOND;
      end

      VALUE: if (mem_idle) state <= RESPOND;

      RESET: begin
        rsp_rd <= kv_pkg::RD_OK;
        if (reset_counts_ready) state <= RESPOND;
      end

      default: if (rsp_ready) state <= IDLE;  // RESPOND
    endcase
    if (rst) begin
      state <= IDLE;
      write_mode <= 1'b0;
    end
  end

`ifdef FORMAL_CTRL
  `include "ctrl.svh"
`endif
endmodule
