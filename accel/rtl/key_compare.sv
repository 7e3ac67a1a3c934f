// Second stage (section IV-A1): finds the slot of a key. Compares the key's length with that of the
// key in the primary slot, then the bytes; then the same with the secondary slot. In write mode it
// also takes a key out, and finds a slot for a key and puts it there (section IV-A2).
module key_compare #(
    parameter int unsigned W = 1,
    parameter int unsigned SLOTS = 1024,
    parameter int unsigned TAG_W = 8
) (
    input logic clk,
    input logic rst,

    // What to do with keys. Constant while a key is here.
    input logic                       deleting,
    input logic                       reserving,
    input logic [kv_pkg::COUNT_W-1:0] weight,

    // A key, and its bytes in the half of the key memory that is read.
    input  logic                                   in_valid,
    output logic                                   in_ready,
    input  logic [                            7:0] in_len,
    input  logic [                      TAG_W-1:0] in_tag,
    input  logic [              $clog2(SLOTS)-1:0] in_primary,
    input  logic [              $clog2(SLOTS)-1:0] in_secondary,
    output logic [$clog2(kv_pkg::KEY_SPACE/W)-1:0] key_word,
    input  logic [                        8*W-1:0] key_data,

    // A lookup's result, for the value memory.
    output logic                     res_valid,
    input  logic                     res_ready,
    output logic                     res_hit,
    output logic [        TAG_W-1:0] res_tag,
    // The result of a deletion or reservation, for one cycle.
    output logic                     done,
    output logic                     done_found,
    // The slot of either.
    output logic [$clog2(SLOTS)-1:0] slot,

    // Whether a slot has a key, one cycle after the question. In write mode, between keys.
    input  logic                     ask_valid,
    input  logic [$clog2(SLOTS)-1:0] ask_slot,
    output logic                     ask_owned,

    // Counts.
    output logic                       inc_valid,
    output logic                       set_valid,
    output logic [kv_pkg::COUNT_W-1:0] set_count,
    output logic                       rd_valid,
    output logic [  $clog2(SLOTS)-1:0] rd_slot,
    input  logic [kv_pkg::COUNT_W-1:0] rd_count,

    // The slot's former value is no longer there.
    output logic forget,

    // The slots are being emptied after rst.
    output logic clearing
);

  localparam int unsigned WORDS = kv_pkg::KEY_SPACE / W;
  localparam int unsigned WORD_W = $clog2(WORDS);
  localparam int unsigned SLOT_W = $clog2(SLOTS);
  localparam int unsigned COUNT_W = kv_pkg::COUNT_W;

  typedef enum logic [3:0] {
    CLEAR,
    IDLE,
    PRIMARY_LEN,
    SECONDARY_LEN,
    COMPARE,
    SECONDARY,  // the primary slot has another key of this length
    RESULT,
    PRIMARY_COUNT,
    SECONDARY_COUNT,
    CHOOSE,
    COPY,
    PLACE,
    REMOVE,
    DONE
  } state_t;
  state_t state;

  logic [7:0] len;
  logic [SLOT_W-1:0] primary, secondary;
  logic is_secondary;
  logic found;
  logic [WORD_W-1:0] word;  // the word that is read
  logic [WORD_W-1:0] last_word;

  assign in_ready = state == IDLE;
  assign clearing = state == CLEAR;

  // The lengths of all keys. Zero is an empty slot.
  logic [7:0] stored_len;
  logic [SLOT_W-1:0] len_slot;
  logic len_write;
  logic [SLOT_W-1:0] len_write_slot;
  logic [7:0] len_write_data;
  always_comb begin
    len_slot = in_primary;
    if (ask_valid) len_slot = ask_slot;
    if (state == PRIMARY_LEN) len_slot = secondary;
  end
  assign ask_owned = stored_len != 8'd0;

  logic fresh_secondary;  // stored_len is that of the secondary slot, for the first time
  logic primary_empty_q, secondary_empty_q, secondary_may_q;
  logic len_equal, secondary_may, secondary_empty;
`ifdef BUG_LENGTH
  assign len_equal = stored_len != 8'd0;
`else
  assign len_equal = stored_len == len && len != 8'd0;
