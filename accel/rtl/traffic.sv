// The traffic manager (section IV-B of the paper): takes GETs out of the frames from the network,
// has their keys looked up, answers hits, and hands everything else to the CPU, unchanged and in
// its order. The CPU's own frames and the answers leave in turns.
//
//  rx -> tm_classify, tm_buffers(main) --> tm_buffers(defer) --> cpu_rx
//             |            ^ verdict
//             v            |
//          tm_keys <-> lookup -> tm_respond --> tm_arb --> tx
//                                      cpu_tx -----^
//
// Counters are of 32 bits and begin again after their highest value.
module traffic #(
    parameter int W = 1,
    parameter int TAG_W = 8,
    parameter int MAIN_BYTES = 8192,
    parameter int DEFER_BYTES = 16384,
    parameter int REPLY_BYTES = 4096,
    parameter int FRAME_MAX = 1514,
    parameter int KEY_MAX = 250,
    parameter int GETS = 16
) (
    input logic clk,
    input logic rst,

    // Whose frames are answered, for whom, and up to which length of the answer.
    input logic [47:0] host_mac,
    input logic [31:0] host_ip,
    input logic [15:0] host_port,
    input logic [31:0] source_net,
    input logic [31:0] source_mask,
    input logic [15:0] reply_bytes_max,
    // Cycles that a frame without room waits before it is dropped. All ones: for ever.
    input logic [15:0] patience,

    // The MAC.
    input  logic           rx_valid,
    output logic           rx_ready,
    input  logic [8*W-1:0] rx_data,
    input  logic [  W-1:0] rx_keep,
    input  logic           rx_last,
    output logic           tx_valid,
    input  logic           tx_ready,
    output logic [8*W-1:0] tx_data,
    output logic [  W-1:0] tx_keep,
    output logic           tx_last,

    // The CPU.
    output logic           cpu_rx_valid,
    input  logic           cpu_rx_ready,
    output logic [8*W-1:0] cpu_rx_data,
    output logic [  W-1:0] cpu_rx_keep,
    output logic           cpu_rx_last,
    input  logic           cpu_tx_valid,
    output logic           cpu_tx_ready,
    input  logic [8*W-1:0] cpu_tx_data,
    input  logic [  W-1:0] cpu_tx_keep,
    input  logic           cpu_tx_last,

    // The lookup.
    input  logic             write_mode,
    output logic             key_len_valid,
    input  logic             key_len_ready,
    output logic [      7:0] key_len,
    output logic [TAG_W-1:0] key_tag,
    output logic             key_valid,
    input  logic             key_ready,
    output logic [  8*W-1:0] key_data,
    output logic [    W-1:0] key_keep,
    output logic             key_last,
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

    // GETs that were answered, were in no slot, came in write mode, or had too long an answer.
    output logic [31:0] hits,
    output logic [31:0] misses,
    output logic [31:0] bypassed,
    output logic [31:0] too_long,
    // Frames that found no room in the main buffer or in the defer buffer, or were too long.
    output logic [31:0] dropped_main,
    output logic [31:0] dropped_defer,
    output logic [31:0] jumbos,
    // Frames of less than 60 bytes. They are treated as others are.
    output logic [31:0] runts,
    // The most bytes that were in the defer buffer at a time.
    output logic [15:0] defer_high_water,
    // Never: the lookup has answered out of order.
    output logic        has_wrong_tag
);
  logic beat, done, is_get, commit, commit_get;
  logic [15:0] bytes;
  logic [47:0] new_mac, req_mac;
  logic [31:0] new_ip, new_opaque, req_ip, req_opaque;
  logic [15:0] new_port, new_id, req_port, req_id;
  logic [7:0] new_opcode, new_key_len, req_opcode, req_key_len;
  logic key_we, keys_room, key_skip;
  logic [8*W-1:0] new_key_data, reply_key_data;
  logic [$clog2(256/W+1)-1:0] key_skip_beats;
  logic sent_valid, sent_bypassed, sent_pop, verdict, verdict_hit;
  logic [TAG_W-1:0] sent_tag;
  logic is_hit, is_miss, is_bypassed, is_too_long, is_dropped_main, is_dropped_defer, is_jumbo;
  logic [15:0] defer_bytes;
  logic reply_valid, reply_ready, reply_last;
  logic [8*W-1:0] reply_data;
  logic [W-1:0] reply_keep;

  assign beat = rx_valid && rx_ready;

  tm_classify #(
      .W(W),
      .KEY_MAX(KEY_MAX)
  ) classify (
      .clk,
      .rst,
      .host_mac,
      .host_ip,
      .host_port,
      .source_net,
      .source_mask,
      .beat,
      .data(rx_data),
      .keep(rx_keep),
      .last(rx_last),
      .done,
      .bytes,
      .is_get,
      .req_mac(new_mac),
      .req_ip(new_ip),
      .req_port(new_port),
      .req_id(new_id),
      .req_opcode(new_opcode),
      .req_opaque(new_opaque),
      .req_key_len(new_key_len),
      .key_we,
      .key_data(new_key_data)
  );

  tm_buffers #(
      .W(W),
      .MAIN_BYTES(MAIN_BYTES),
      .DEFER_BYTES(DEFER_BYTES),
      .GETS(GETS),
      .FRAME_MAX(FRAME_MAX)
  ) buffers (
      .clk,
      .rst,
      .patience,
      .rx_valid,
      .rx_ready,
      .rx_data,
      .rx_keep,
      .rx_last,
      .keys_room,
      .done,
      .bytes,
      .is_get,
      .commit,
      .commit_get,
      .verdict,
      .verdict_hit,
      .cpu_valid(cpu_rx_valid),
      .cpu_ready(cpu_rx_ready),
      .cpu_data(cpu_rx_data),
      .cpu_keep(cpu_rx_keep),
      .cpu_last(cpu_rx_last),
      .is_dropped_main,
      .is_dropped_defer,
      .is_jumbo,
      .defer_bytes
  );

  tm_keys #(
      .W(W),
      .WORDS(1024 / W),
      .GETS(GETS),
      .TAG_W(TAG_W)
  ) keys (
      .clk,
      .rst,
      .we(key_we),
      .data(new_key_data),
      .done,
      .commit(commit_get),
      .commit_len(new_key_len),
      .room(keys_room),
      .write_mode,
      .key_len_valid,
      .key_len_ready,
      .key_len,
      .key_tag,
      .key_valid,
      .key_ready,
      .key_data,
      .key_keep,
      .key_last,
      .sent_valid,
      .sent_bypassed,
      .sent_tag,
      .sent_pop,
      .reply_data(reply_key_data),
      .skip(key_skip),
      .skip_beats(key_skip_beats)
  );

  // What replies need of their requests.
  logic req_valid;
  logic [$clog2(GETS):0] unused_requests;
  logic unused_requests_ready;
  fifo #(
      .WIDTH(48 + 32 + 16 + 16 + 8 + 32 + 8),
      .DEPTH(GETS)
  ) requests (
      .clk,
      .rst,
      .in_valid(commit_get),
      .in_ready(unused_requests_ready),
      .in_data({new_mac, new_ip, new_port, new_id, new_opcode, new_opaque, new_key_len}),
      .out_valid(req_valid),
      .out_data({req_mac, req_ip, req_port, req_id, req_opcode, req_opaque, req_key_len}),
      .out_ready(sent_pop),
      .level(unused_requests)
  );

  tm_respond #(
      .W(W),
      .BYTES(REPLY_BYTES),
      .TAG_W(TAG_W)
  ) respond (
      .clk,
      .rst,
      .host_mac,
      .host_ip,
      .host_port,
      .reply_bytes_max,
      .sent_valid(sent_valid && req_valid),
      .sent_bypassed,
      .sent_tag,
      .sent_pop,
      .req_mac,
      .req_ip,
      .req_port,
      .req_id,
      .req_opcode,
      .req_opaque,
      .req_key_len,
      .key_data(reply_key_data),
      .key_skip,
      .key_skip_beats,
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
      .verdict,
      .verdict_hit,
      .out_valid(reply_valid),
      .out_ready(reply_ready),
      .out_data(reply_data),
      .out_keep(reply_keep),
      .out_last(reply_last),
      .is_hit,
      .is_miss,
      .is_bypassed,
      .is_too_long,
      .has_wrong_tag
  );

  tm_arb #(
      .W(W)
  ) arb (
      .clk,
      .rst,
      .a_valid(reply_valid),
      .a_ready(reply_ready),
      .a_data(reply_data),
      .a_keep(reply_keep),
      .a_last(reply_last),
      .b_valid(cpu_tx_valid),
      .b_ready(cpu_tx_ready),
      .b_data(cpu_tx_data),
      .b_keep(cpu_tx_keep),
      .b_last(cpu_tx_last),
      .out_valid(tx_valid),
      .out_ready(tx_ready),
      .out_data(tx_data),
      .out_keep(tx_keep),
      .out_last(tx_last)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      hits <= '0;
      misses <= '0;
      bypassed <= '0;
      too_long <= '0;
      dropped_main <= '0;
      dropped_defer <= '0;
      jumbos <= '0;
      runts <= '0;
      defer_high_water <= '0;
    end else begin
      if (is_hit) hits <= hits + 32'd1;
      if (is_miss) misses <= misses + 32'd1;
      if (is_bypassed) bypassed <= bypassed + 32'd1;
      if (is_too_long) too_long <= too_long + 32'd1;
      if (is_dropped_main) dropped_main <= dropped_main + 32'd1;
      if (is_dropped_defer) dropped_defer <= dropped_defer + 32'd1;
      if (is_jumbo) jumbos <= jumbos + 32'd1;
      if (commit && bytes < 16'd60) runts <= runts + 32'd1;
      if (defer_bytes > defer_high_water) defer_high_water <= defer_bytes;
    end
  end
endmodule
