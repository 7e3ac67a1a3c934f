// Turns the lookup's answers into frames. A value is stored while it is summed up, because the
// checksum of the datagram comes before it. A reply that would be longer than `reply_bytes_max` is
// none: its frame goes to the CPU, as that of a miss.
//
// Values are stored as they will lie in the frame: behind HEAD bytes of headers.
module tm_respond #(
    parameter int W = 1,
    parameter int BYTES = 4096,
    parameter int REPLIES = 4,
    parameter int TAG_W = 8,
    parameter int BEATS_W = $clog2(256 / W + 1)
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [     47:0] host_mac,
    input  logic [     31:0] host_ip,
    input  logic [     15:0] host_port,
    input  logic [     15:0] reply_bytes_max,
    // The oldest GET: what its reply needs, whether its key was bypassed, and the key.
    input  logic             sent_valid,
    input  logic             sent_bypassed,
    input  logic [TAG_W-1:0] sent_tag,
    output logic             sent_pop,
    input  logic [     47:0] req_mac,
    input  logic [     31:0] req_ip,
    input  logic [     15:0] req_port,
    input  logic [     15:0] req_id,
    input  logic [      7:0] req_opcode,
    input  logic [     31:0] req_opaque,
    input  logic [      7:0] req_key_len,
    input  logic [  8*W-1:0] key_data,
    output logic             key_skip,
    output logic [BEATS_W-1:0] key_skip_beats,
    // From the lookup.
    input  logic             val_len_valid,
    output logic             val_len_ready,
    input  logic [     15:0] val_len,
    input  logic [TAG_W-1:0] val_tag,
    input  logic [     31:0] val_flags,
    input  logic [     63:0] val_cas,
    input  logic             val_valid,
    output logic             val_ready,
    input  logic [  8*W-1:0] val_data,
    input  logic [    W-1:0] val_keep,
    input  logic             val_last,
    // The verdict on the oldest GET.
    output logic             verdict,
    output logic             verdict_hit,
    // Replies.
    output logic             out_valid,
    input  logic             out_ready,
    output logic [  8*W-1:0] out_data,
    output logic [    W-1:0] out_keep,
    output logic             out_last,
    // Events. A wrong tag cannot be, and stays visible until reset.
    output logic             is_hit,
    output logic             is_miss,
    output logic             is_bypassed,
    output logic             is_too_long,
    output logic             has_wrong_tag
);
  localparam int HEAD = 78;
  localparam int SHIFT = HEAD % W;
  localparam int WORDS = BYTES / W;
  localparam int A = $clog2(WORDS);
  localparam int REPLY_W = 48 + 32 + 16 + 16 + 8 + 32 + 8 + 32 + 64 + 16 + 16;

  // Adds the carries of a sum of 16-bit words back.
  function automatic logic [15:0] fold(input logic [20:0] sum);
    logic [16:0] once;
    once = {1'b0, sum[15:0]} + {12'd0, sum[20:16]};
    fold = once[15:0] + {15'd0, once[16]};
  endfunction

  // Key and value go into the memory.
  typedef enum logic [2:0] {
    IDLE,
    KEY,
    VALUE,
    FLUSH,
    FINISH,
    DRAIN
  } state_t;
  state_t state;

  logic [47:0] cur_mac;
  logic [31:0] cur_ip, cur_opaque, cur_flags;
  logic [15:0] cur_port, cur_id, cur_body;
  logic [7:0] cur_opcode, cur_key_len;
  logic [63:0] cur_cas;

  logic [A-1:0] write_at, read_at;
  logic [A-1:0] read_next;
  logic [$clog2(REPLIES):0] replies_used;
  wire [A-1:0] used = write_at - read_at;

  wire has_key = req_opcode == 8'h0c || req_opcode == 8'h0d;
  wire [7:0] key_out = has_key ? req_key_len : 8'd0;
  wire [16:0] body = {1'b0, val_len} + {9'd0, key_out};
  wire [16:0] words = 17'((32'(body) + SHIFT + W - 1) / W);
