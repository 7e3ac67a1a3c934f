// Properties of dma_rx.sv: the pointers keep their order, no more buffers are posted than the ring
// holds, and a frame is written within its buffer.
//
// The solver chooses the pointer of the buffer that is watched.
localparam logic [POINTER_BITS-1:0] F_ENTRIES = POINTER_BITS'(ENTRIES);
(* anyconst *) logic [POINTER_BITS-1:0] f_watched;
logic [POINTER_BITS-1:0] f_current, f_filling, f_write, f_place;
logic f_ready, f_posted, f_open;
logic [57:0] f_line;

initial f_ready = 1'b0;
always_ff @(posedge clk) f_ready <= 1'b1;
always_comb if (!f_ready) assume (rst);

// Distances from the first pointer.
assign f_current = current_pointer - read_pointer;
assign f_filling = filling - read_pointer;
assign f_write   = write_pointer - read_pointer;
assign f_place   = f_watched - filling;

// Memory answers what it was asked, and nothing else.
logic [7:0] f_asked;
always_ff @(posedge clk) begin
  if (rst) f_asked <= '0;
  else f_asked <= f_asked + 8'(send) - 8'(acknowledged);
end
always_comb if (f_asked == '0) assume (!mem_rsp_valid);

always_ff @(posedge clk) begin
  if (rst) begin
    f_posted <= 1'b0;
    f_open   <= 1'b0;
  end else begin
    if (post && write_pointer == f_watched) begin
      f_posted <= 1'b1;
      f_line   <= post_line;
    end else if (begins && filling == f_watched) f_posted <= 1'b0;
    if (begins) f_open <= filling == f_watched && f_posted;
  end
end

always_comb begin
  if (f_ready && !rst) begin
    assert (f_current <= f_filling);
    assert (f_filling <= f_write);
    assert (f_write <= F_ENTRIES);
    if (send && f_open) assert (mem_req_addr[63:6] - f_line < 58'(BUFFER_LINES));
    if (acknowledged) assert (mem_rsp_ready);
    if (mem_rsp_valid) assert (mem_rsp_ready);
  end
end

`ifdef FORMAL_INVARIANTS
// The queue of lines on their way is taken at its word: it has a proof of its own.
logic [LINES_ON_THE_WAY-1:0] f_way;
logic [LINES_ON_THE_WAY-1:0] f_mask;
assign f_mask = (LINES_ON_THE_WAY'(1) << f_asked) - 1'b1;
always_ff @(posedge clk) begin
  if (acknowledged && send)
    f_way <= ((f_way & f_mask) >> 1) | (LINES_ON_THE_WAY'(ended) << (f_asked - 1'b1));
  else if (acknowledged) f_way <= (f_way & f_mask) >> 1;
  else if (send) f_way <= (f_way & f_mask) | (LINES_ON_THE_WAY'(ended) << f_asked);
end
logic [POINTER_BITS-1:0] f_ends;
always_comb begin
  f_ends = '0;
  for (int i = 0; i < LINES_ON_THE_WAY; i++)
    if (8'(i) < f_asked) f_ends = f_ends + POINTER_BITS'(f_way[i]);
end
always_comb begin
  assume (way_valid == (f_asked != '0));
  assume (way_ready == (f_asked != 8'(LINES_ON_THE_WAY)));
  if (way_valid) assume (way_ended == f_way[0]);
  if (f_ready && !rst) begin
    assert (f_asked <= 8'(LINES_ON_THE_WAY));
    // Frames between current and filling: those on the way and the one that is being filled.
    assert (f_filling - f_current == f_ends + POINTER_BITS'(open || full || spill));
    if (spill) assert (!open && !ended);
    if (ended) assert (full && !open);
    if (full && !ended) assert (open || spill);
    if (full && !ended && line_is_last) assert (!spill);
    if (open || full || spill) assert (32'(line_number) < BUFFER_LINES);
    if ((open || spill) && !full && line_is_last) assert (word_number != '0);
    if (full && !ended) assert (word_number == '0);
    if (f_open && (open || full || spill)) begin
      assert (address == f_line + 58'(line_number));
      assert (f_place == '1);
    end
    assert (f_posted == (f_place < write_pointer - filling));
    if (f_posted) assert (buffers[f_watched[PLACE_BITS-1:0]] == f_line);
  end
end
`endif
