// Properties of fifo.sv: it holds DEPTH words at most, and the nth word that is taken is the nth
// word that was put in.
//
// Words are numbered modulo SPAN, which is more than can be inside at once. The solver chooses the
// number that is watched.
localparam int F_SPAN = 4 * DEPTH;
localparam int F_BITS = $clog2(F_SPAN);
(* anyconst *) logic [F_BITS-1:0] f_watched;
logic [F_BITS-1:0] f_put, f_taken, f_distance;
logic [WIDTH-1:0] f_word;
logic f_inside, f_ready;

initial f_ready = 1'b0;
always_ff @(posedge clk) f_ready <= 1'b1;
always_comb if (!f_ready) assume (rst);
always_comb assume (32'(f_watched) < F_SPAN);

// How many words are taken before the watched one.
assign f_distance = f_watched >= f_taken ? f_watched - f_taken
                  : F_BITS'(F_SPAN - 32'(f_taken) + 32'(f_watched));
assign f_inside = f_distance < F_BITS'(level);

always_ff @(posedge clk) begin
  if (rst) begin
    f_put   <= '0;
    f_taken <= '0;
  end else begin
    if (put) f_put <= f_put == F_BITS'(F_SPAN - 1) ? '0 : f_put + 1'b1;
    if (take) f_taken <= f_taken == F_BITS'(F_SPAN - 1) ? '0 : f_taken + 1'b1;
  end
  if (put && f_put == f_watched) f_word <= in_data;
end

always_comb begin
  if (f_ready && !rst) begin
    assert (level <= LEVEL_BITS'(DEPTH));
    if (level == '0) assert (!out_valid);
    if (take && f_taken == f_watched) assert (out_data == f_word);
  end
end

`ifdef FORMAL_INVARIANTS
always_comb begin
  if (f_ready && !rst) begin
    assert (32'(f_put) < F_SPAN && 32'(f_taken) < F_SPAN);
    assert ((32'(f_taken) + 32'(level)) % F_SPAN == 32'(f_put));
    assert (32'(write_place) == 32'(f_put) % DEPTH);
  end
end

generate
  if (DEPTH <= LUT_WORDS) begin : g_f_lut
    always_comb begin
      if (f_ready && !rst) begin
        assert (32'(read_place) == 32'(f_taken) % DEPTH);
        if (f_inside) assert (words[32'(f_watched)%DEPTH] == f_word);
      end
    end
  end else begin : g_f_block
    always_comb begin
      if (f_ready && !rst) begin
        assert (32'(read_place) == (32'(f_taken) + 32'(out_valid)) % DEPTH);
        if (f_inside && out_valid && f_distance == '0) assert (out_data == f_word);
        if (f_inside && !(out_valid && f_distance == '0))
          assert (words[32'(f_watched)%DEPTH] == f_word);
        if (out_valid) assert (level != '0);
      end
    end
  end
endgenerate
`endif