`ifdef BUG_TM_TOO_LONG
  wire too_long = 32'(body) + HEAD > 32'(reply_bytes_max) + 1;
`else
  wire too_long = 32'(body) + HEAD > 32'(reply_bytes_max);
`endif
  wire has_room = 32'(used) + 32'(words) < WORDS && 32'(replies_used) < REPLIES;

  wire asked = state == IDLE && sent_valid;
  wire bypassed = asked && sent_bypassed;
  wire answered = asked && !sent_bypassed && val_len_valid;
  wire missed = answered && val_len == 16'd0;
  wire refused = answered && val_len != 16'd0 && too_long;
  wire hit = answered && val_len != 16'd0 && !too_long && has_room;
  assign val_len_ready = missed || refused || hit;
  assign sent_pop = bypassed || val_len_ready;
  assign verdict = sent_pop;
`ifdef BUG_TM_WRITE_MODE
  assign verdict_hit = hit || bypassed;
`else
  assign verdict_hit = hit;
`endif
  assign is_hit = hit;
  assign is_miss = missed;
  assign is_bypassed = bypassed;
  assign is_too_long = refused;

  // The key is passed over at once, or beat by beat.
  logic [8:0] key_left;
  wire key_beat = state == KEY;
  assign key_skip = key_beat || (sent_pop && !(hit && has_key));
