// Sends frames that lie in the CPU's memory.
//
// The driver posts a frame by its address, which may be any, and its length in bytes. Lines of 64
// bytes are fetched ahead, as many as the queue of lines holds. Memory answers in order. When the
// last byte of a frame has left, an interrupt is pending and the frame's memory is free. A frame of
// no bytes is done at once. Short frames are not padded to Ethernet's minimum: the MAC does that.
//
// Pointers have one bit more than a place in the ring, so that a full ring differs from an empty
// one. read <= current <= write <= read + ENTRIES, modulo 2 * ENTRIES:
//   read     the next frame to leave; those before it are done
//   current  the next frame whose lines will be fetched
//   write    the next frame that the driver posts
module dma_tx #(
    parameter int W = 1,
    parameter int ENTRIES = 64,
    parameter int QUEUE_LINES = 2,
    localparam int POINTER_BITS = $clog2(ENTRIES) + 1
) (
    input  logic                    clk,
    input  logic                    rst,
    // The driver: a frame's address and length in bytes.
    input  logic                    post_valid,
    output logic                    post_ready,
    input  logic [            63:0] post_addr,
    input  logic [            15:0] post_count,
    output logic [POINTER_BITS-1:0] read_pointer,
    output logic [POINTER_BITS-1:0] current_pointer,
    output logic [POINTER_BITS-1:0] write_pointer,
    output logic                    irq,
    input  logic                    irq_clear,
    // Memory.
    output logic                    mem_req_valid,
    input  logic                    mem_req_ready,
    output logic [            63:0] mem_req_addr,
    input  logic                    mem_rsp_valid,
    output logic                    mem_rsp_ready,
    input  logic [           511:0] mem_rsp_data,
    // Frames.
    output logic                    out_valid,
    input  logic                    out_ready,
    output logic [         8*W-1:0] out_data,
    output logic [           W-1:0] out_keep,
    output logic                    out_last
);
  localparam int PLACE_BITS = POINTER_BITS - 1;
  localparam int WORD_BITS = $clog2(64 / W);
  // A byte's place in a word; one bit that is always zero where a word is a byte.
  localparam int SHIFT_BITS = W == 1 ? 1 : $clog2(W);
  localparam int LEVEL_BITS = $clog2(QUEUE_LINES + 1);
  localparam logic [15:0] WORD_BYTES = 16'(W);

  logic [57:0] lines[ENTRIES];
  logic [21:0] extents[ENTRIES];  // The place of the first byte in its line, and the length.

  // The driver's side.
  logic post, load, done;
`ifdef BUG_DMA_TX_RING_OVERFLOW
  assign post_ready = 1'b1;
`else
  assign post_ready = write_pointer - read_pointer != POINTER_BITS'(ENTRIES);
`endif
  assign post = post_valid && post_ready;

  always_ff @(posedge clk) begin
    if (post) begin
      lines[write_pointer[PLACE_BITS-1:0]]   <= post_addr[63:6];
      extents[write_pointer[PLACE_BITS-1:0]] <= {post_addr[5:0], post_count};
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      read_pointer <= '0;
      current_pointer <= '0;
      write_pointer <= '0;
    end else begin
      read_pointer <= read_pointer + POINTER_BITS'(done);
      current_pointer <= current_pointer + POINTER_BITS'(load);
      write_pointer <= write_pointer + POINTER_BITS'(post);
    end
  end

  // A frame that completes in the cycle of a clear is not covered by it.
  always_ff @(posedge clk) begin
    if (rst) irq <= 1'b0;
`ifdef BUG_DMA_TX_IRQ_LOST
    else if (irq_clear) irq <= 1'b0;
    else if (done) irq <= 1'b1;
`else
    else if (done) irq <= 1'b1;
    else if (irq_clear) irq <= 1'b0;
`endif
  end

  // Lines from memory.
  logic [21:0] load_extent;
  logic [10:0] load_lines;
  logic [57:0] line_number;
  logic [10:0] lines_left;
  logic [LEVEL_BITS-1:0] level;
  logic [LEVEL_BITS-1:0] on_the_way;
  logic request, answer, line_valid, line_done;
  logic [511:0] line;

  assign load_extent = extents[current_pointer[PLACE_BITS-1:0]];
  assign load_lines = load_extent[15:0] == '0 ? '0
                    : 11'((17'(load_extent[15:0]) + 17'(load_extent[21:16]) + 17'd63) >> 6);
