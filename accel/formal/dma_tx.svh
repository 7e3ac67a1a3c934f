// Properties of dma_tx.sv: the pointers keep their order, no more frames are posted than the ring
// holds, only lines of the frame are read, as many bytes leave as were posted, and there is always
// room for a line that memory brings.
//
// The solver chooses the pointer of the frame that is watched.
localparam logic [POINTER_BITS-1:0] F_ENTRIES = POINTER_BITS'(ENTRIES);
(* anyconst *) logic [POINTER_BITS-1:0] f_watched;
logic [POINTER_BITS-1:0] f_current, f_write;
logic f_ready, f_fetched, f_leaving, f_posted;
logic [63:0] f_addr, f_last;
logic [15:0] f_count, f_sent, f_bytes;

initial f_ready = 1'b0;
always_ff @(posedge clk) f_ready <= 1'b1;
always_comb if (!f_ready) assume (rst);

// Distances from the first pointer.
assign f_current = current_pointer - read_pointer;
assign f_write   = write_pointer - read_pointer;

// Memory answers what it was asked, and nothing else.
logic [7:0] f_asked;
always_ff @(posedge clk) begin
  if (rst) f_asked <= '0;
  else f_asked <= f_asked + 8'(request) - 8'(answer);
end
always_comb if (f_asked == '0) assume (!mem_rsp_valid);

always_comb begin
  f_bytes = '0;
  for (int i = 0; i < W; i++) f_bytes = f_bytes + 16'(out_keep[i]);
end
assign f_last = f_addr + 64'(f_count) - 64'd1;

// Memory is small here, which is quicker to prove and keeps a frame's end from wrapping.
always_comb if (post) assume (post_addr < 64'd1024 && post_count < 16'd1024);
always_ff @(posedge clk) begin
  if (rst) begin
    f_posted  <= 1'b0;
    f_fetched <= 1'b0;
    f_leaving <= 1'b0;
  end else begin
    if (post && write_pointer == f_watched) begin
      f_posted <= 1'b1;
      f_addr   <= post_addr;
      f_count  <= post_count;
    end else if (done && read_pointer == f_watched) f_posted <= 1'b0;
    if (load) f_fetched <= f_posted && current_pointer == f_watched;
    else if (done && read_pointer == f_watched) f_fetched <= 1'b0;
    if (start) begin
      f_leaving <= f_posted && read_pointer == f_watched;
      f_sent    <= '0;
    end else if (send) f_sent <= f_sent + f_bytes;
  end
end

always_comb begin
  if (f_ready && !rst) begin
    assert (f_current <= f_write);
    assert (f_write <= F_ENTRIES);
    if (mem_rsp_valid) assert (mem_rsp_ready);
    if (request && f_fetched) begin
      assert (mem_req_addr[63:6] >= f_addr[63:6]);
      assert (mem_req_addr[63:6] <= f_last[63:6]);
    end
    if (send && out_last && f_leaving) assert (f_sent + f_bytes == f_count);
    if (send && !out_last) assert (f_bytes == 16'(W));
  end
end

`ifdef FORMAL_INVARIANTS
// The queue of lines is taken at its word: it has a proof of its own.
logic [7:0] f_lines;
logic [POINTER_BITS-1:0] f_place;
assign f_place = f_watched - read_pointer;
always_ff @(posedge clk) begin
  if (rst) f_lines <= '0;
  else f_lines <= f_lines + 8'(answer) - 8'(line_valid && line_done);
end
always_comb begin
  assume (8'(level) == f_lines);
  assume (line_valid == (f_lines != '0));
  assume (mem_rsp_ready == (f_lines != 8'(QUEUE_LINES)));
  if (f_ready && !rst) begin
    assert (8'(on_the_way) == f_asked);
    assert (f_asked + f_lines <= 8'(QUEUE_LINES));
    if (active) assert (left != '0 && f_current != '0);
    assert (f_posted == (f_place < f_write));
    if (f_posted) assert (lines[f_watched[PLACE_BITS-1:0]] == f_addr[63:6]);
    if (f_posted) assert (extents[f_watched[PLACE_BITS-1:0]] == {f_addr[5:0], f_count});
    if (f_posted) assert (f_addr < 64'd1024 && f_count < 16'd1024);
    if (active && f_leaving) assert (f_posted && f_sent + left == f_count);
    if (active && f_leaving) assert (f_watched == read_pointer);
    if (lines_left != '0 && f_fetched) begin
      assert (f_posted && f_count != '0);
      assert (line_number >= f_addr[63:6] && line_number <= f_last[63:6]);
      assert (line_number + 58'(lines_left) == f_last[63:6] + 1'b1);
    end
  end
end
`endif