`ifdef BUG_TM_KEY_KEPT
  assign key_skip_beats = key_beat || missed ? BEATS_W'(1) : BEATS_W'((32'(req_key_len) + W - 1) / W);
`else
  assign key_skip_beats = key_beat ? BEATS_W'(1) : BEATS_W'((32'(req_key_len) + W - 1) / W);
`endif

  assign val_ready = state == VALUE || state == DRAIN;
  wire value_beat = state == VALUE && val_valid;

  // The packer: joins the bytes of key and value without gaps.
  logic [8*W-1:0] held;
  logic [3:0] held_bytes;
  logic [W-1:0] lanes;
  logic [8*W-1:0] masked;
  logic [3:0] lanes_bytes;
  logic [16*W-1:0] joined;
  logic [4:0] joined_bytes;
  always_comb begin
    lanes_bytes = '0;
    masked = '0;
    for (int lane = 0; lane < W; lane++) begin
      lanes[lane] = key_beat ? key_left > 9'(lane) : val_keep[lane];
      if (lanes[lane]) begin
        lanes_bytes = lanes_bytes + 4'd1;
        masked[8*lane+:8] = key_beat ? key_data[8*lane+:8] : val_data[8*lane+:8];
      end
    end
    joined = {{8 * W{1'b0}}, held} | ({{8 * W{1'b0}}, masked} << {held_bytes, 3'd0});
    joined_bytes = {1'b0, held_bytes} + {1'b0, lanes_bytes};
  end
  wire chunk = key_beat || value_beat;
  wire is_full = joined_bytes >= 5'(W);
  wire ends = value_beat && val_last;
  wire overhangs = joined_bytes > 5'(W);
  wire packs = (chunk && (is_full || ends)) || state == FLUSH;

  logic packed_valid, packed_first, is_first, packed_odd;
  logic [8*W-1:0] packed_data;
  logic [19:0] sum;
  logic [19:0] sum_next;
  always_comb begin
    sum_next = packed_first ? 20'd0 : {4'd0, sum[15:0]} + {16'd0, sum[19:16]};
    for (int lane = 0; lane < W; lane++) begin
      if (W == 1 ? packed_odd : lane[0]) sum_next = sum_next + {12'd0, packed_data[8*lane+:8]};
      else sum_next = sum_next + {4'd0, packed_data[8*lane+:8], 8'd0};
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
      packed_valid <= 1'b0;
      write_at <= '0;
      has_wrong_tag <= 1'b0;
    end else begin
      packed_valid <= packs;
      if (packed_valid) write_at <= write_at + 1'b1;
      if (val_len_ready && val_tag != sent_tag) has_wrong_tag <= 1'b1;
      case (state)
        IDLE: if (hit) state <= has_key ? KEY : VALUE;
              else if (refused) state <= DRAIN;
        KEY: if (key_left <= 9'(W)) state <= VALUE;
        VALUE: if (ends) state <= overhangs ? FLUSH : FINISH;
        FLUSH: state <= FINISH;
        FINISH: if (!packed_valid) state <= IDLE;
        DRAIN: if (val_valid && val_last) state <= IDLE;
        default: state <= IDLE;
      endcase
    end

    if (hit) begin
      cur_mac <= req_mac;
      cur_ip <= req_ip;
      cur_port <= req_port;
      cur_id <= req_id;
      cur_opcode <= req_opcode;
      cur_opaque <= req_opaque;
      cur_key_len <= key_out;
      cur_flags <= val_flags;
      cur_cas <= val_cas;
      cur_body <= body[15:0];
      key_left <= {1'b0, req_key_len};
    end else if (key_beat) key_left <= key_left - 9'(W);

    if (hit) begin
      held <= '0;
      held_bytes <= 4'(SHIFT);
    end else if (chunk) begin
      held <= is_full ? joined[16*W-1:8*W] : joined[8*W-1:0];
      held_bytes <= is_full ? 4'(joined_bytes - 5'(W)) : joined_bytes[3:0];
    end

    if (packs) begin
      packed_data <= state == FLUSH ? held : joined[8*W-1:0];
      packed_first <= is_first;
`ifdef BUG_TM_ODD
      packed_odd <= !packed_odd;
`else
      packed_odd <= is_first ? 1'b0 : !packed_odd;
`endif
    end
    is_first <= hit ? 1'b1 : packs ? 1'b0 : is_first;
    if (packed_valid) sum <= sum_next;
  end

  // Replies that are complete in the memory.
  wire finished = state == FINISH && !packed_valid;
  logic reply_valid, reply_pop;
  logic [REPLY_W-1:0] reply;
  logic unused_replies_ready;
  fifo #(
      .WIDTH(REPLY_W),
      .DEPTH(REPLIES)
  ) replies (
      .clk,
      .rst,
      .in_valid(finished),
      .in_ready(unused_replies_ready),
      .in_data({
        cur_mac,
        cur_ip,
        cur_port,
        cur_id,
        cur_opcode,
        cur_opaque,
        cur_key_len,
        cur_flags,
        cur_cas,
        cur_body,
        fold({1'b0, sum})
      }),
      .out_valid(reply_valid),
      .out_data(reply),
      .out_ready(reply_pop),
      .level(replies_used)
  );

  logic [47:0] reply_mac;
  logic [31:0] reply_ip, reply_opaque, reply_flags;
  logic [15:0] reply_port, reply_id, reply_body_bytes, reply_body_sum;
  logic [7:0] reply_opcode, reply_key_bytes;
  logic [63:0] reply_cas;
  logic [8*W-1:0] body_data;
  assign {
    reply_mac,
    reply_ip,
    reply_port,
    reply_id,
    reply_opcode,
    reply_opaque,
    reply_key_bytes,
    reply_flags,
    reply_cas,
    reply_body_bytes,
    reply_body_sum
  } = reply;

  tm_reply #(
      .W(W),
      .A(A)
  ) sender (
      .clk,
      .rst,
      .host_mac,
      .host_ip,
      .host_port,
      .reply_valid,
      .reply_pop,
      .reply_mac,
      .reply_ip,
      .reply_port,
      .reply_id,
      .reply_opcode,
      .reply_opaque,
      .reply_key_bytes,
      .reply_flags,
      .reply_cas,
      .reply_body_bytes,
      .reply_body_sum,
      .read_at,
      .read_next,
      .body_data,
      .out_valid,
      .out_ready,
      .out_data,
      .out_keep,
      .out_last
  );

  sdp_ram #(
      .WIDTH(8 * W),
      .DEPTH(WORDS)
  ) bodies (
      .clk,
      .we(packed_valid),
      .waddr(write_at),
      .wdata(packed_data),
      .re(1'b1),
      .raddr(read_next),
      .rdata(body_data)
  );
endmodule
