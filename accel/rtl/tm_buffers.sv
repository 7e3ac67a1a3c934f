// The main buffer, which holds frames until it is known what becomes of them, and the defer buffer,
// which holds those that the CPU gets. Frames leave the main buffer in their order, so the CPU gets
// its frames in their order: a frame behind a GET waits for the lookup's verdict on that GET.
//
// A frame that finds no room waits, and then is dropped whole:
// - At the main buffer the MAC waits for `patience` cycles at most (all ones: for ever).
// - At the defer buffer the oldest frame of the main buffer waits as long.
// Once a wait was in vain, the next frames do not wait, until one finds room. So a CPU that takes
// nothing costs its own frames alone; hits go on.
// Frames of more than FRAME_MAX bytes are dropped: the CPU's buffers do not hold them.
module tm_buffers #(
    parameter int W = 1,
    parameter int MAIN_BYTES = 8192,
    parameter int DEFER_BYTES = 16384,
    parameter int FRAMES = 32,
    parameter int GETS = 16,
    parameter int FRAME_MAX = 1514
) (
    input  logic           clk,
    input  logic           rst,
    input  logic [   15:0] patience,
    // Frames from the MAC.
    input  logic           rx_valid,
    output logic           rx_ready,
    input  logic [8*W-1:0] rx_data,
    input  logic [  W-1:0] rx_keep,
    input  logic           rx_last,
    input  logic           keys_room,
    // The classifier says what a frame is in the cycle after its last beat.
    output logic           done,
    output logic [   15:0] bytes,
    input  logic           is_get,
    output logic           commit,
    output logic           commit_get,
    // Verdicts on GETs, in their order: a hit has been answered, anything else is for the CPU.
    input  logic           verdict,
    input  logic           verdict_hit,
    // Frames to the CPU.
    output logic           cpu_valid,
    input  logic           cpu_ready,
    output logic [8*W-1:0] cpu_data,
    output logic [  W-1:0] cpu_keep,
    output logic           cpu_last,
    // Events, and the bytes in the defer buffer.
    output logic           is_dropped_main,
    output logic           is_dropped_defer,
    output logic           is_jumbo,
    output logic [   15:0] defer_bytes
);
  localparam int MAIN_WORDS = MAIN_BYTES / W;
  localparam int DEFER_WORDS = DEFER_BYTES / W;
  localparam int MA = $clog2(MAIN_WORDS);
  localparam int DA = $clog2(DEFER_WORDS);
  localparam int KEEP_W = (W == 1) ? 1 : $clog2(W);
  localparam logic [15:0] FOR_EVER = 16'hFFFF;

  function automatic logic [15:0] ones(input logic [W-1:0] mask);
    ones = '0;
    for (int lane = 0; lane < W; lane++) ones = ones + {15'd0, mask[lane]};
  endfunction

  // The entrance of the main buffer.
  logic in_frame, dropping;
  logic [15:0] waited;
  logic [MA-1:0] write_at, start_at, read_at;
  logic [$clog2(FRAMES):0] frames_used;
  logic [$clog2(GETS):0] gets;
  wire [MA-1:0] used = write_at - read_at;
  wire has_word = 32'(used) < MAIN_WORDS - 1;
  // One more frame may be on its way through the classifier.
  wire has_place = keys_room && 32'(frames_used) < FRAMES - 1 && 32'(gets) < GETS - 1;
  wire has_room = has_word && (in_frame || has_place);
  wire gives_up = !has_room && patience != FOR_EVER && waited >= patience;
  wire beat = rx_valid && rx_ready;
  wire [15:0] bytes_before = in_frame ? bytes : 16'd0;
  wire [15:0] bytes_after = bytes_before + ones(rx_keep);
  wire too_long = bytes_after > 16'(FRAME_MAX);
  wire drops = dropping || gives_up || too_long;
  wire stores = beat && !drops;
  logic kept;

  assign rx_ready = has_room || dropping || gives_up || too_long;
  assign commit = done && kept;
  assign commit_get = commit && is_get;

  always_ff @(posedge clk) begin
    if (rst) begin
      in_frame <= 1'b0;
      dropping <= 1'b0;
      done <= 1'b0;
      kept <= 1'b0;
      waited <= '0;
      write_at <= '0;
      is_dropped_main <= 1'b0;
      is_jumbo <= 1'b0;
    end else begin
      done <= beat && rx_last;
      kept <= beat && rx_last && !drops;
      is_dropped_main <= beat && gives_up && !dropping && !too_long;
      is_jumbo <= beat && too_long && !dropping;
      if (stores) waited <= '0;
      else if (rx_valid && !rx_ready) waited <= waited + 16'd1;
      if (stores) write_at <= write_at + 1'b1;
      if (beat) begin
        in_frame <= !rx_last;
        dropping <= drops && !rx_last;
`ifndef BUG_TM_ROLLBACK
        if (drops) write_at <= in_frame ? start_at : write_at;
`endif
      end
    end
    if (beat && !in_frame) start_at <= write_at;
    // A frame that is being dropped may be longer than the counter.
    if (beat && !(in_frame && dropping)) bytes <= bytes_after;
  end

  // The frames in the main buffer, and the verdicts on the GETs among them.
  logic head_valid, head_get, head_pop;
  logic [13:0] head_bytes;
  logic unused_frames_ready;
  fifo #(
      .WIDTH(15),
      .DEPTH(FRAMES)
  ) frames (
      .clk,
      .rst,
      .in_valid(commit),
      .in_ready(unused_frames_ready),
      .in_data({bytes[13:0], is_get}),
      .out_valid(head_valid),
      .out_data({head_bytes, head_get}),
      .out_ready(head_pop),
      .level(frames_used)
  );
  logic verdict_valid, is_hit;
  logic [$clog2(GETS):0] unused_verdicts;
  logic unused_verdicts_ready;
  fifo #(
      .WIDTH(1),
      .DEPTH(GETS)
  ) verdicts (
      .clk,
      .rst,
      .in_valid(verdict),
      .in_ready(unused_verdicts_ready),
      .in_data(verdict_hit),
      .out_valid(verdict_valid),
      .out_data(is_hit),
      .out_ready(head_pop && head_get),
      .level(unused_verdicts)
  );
  always_ff @(posedge clk) begin
    if (rst) gets <= '0;
    else if (commit_get && !(head_pop && head_get)) gets <= gets + 1'b1;
    else if (!commit_get && head_pop && head_get) gets <= gets - 1'b1;
  end

  // The exit of the main buffer.
  logic [13:0] at;  // the number of the next beat of the oldest frame
  logic [15:0] waited_defer;
  logic [DA:0] defer_used;
  wire [13:0] head_beats = 14'((32'(head_bytes) + W - 1) / W);
  wire known = head_valid && (!head_get || verdict_valid);
