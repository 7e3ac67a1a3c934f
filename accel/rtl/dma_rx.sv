// Writes frames into buffers in the CPU's memory.
//
// The driver posts empty buffers. A buffer begins at a line of 64 bytes and has BUFFER_LINES lines.
// Each frame goes into the next buffer, after two bytes of zero, which align its IP header to four
// bytes. The rest of its last line is zero. When memory has acknowledged all lines of a frame, its
// length stands in the ring of counts and an interrupt is pending. Memory answers in order. Up to
// LINES_ON_THE_WAY lines wait for their answers.
//
// A frame that is longer than its buffer is cut, and bit 15 of its count says so. Without a buffer,
// frames wait at the input.
//
// Pointers have one bit more than a place in the ring, so that a full ring differs from an empty
// one. read <= current <= filling <= write <= read + ENTRIES, modulo 2 * ENTRIES:
//   read     the next count that the driver takes
//   current  the next frame that is complete
//   filling  the next buffer that a frame begins to fill
//   write    the next buffer that the driver posts
module dma_rx #(
    parameter int W = 1,
    parameter int ENTRIES = 64,
    parameter int BUFFER_LINES = 24,
    parameter int LINES_ON_THE_WAY = 64,
    localparam int POINTER_BITS = $clog2(ENTRIES) + 1
) (
    input  logic                    clk,
    input  logic                    rst,
    // Frames.
    input  logic                    in_valid,
    output logic                    in_ready,
    input  logic [         8*W-1:0] in_data,
    input  logic [           W-1:0] in_keep,
    input  logic                    in_last,
    // The driver: an empty buffer by its address divided by 64, and the length of a frame.
    input  logic                    post_valid,
    output logic                    post_ready,
    input  logic [            57:0] post_line,
    output logic                    count_valid,
    input  logic                    count_ready,
    output logic [            15:0] count_data,
    output logic [POINTER_BITS-1:0] read_pointer,
    output logic [POINTER_BITS-1:0] current_pointer,
    output logic [POINTER_BITS-1:0] write_pointer,
    output logic                    irq,
    input  logic                    irq_clear,
    // Memory. It answers a write, without data.
    output logic                    mem_req_valid,
    input  logic                    mem_req_ready,
    output logic [            63:0] mem_req_addr,
    output logic [           511:0] mem_req_data,
    input  logic                    mem_rsp_valid,
    output logic                    mem_rsp_ready
);
  localparam int PLACE_BITS = POINTER_BITS - 1;
  localparam int PAD = 2;
  localparam int WORDS = 64 / W;
  localparam int WORD_BITS = $clog2(WORDS);
  // The pad moves bytes by whole words, and by some bytes within a word.
  localparam int PAD_WORDS = PAD / W;
  localparam int PAD_BYTES = PAD % W;
  localparam int LINE_BITS = $clog2(BUFFER_LINES);
  localparam logic [14:0] LENGTH_MAX = 15'(64 * BUFFER_LINES - PAD);
`ifdef BUG_DMA_RX_NO_PAD
  localparam logic [WORD_BITS-1:0] FIRST_WORD = '0;
`else
  localparam logic [WORD_BITS-1:0] FIRST_WORD = WORD_BITS'(PAD_WORDS);
`endif

  logic [POINTER_BITS-1:0] filling;
  logic [PLACE_BITS-1:0] filled_last;
  logic [57:0] buffers[ENTRIES];
  logic [15:0] counts[ENTRIES];

  logic open;  // Between the first and the last beat of a frame.
  logic spill;  // The last bytes of a frame wait for a word of their own.
  logic full;  // The line is complete.
  logic ended;  // It is the last one of its frame.
  logic [511:0] line;
  logic [57:0] address;
  logic [LINE_BITS-1:0] line_number;
  logic [WORD_BITS-1:0] word_number;
  logic [14:0] length;

  logic accept, begins, put_word, send;
  logic [8*W-1:0] kept;
  logic [8*W-1:0] word;
  logic [14:0] bytes;
  logic [WORD_BITS-1:0] place;  // Of the word within its line.
  logic fills;  // The word is the last one of its line.
  logic spills;  // The beat has bytes for a word after this one.
  logic fits;  // There is room for that word.
  logic line_is_last;  // The buffer has no line after this one.
  logic cutting;  // The buffer is full, and its frame goes on.
  logic acknowledged;

  // The driver's side.
  logic post, take, finish;
`ifdef BUG_DMA_RX_RING_OVERFLOW
  assign post_ready = 1'b1;
`else
  assign post_ready = write_pointer - read_pointer != POINTER_BITS'(ENTRIES);
`endif
  assign post = post_valid && post_ready;
`ifdef BUG_DMA_RX_COUNT_EARLY
  assign count_valid = read_pointer != filling;
`else
  assign count_valid = read_pointer != current_pointer;
`endif
  assign count_data = counts[read_pointer[PLACE_BITS-1:0]];
  assign take = count_valid && count_ready;

  always_ff @(posedge clk) begin
    if (post) buffers[write_pointer[PLACE_BITS-1:0]] <= post_line;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      read_pointer <= '0;
      current_pointer <= '0;
      write_pointer <= '0;
    end else begin
      read_pointer <= read_pointer + POINTER_BITS'(take);
      current_pointer <= current_pointer + POINTER_BITS'(finish);
      write_pointer <= write_pointer + POINTER_BITS'(post);
    end
  end

  // A frame that completes in the cycle of a clear is not covered by it.
  always_ff @(posedge clk) begin
    if (rst) irq <= 1'b0;
`ifdef BUG_DMA_RX_IRQ_LOST
    else if (irq_clear) irq <= 1'b0;
    else if (finish) irq <= 1'b1;
