// Third stage (section IV-A1): where each slot's value lies, how long it is, its flags and its CAS;
// and the memory that all values share. Sends a value, or a length of zero for a miss.
module value_mem #(
    parameter int unsigned W = 1,
    parameter int unsigned SLOTS = 1024,
    parameter int unsigned VALUE_BYTES = 524288,
    parameter int unsigned TAG_W = 8
) (
    input logic clk,
    input logic rst,

    // A lookup's result.
    input  logic                     in_valid,
    output logic                     in_ready,
    input  logic                     in_hit,
    input  logic [$clog2(SLOTS)-1:0] in_slot,
    input  logic [        TAG_W-1:0] in_tag,

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

    // Changes what is known of a slot. In write mode, in any cycle.
    input logic                     forget,       // all of it becomes zero
    input logic [$clog2(SLOTS)-1:0] forget_slot,
    input logic                     set_address,
    input logic                     set_length,   // with the flags
    input logic                     set_cas,
    input logic [$clog2(SLOTS)-1:0] set_slot,
    input logic [             63:0] set_data,

    // Makes ready to write a slot's value. One cycle later, write_fits says whether it lies within
    // the memory, and write_len is its length.
    input  logic                     write_begin,
    input  logic [$clog2(SLOTS)-1:0] write_slot,
    output logic                     write_fits,
    output logic [             16:0] write_len,

    // Its bytes. Taken in any cycle but the one after write_begin.
    input logic           write_valid,
    input logic [8*W-1:0] write_data,
    input logic [  W-1:0] write_keep
);

  localparam int unsigned SLOT_W = $clog2(SLOTS);
  localparam int unsigned ADDR_W = $clog2(VALUE_BYTES);
  localparam int unsigned LOG_W = $clog2(W);
  localparam int unsigned LANE_W = W > 1 ? LOG_W : 1;
  localparam int unsigned BANK_WORDS = VALUE_BYTES / W;
  localparam int unsigned BANK_W = $clog2(BANK_WORDS);

  // What is known of a slot. An address beyond the memory is kept as one with all bits set, and a
  // length of more than 65,535 as 65,536: no value of theirs fits.
  logic [ADDR_W:0] address_data, address;
  logic [16:0] length_data, length;
  logic [SLOT_W-1:0] change_slot, table_slot;
  assign change_slot = forget ? forget_slot : set_slot;
  assign table_slot  = write_begin ? write_slot : in_slot;
  always_comb begin
    address_data = set_data[63:ADDR_W] == '0 ? {1'b0, set_data[ADDR_W-1:0]} : '1;
    // The address after the last byte is that of an empty value.
    if (set_data == 64'(VALUE_BYTES)) address_data = (ADDR_W + 1)'(VALUE_BYTES);
    length_data = set_data[31:16] == '0 ? {1'b0, set_data[15:0]} : 17'h1_0000;
    if (forget) begin
      address_data = '0;
      length_data  = '0;
    end
  end

  logic [31:0] flags;
  logic [63:0] cas;

  sdp_ram #(
      .WIDTH(ADDR_W + 1),
      .DEPTH(SLOTS)
  ) addresses (
      .clk,
      .we   (forget || set_address),
      .waddr(change_slot),
      .wdata(address_data),
      .re   (1'b1),
      .raddr(table_slot),
      .rdata(address)
  );
  sdp_ram #(
      .WIDTH(17),
      .DEPTH(SLOTS)
  ) lengths (
      .clk,
      .we   (forget || set_length),
      .waddr(change_slot),
      .wdata(length_data),
      .re   (1'b1),
      .raddr(table_slot),
      .rdata(length)
  );
  sdp_ram #(
      .WIDTH(32),
      .DEPTH(SLOTS)
  ) all_flags (
      .clk,
      .we   (forget || set_length),
      .waddr(change_slot),
      .wdata(forget ? 32'd0 : set_data[63:32]),
      .re   (1'b1),
      .raddr(table_slot),
      .rdata(flags)
  );
  sdp_ram #(
      .WIDTH(64),
      .DEPTH(SLOTS)
  ) all_cas (
      .clk,
      .we   (forget || set_cas),
      .waddr(change_slot),
      .wdata(forget ? 64'd0 : set_data),
      .re   (1'b1),
      .raddr(table_slot),
      .rdata(cas)
  );

  // Wide enough for the sum of both.
  localparam int unsigned SUM_W = (ADDR_W > 16 ? ADDR_W : 16) + 2;
  logic fits;
`ifdef BUG_BOUND
  assign fits = !length[16] && SUM_W'(address) <= SUM_W'(VALUE_BYTES);
`else
  assign fits = !length[16] && SUM_W'(address) + SUM_W'(length) <= SUM_W'(VALUE_BYTES);
`endif
  assign write_fits = fits;
  assign write_len  = length;

  // Replies.
  typedef enum logic [1:0] {
    IDLE,
    LOOK,
    LENGTH,
    STREAM
  } state_t;
  state_t state;
  logic hit;

  // The next bytes to be read, and how many are left.
  logic [ADDR_W-1:0] at;
  logic [15:0] left;

  // Bytes on their way: in the memory's output, and in the port's registers.
  logic move, issue, issue_last;
  logic [3:0] issue_count;
  logic fetched, fetched_last;
  logic [3:0] fetched_count;
  logic [2:0] fetched_shift;

  assign in_ready = state == IDLE;
  assign val_len_valid = state == LENGTH && !fetched && !val_valid;
  assign move = !val_valid || val_ready;
`ifdef BUG_STALL
  assign issue = (state == LENGTH && val_len_valid && val_len_ready && val_len != 16'd0)
      || state == STREAM;
`else
  assign issue = move && ((state == LENGTH && val_len_valid && val_len_ready && val_len != 16'd0)
      || state == STREAM);
`endif
  assign issue_last = left <= 16'(W);
  assign issue_count = issue_last ? left[3:0] : 4'(W);

  always_ff @(posedge clk) begin
    case (state)
      IDLE: begin
        hit <= in_hit;
        val_tag <= in_tag;
        if (in_valid) state <= LOOK;
      end
      LOOK: begin
        val_len <= hit && fits ? length[15:0] : 16'd0;
        val_flags <= flags;
        val_cas <= cas;
        at <= address[ADDR_W-1:0];
        left <= length[15:0];
        state <= LENGTH;
      end
      LENGTH:
      if (val_len_valid && val_len_ready) state <= val_len == 16'd0 || issue_last ? IDLE : STREAM;
      default:  // STREAM
      if (issue && issue_last) state <= IDLE;
    endcase
    if (issue) begin
      at   <= at + ADDR_W'(W);
      left <= left - 16'(W);
    end
    if (write_started) at <= address[ADDR_W-1:0];
    if (write_valid) at <= at + ADDR_W'(W);
    if (move) begin
      fetched <= issue;
      fetched_last <= issue_last;
      fetched_count <= issue_count;
      fetched_shift <= at[2:0] & 3'(W - 1);
      val_valid <= fetched;
      val_last <= fetched_last;
      val_keep <= W'((9'd1 << fetched_count) - 9'd1);
      val_data <= fetched_data;
    end
    if (rst) begin
      state <= IDLE;
      fetched <= 1'b0;
      val_valid <= 1'b0;
    end
  end

  // The bytes of a value are spread over W banks, so that W bytes can be read and written at any
  // address: byte a is in bank a % W.
  logic [2:0] shift;
  logic [BANK_W-1:0] row, next_row;
  logic [8*W-1:0] banks_data;
  logic [8*W-1:0] fetched_data;
  logic write_started;
  assign shift = at[2:0] & 3'(W - 1);
  assign row = at[ADDR_W-1:LOG_W];
  assign next_row = row + 1'b1;
  always_ff @(posedge clk) write_started <= write_begin && !rst;

  generate
    for (genvar b = 0; b < W; b++) begin : bank
      // Which of the bytes at `at` this bank has.
      logic [LANE_W-1:0] lane;
      logic [BANK_W-1:0] bank_row;
      assign lane = LANE_W'(3'(b) - shift);
`ifdef BUG_BANKS
      assign bank_row = {1'b0, shift} > 4'(b + 1) ? next_row : row;
`else
      assign bank_row = {1'b0, shift} > 4'(b) ? next_row : row;
`endif
      sdp_ram #(
          .WIDTH(8),
          .DEPTH(BANK_WORDS)
      ) values (
          .clk,
          .we   (write_valid && write_keep[lane]),
          .waddr(bank_row),
          .wdata(write_data[8*lane+:8]),
          .re   (move),
          .raddr(bank_row),
          .rdata(banks_data[8*b+:8])
      );
      // Byte b of a beat is in this bank.
      logic [LANE_W-1:0] source;
      assign source = LANE_W'(3'(b) + fetched_shift);
      assign fetched_data[8*b+:8] = banks_data[8*source+:8];
    end
  endgenerate

endmodule