`endif
  // Equal hashes leave one slot.
  assign secondary_may = fresh_secondary ? len_equal && secondary != primary : secondary_may_q;
  assign secondary_empty = fresh_secondary ? stored_len == 8'd0 : secondary_empty_q;

  // All keys.
  logic [8*W-1:0] stored_data;
  logic [SLOT_W-1:0] key_slot;
  logic copying;  // key_data is to be written
  logic [WORD_W-1:0] copied_word;
  always_comb begin
    key_slot = is_secondary ? secondary : primary;
    if (state == SECONDARY_LEN || state == SECONDARY) key_slot = secondary;
  end
  assign key_word = word;

  logic equal, at_end;
  assign equal = stored_data == key_data;
  // In COMPARE and COPY the data is that of the word before.
  assign at_end = word == WORD_W'(last_word + 1'b1);

  // Counts, for reservations.
  logic [COUNT_W-1:0] primary_count;
  logic lighter_is_secondary;
  assign lighter_is_secondary = rd_count < primary_count;

  assign rd_valid = state == PRIMARY_COUNT || state == SECONDARY_COUNT;
  assign rd_slot = state == PRIMARY_COUNT ? primary : secondary;

  assign res_valid = state == RESULT;
  assign res_hit = found;
  assign slot = is_secondary ? secondary : primary;
  assign inc_valid = state == RESULT && res_ready && found;
  assign set_valid = state == PLACE || state == REMOVE;
  assign set_count = state == PLACE ? weight : '0;
  assign forget = state == PLACE || state == REMOVE;
  assign done = state == DONE;
  assign done_found = found;

  assign len_write = state == CLEAR || state == PLACE || state == REMOVE;
  assign len_write_data = state == PLACE ? len : 8'd0;

  logic [SLOT_W-1:0] clear_slot;
  assign len_write_slot = state == CLEAR ? clear_slot : slot;

  // What follows on the comparison of a key with both slots.
  state_t if_hit, if_miss;
  always_comb begin
    if_hit  = RESULT;
    if_miss = RESULT;
    if (deleting) begin
      if_hit  = REMOVE;
      if_miss = DONE;
    end
    if (reserving) begin
      if_hit  = DONE;
      if_miss = PRIMARY_COUNT;
    end
  end

  always_ff @(posedge clk) begin
    fresh_secondary <= state == PRIMARY_LEN;
    if (fresh_secondary) begin
      secondary_may_q   <= secondary_may;
      secondary_empty_q <= secondary_empty;
    end
    copied_word <= word;

    case (state)
      CLEAR: begin
        clear_slot <= clear_slot + 1'b1;
        if (clear_slot == SLOT_W'(SLOTS - 1)) state <= IDLE;
      end

      IDLE: begin
        len <= in_len;
        last_word <= WORD_W'((in_len - 8'd1) / 8'(W));
        res_tag <= in_tag;
        primary <= in_primary;
        secondary <= in_secondary;
        is_secondary <= 1'b0;
        found <= 1'b0;
        word <= '0;
        if (in_valid) state <= PRIMARY_LEN;
      end

      PRIMARY_LEN: begin
        primary_empty_q <= stored_len == 8'd0;
        if (len_equal) begin
          word  <= word + 1'b1;
          state <= COMPARE;
        end else state <= SECONDARY_LEN;
      end

      SECONDARY_LEN:
      if (secondary_may) begin
        is_secondary <= 1'b1;
        word <= word + 1'b1;
        state <= COMPARE;
      end else state <= if_miss;

      COMPARE: begin
        word <= word + 1'b1;
        if (!equal) begin
          word <= '0;
          if (!is_secondary && secondary_may) state <= SECONDARY;
          else state <= if_miss;
        end else if (at_end) begin
          found <= 1'b1;
          state <= if_hit;
        end
      end

      SECONDARY: begin
        is_secondary <= 1'b1;
        word <= word + 1'b1;
        state <= COMPARE;
      end

      RESULT: if (res_ready) state <= IDLE;

      // A reservation of a key that is not here.
      PRIMARY_COUNT: state <= SECONDARY_COUNT;

      SECONDARY_COUNT: begin
        primary_count <= rd_count;
        state <= CHOOSE;
      end

      CHOOSE: begin
        word <= '0;
        found <= 1'b1;
        state <= COPY;
`ifdef BUG_SECONDARY_FIRST
        if (secondary_empty_q) is_secondary <= 1'b1;
        else if (primary_empty_q) is_secondary <= 1'b0;
`else
        if (primary_empty_q) is_secondary <= 1'b0;
        else if (secondary_empty_q) is_secondary <= 1'b1;
`endif
        else begin
          is_secondary <= lighter_is_secondary;
`ifdef BUG_EQUAL_WEIGHT
          if ((lighter_is_secondary ? rd_count : primary_count) > weight) begin
`else
          if ((lighter_is_secondary ? rd_count : primary_count) >= weight) begin
`endif
            found <= 1'b0;
            state <= DONE;
          end
        end
      end

      COPY: begin
        word <= word + 1'b1;
        if (word == last_word) state <= PLACE;
      end

      // The key's last word is written in this cycle as well.
      PLACE: state <= DONE;

      REMOVE: state <= DONE;

      default: state <= IDLE;  // DONE
    endcase

    if (rst) begin
      state <= CLEAR;
      clear_slot <= '0;
      copying <= 1'b0;
    end else copying <= state == COPY;
  end

  sdp_ram #(
      .WIDTH(8),
      .DEPTH(SLOTS)
  ) lengths (
      .clk,
      .we   (len_write),
      .waddr(len_write_slot),
      .wdata(len_write_data),
      .re   (1'b1),
      .raddr(len_slot),
      .rdata(stored_len)
  );

  sdp_ram #(
      .WIDTH(8 * W),
      .DEPTH(SLOTS * WORDS)
  ) keys (
      .clk,
      .we   (copying),
      .waddr({slot, copied_word}),
      .wdata(key_data),
      .re   (1'b1),
      .raddr({key_slot, word}),
      .rdata(stored_data)
  );

endmodule