`else
    else if (finish) irq <= 1'b1;
    else if (irq_clear) irq <= 1'b0;
`endif
  end

  // Bytes into words.
  always_comb begin
    kept  = '0;
    bytes = '0;
    for (int i = 0; i < W; i++) begin
      if (in_keep[i]) begin
        kept[8*i+:8] = in_data[8*i+:8];
        bytes = bytes + 15'd1;
      end
    end
  end

  generate
    if (PAD_BYTES == 0) begin : g_whole
      assign word   = kept;
      assign spills = 1'b0;
      assign spill  = 1'b0;
    end else begin : g_shifted
      // The bytes of the last beat that belong to the next word.
      logic [8*PAD_BYTES-1:0] carried;
      assign word = spill ? {{8 * (W - PAD_BYTES) {1'b0}}, carried}
                  : {kept[8*(W-PAD_BYTES)-1:0], open ? carried : {8 * PAD_BYTES{1'b0}}};
`ifdef BUG_DMA_RX_TAIL_LOST
      assign spills = 1'b0;
`else
      assign spills = in_keep[W-PAD_BYTES];
`endif
      always_ff @(posedge clk) begin
        if (accept) carried <= kept[8*W-1-:8*PAD_BYTES];
        if (rst) spill <= 1'b0;
        else if (accept) spill <= in_last && spills && fits;
        else if (put_word) spill <= 1'b0;
      end
    end
  endgenerate

  // Words into lines. The last line of a full buffer waits for the end of its frame, whose other
  // bytes are dropped.
  assign accept = in_valid && in_ready;
  assign begins = accept && !open;
  assign put_word = spill ? !full || send : accept && !cutting;
  assign place = begins ? FIRST_WORD : word_number;
  assign fills = place == '1;
  assign line_is_last = line_number == LINE_BITS'(BUFFER_LINES - 1);
  assign fits = !cutting && (begins || !(line_is_last && fills));
`ifdef BUG_DMA_RX_BUFFER_OVERRUN
  assign cutting = 1'b0;
`else
  assign cutting = full && line_is_last && !ended;
`endif
  always_comb begin
    if (cutting) in_ready = 1'b1;
    else if (spill || (full && !send)) in_ready = 1'b0;
`ifdef BUG_DMA_RX_NO_BUFFER
    else in_ready = 1'b1;
`else
    else in_ready = open || filling != write_pointer;
`endif
  end

  // In this order, a flip-flop's own reset and enable do the work of two multiplexers.
  generate
    for (genvar i = 0; i < WORDS; i++) begin : g_words
      logic put_here;
      assign put_here = put_word && place == WORD_BITS'(i);
      always_ff @(posedge clk) begin
        if (rst || (send && !put_here)) line[8*W*i+:8*W] <= '0;
        else if (put_here) line[8*W*i+:8*W] <= word;
      end
    end
  endgenerate

  // The line's address and number change with its first word, so they hold until it is sent.
  always_ff @(posedge clk) begin
    if (begins) begin
      address <= buffers[filling[PLACE_BITS-1:0]];
      line_number <= '0;
    end else if (put_word && place == '0) begin
      address <= address + 1'b1;
      line_number <= line_number + 1'b1;
    end
  end

  always_ff @(posedge clk) begin
    if (begins) length <= bytes;
    else if (accept && length <= LENGTH_MAX) length <= length + bytes;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      open <= 1'b0;
      full <= 1'b0;
      ended <= 1'b0;
      filling <= '0;
      word_number <= '0;
    end else begin
      if (accept) open <= !in_last;
      if (begins) filling <= filling + 1'b1;
      if (put_word) begin
        word_number <= place + 1'b1;
        ended <= spill || (in_last && !(spills && fits));
        full <= spill || fills || (in_last && !(spills && fits));
      end else if (cutting) begin
        ended <= accept && in_last;
      end else if (send) begin
        full  <= 1'b0;
        ended <= 1'b0;
      end
    end
  end

  // Lines into memory. The queue holds, for each line on its way, whether it ends a frame.
  logic way_ready, way_valid, way_ended;
  logic [$clog2(LINES_ON_THE_WAY+1)-1:0] way_level;
  fifo #(
      .WIDTH(1),
      .DEPTH(LINES_ON_THE_WAY)
  ) on_the_way (
      .clk,
      .rst,
      .in_valid (send),
      .in_ready (way_ready),
      .in_data  (ended),
      .out_valid(way_valid),
      .out_ready(mem_rsp_valid),
      .out_data (way_ended),
      .level    (way_level)
  );
  assign mem_req_valid = full && !cutting && way_ready;
  assign mem_req_addr  = {address, 6'd0};
  assign mem_req_data  = line;
  assign send          = mem_req_valid && mem_req_ready;
  assign mem_rsp_ready = way_valid;
  assign acknowledged  = mem_rsp_valid && mem_rsp_ready;
  assign finish        = acknowledged && way_ended;
  logic unused_bits;
  assign unused_bits = &{1'b0, way_level};

  // The count's place is known before the next frame begins, and shows when current passes it.
  assign filled_last   = filling[PLACE_BITS-1:0] - 1'b1;
  always_ff @(posedge clk) begin
    if (send && ended)
      counts[filled_last] <= length > LENGTH_MAX ? {1'b1, LENGTH_MAX} : {1'b0, length};
  end

`ifdef FORMAL_DMA_RX
  `include "dma_rx.svh"
`endif
endmodule