`ifdef BUG_DMA_TX_AHEAD_OF_POST
  assign load = lines_left == '0;
`else
  assign load = lines_left == '0 && current_pointer != write_pointer;
`endif
`ifdef BUG_DMA_TX_QUEUE_OVERFLOW
  assign mem_req_valid = lines_left != '0 && level != LEVEL_BITS'(QUEUE_LINES);
`else
  assign mem_req_valid = lines_left != '0 && level + on_the_way != LEVEL_BITS'(QUEUE_LINES);
`endif
  assign mem_req_addr = {line_number, 6'd0};
  assign request = mem_req_valid && mem_req_ready;
  assign answer = mem_rsp_valid && mem_rsp_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      lines_left <= '0;
      on_the_way <= '0;
    end else begin
      if (load) lines_left <= load_lines;
      else if (request) lines_left <= lines_left - 1'b1;
      on_the_way <= on_the_way + LEVEL_BITS'(request) - LEVEL_BITS'(answer);
    end
  end

  always_ff @(posedge clk) begin
    if (load) line_number <= lines[current_pointer[PLACE_BITS-1:0]];
    else if (request) line_number <= line_number + 1'b1;
  end

  fifo #(
      .WIDTH(512),
      .DEPTH(QUEUE_LINES)
  ) queue (
      .clk,
      .rst,
      .in_valid (mem_rsp_valid),
      .in_ready (mem_rsp_ready),
      .in_data  (mem_rsp_data),
      .out_valid(line_valid),
      .out_ready(line_done),
      .out_data (line),
      .level
  );

  // Lines into beats. A beat that begins within a word takes its first bytes from the word before,
  // which is kept.
  logic [21:0] extent;
  logic [SHIFT_BITS-1:0] begins_at;
  logic active;  // A frame is leaving.
  logic shifted;  // Its beats begin within a word.
  logic primed;  // The word before is kept.
  logic [SHIFT_BITS-1:0] shift;
  logic [15:0] left;
  logic [WORD_BITS-1:0] word_number;
  logic [8*W-1:0] word;
  logic [8*W-1:0] kept;
  logic start, needs_word, take_word, send;

  assign extent = extents[read_pointer[PLACE_BITS-1:0]];
  assign begins_at = W == 1 ? '0 : extent[16+:SHIFT_BITS];
  assign start = !active && read_pointer != current_pointer;
  assign word = line[8*W*word_number+:8*W];
  // The last bytes may lie in the kept word.
  assign needs_word = !shifted || !primed || left > WORD_BYTES - 16'(shift);
  assign out_valid = active && (!shifted || primed) && (line_valid || !needs_word);
  assign send = out_valid && out_ready;
  assign take_word = active && line_valid && needs_word && (send || (shifted && !primed));
  assign out_last = left <= WORD_BYTES;
  assign line_done = (take_word && word_number == '1)
                   || (send && out_last && (take_word || word_number != '0));
  assign done = (send && out_last) || (start && extent[15:0] == '0);

  // Bytes after the frame are zero: memory beyond it does not leave.
  logic [8*W-1:0] beat;
  assign beat = shifted ? (8*W)'({word, kept} >> (8 * shift)) : word;
  always_comb begin
    for (int i = 0; i < W; i++) begin
      out_keep[i] = left > 16'(i);
      out_data[8*i+:8] = beat[8*i+:8] & {8{out_keep[i]}};
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      active <= 1'b0;
    end else if (start) begin
      active <= extent[15:0] != '0;
    end else if (send && out_last) begin
      active <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (start) begin
      left <= extent[15:0];
`ifdef BUG_DMA_TX_ALIGNED_ONLY
      shift <= '0;
      shifted <= 1'b0;
`else
      shift <= begins_at;
      shifted <= begins_at != '0;
`endif
      primed <= 1'b0;
      word_number <= extent[21-:WORD_BITS];
    end else begin
      if (send) left <= left - WORD_BYTES;
      if (take_word) begin
        kept <= word;
        primed <= 1'b1;
        word_number <= word_number + 1'b1;
      end
    end
  end

`ifdef FORMAL_DMA_TX
  `include "dma_tx.svh"
`endif
endmodule
