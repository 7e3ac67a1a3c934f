// The keys of GETs: written as their frames arrive, sent to the lookup once the frame has proved to
// be a GET, and kept until the reply, which may contain the key. In write mode the lookup takes no
// keys: they are bypassed, and the CPU gets their frames.
module tm_keys #(
    parameter int W = 1,
    parameter int WORDS = 1024,
    parameter int GETS = 16,
    parameter int TAG_W = 8,
    parameter int A = $clog2(WORDS),
    parameter int BEATS_W = $clog2(256 / W + 1)
) (
    input  logic             clk,
    input  logic             rst,
    // From the classifier: beats, and what they were.
    input  logic             we,
    input  logic [  8*W-1:0] data,
    input  logic             done,
    input  logic             commit,
    input  logic [      7:0] commit_len,
    // There is room for the longest key.
    output logic             room,
    // To the lookup.
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
    // One entry to a key, in their order: its tag, and whether it was bypassed.
    output logic             sent_valid,
    output logic             sent_bypassed,
    output logic [TAG_W-1:0] sent_tag,
    input  logic             sent_pop,
    // The oldest key again, for its reply. `skip` passes over this number of beats.
    output logic [  8*W-1:0] reply_data,
    input  logic             skip,
    input  logic [BEATS_W-1:0] skip_beats
);
  localparam int SLACK = 256 / W + 2;

  logic [A-1:0] start_at, write_at, send_at, reply_at;
  wire [A-1:0] used = write_at - reply_at;
  assign room = 32'(used) + SLACK < WORDS;

  // A key that comes to nothing is written over.
  wire [A-1:0] write_next = write_at + {{A - 1{1'b0}}, we};
  always_ff @(posedge clk) begin
    if (rst) begin
      start_at <= '0;
      write_at <= '0;
    end else if (done) begin
      start_at <= commit ? write_next : start_at;
      write_at <= commit ? write_next : start_at;
    end else write_at <= write_next;
  end

  logic head_valid, head_pop;
  logic [7:0] head_len;
  logic [$clog2(GETS):0] unused_lens;
  logic unused_lens_ready;
  fifo #(
      .WIDTH(8),
      .DEPTH(GETS)
  ) lens (
      .clk,
      .rst,
      .in_valid(commit),
      .in_ready(unused_lens_ready),
      .in_data(commit_len),
      .out_valid(head_valid),
      .out_data(head_len),
      .out_ready(head_pop),
      .level(unused_lens)
  );

  // The length, then the bytes. A length that the lookup has not taken when write mode begins is
  // withdrawn.
  logic is_sending;
  logic [8:0] left;
  logic [TAG_W-1:0] tag;
  wire  bypass = head_valid && !is_sending && write_mode;
  assign key_len_valid = head_valid && !is_sending && !write_mode;
  assign key_len = head_len;
  assign key_tag = tag;
  wire starts = key_len_valid && key_len_ready;
  wire steps = key_valid && key_ready;
  assign key_valid = is_sending;
  assign key_last  = left <= 9'(W);
  assign head_pop  = bypass || (steps && key_last);
  wire [BEATS_W-1:0] head_beats = BEATS_W'((32'(head_len) + W - 1) / W);
  generate
    for (genvar lane = 0; lane < W; lane++) begin : g_keep
      assign key_keep[lane] = left > 9'(lane);
    end
  endgenerate

  logic [A-1:0] send_next;
  always_comb begin
    send_next = send_at;
    if (bypass) send_next = send_at + A'(head_beats);
    else if (steps) send_next = send_at + 1'b1;
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      is_sending <= 1'b0;
      send_at <= '0;
      tag <= '0;
    end else begin
      send_at <= send_next;
      if (starts) is_sending <= 1'b1;
      else if (steps && key_last) is_sending <= 1'b0;
      if (starts || bypass) tag <= tag + 1'b1;
    end
    if (starts) left <= {1'b0, head_len};
    else if (steps) left <= left - 9'(W);
  end

  logic [$clog2(GETS):0] unused_sent;
  logic unused_sent_ready;
  fifo #(
      .WIDTH(TAG_W + 1),
      .DEPTH(GETS)
  ) sent (
      .clk,
      .rst,
      .in_valid(starts || bypass),
      .in_ready(unused_sent_ready),
      .in_data({tag, bypass}),
      .out_valid(sent_valid),
      .out_data({sent_tag, sent_bypassed}),
      .out_ready(sent_pop),
      .level(unused_sent)
  );

  logic [A-1:0] reply_next;
  assign reply_next = skip ? reply_at + A'(skip_beats) : reply_at;
  always_ff @(posedge clk) begin
    if (rst) reply_at <= '0;
    else reply_at <= reply_next;
  end

  // Both memories hold the same; each has a reader of its own, which looks one word ahead.
  sdp_ram #(
      .WIDTH(8 * W),
      .DEPTH(WORDS)
  ) to_send (
      .clk,
      .we,
      .waddr(write_at),
      .wdata(data),
      .re(1'b1),
      .raddr(send_next),
      .rdata(key_data)
  );
  sdp_ram #(
      .WIDTH(8 * W),
      .DEPTH(WORDS)
  ) to_reply (
      .clk,
      .we,
      .waddr(write_at),
      .wdata(data),
      .re(1'b1),
      .raddr(reply_next),
      .rdata(reply_data)
  );
endmodule