`ifdef BUG_TM_HIT_PASSED
  wire hit = 1'b0;
`else
  wire hit = head_get && is_hit;
`endif
`ifdef BUG_TM_DEFER_OVERFLOW
  wire fits = 32'(defer_used) < DEFER_WORDS - 2;
`else
  wire fits = 32'(defer_used) + 32'(head_beats) < DEFER_WORDS - 2;
`endif
  wire gives_up_defer = !fits && patience != FOR_EVER && waited_defer >= patience;
  wire skips = known && at == 0 && (hit || gives_up_defer);
  wire moves = known && !hit && (at != 0 || fits);
  wire moves_last = at == head_beats - 14'd1;
  assign head_pop = skips || (moves && moves_last);

  logic [MA-1:0] read_next;
  always_comb begin
    read_next = read_at;
    if (skips) read_next = read_at + MA'(head_beats);
    else if (moves) read_next = read_at + 1'b1;
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      read_at <= '0;
      at <= '0;
      waited_defer <= '0;
      is_dropped_defer <= 1'b0;
    end else begin
      read_at <= read_next;
      if (head_pop) at <= '0;
      else if (moves) at <= at + 14'd1;
      if (moves) waited_defer <= '0;
      else if (known && !hit && !skips) waited_defer <= waited_defer + 16'd1;
      is_dropped_defer <= skips && !hit;
    end
  end

  // The memory's read port looks ahead: its output is the word at `read_at`.
  logic [8*W-1:0] main_word;
  sdp_ram #(
      .WIDTH(8 * W),
      .DEPTH(MAIN_WORDS)
  ) main (
      .clk,
      .we(stores),
      .waddr(write_at),
      .wdata(rx_data),
      .re(1'b1),
      .raddr(read_next),
      .rdata(main_word)
  );

  // The defer buffer: a memory, and an output register that a beat reaches at once if the memory is
  // empty. A word of the memory can be read in the second cycle after it is written.
  logic [DA-1:0] defer_write, defer_written, defer_read;
  wire is_empty = defer_read == defer_write;
  wire has_next = defer_read != defer_written;
  wire takes = !cpu_valid || cpu_ready;
  wire direct = moves && is_empty && takes;
  wire pops = takes && has_next;
  wire [DA-1:0] defer_next = pops ? defer_read + 1'b1 : defer_read;
  // The number of bytes in the last beat, less one.
  wire [KEEP_W-1:0] tail = KEEP_W'(head_bytes - 14'd1);
  logic [8*W-1:0] next_data;
  logic [KEEP_W-1:0] next_tail, cpu_tail;
  logic next_last;
  sdp_ram #(
      .WIDTH(8 * W + KEEP_W + 1),
      .DEPTH(DEFER_WORDS)
  ) defer (
      .clk,
      .we(moves && !direct),
      .waddr(defer_write),
      .wdata({main_word, tail, moves_last}),
      .re(1'b1),
      .raddr(defer_next),
      .rdata({next_data, next_tail, next_last})
  );
  always_ff @(posedge clk) begin
    if (rst) begin
      defer_write <= '0;
      defer_written <= '0;
      defer_read <= '0;
      cpu_valid <= 1'b0;
    end else begin
      if (moves && !direct) defer_write <= defer_write + 1'b1;
      defer_written <= defer_write;
      defer_read <= defer_next;
      if (takes) cpu_valid <= direct || pops;
    end
    if (direct) {cpu_data, cpu_tail, cpu_last} <= {main_word, tail, moves_last};
    else if (pops) {cpu_data, cpu_tail, cpu_last} <= {next_data, next_tail, next_last};
  end
  wire [W-1:0] tail_keep = ~(({W{1'b1}} << 1) << cpu_tail);
  assign cpu_keep = cpu_last ? tail_keep : {W{1'b1}};

  wire [DA-1:0] stored = defer_write - defer_read;
  assign defer_used  = {1'b0, stored} + (DA + 1)'(cpu_valid);
  assign defer_bytes = 16'(32'(defer_used) * W);
endmodule
