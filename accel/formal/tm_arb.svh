// Properties of tm_arb.sv: frames leave whole, every beat that leaves is the beat that was taken,
// an offer stands until it is taken, and a frame waits for one frame of the other stream at most.
logic f_ready, f_within, f_owner, f_stalled_a, f_stalled_b, f_stalled_out;
logic [8*W-1:0] f_data_a, f_data_b, f_data_out;
logic [W-1:0] f_keep_a, f_keep_b;
logic f_last_a, f_last_b;
logic [1:0] f_passed_a, f_passed_b;
logic f_take_a, f_take_b, f_take_out;
assign f_take_a = a_valid && a_ready;
assign f_take_b = b_valid && b_ready;
assign f_take_out = out_valid && out_ready;

initial f_ready = 1'b0;
always_ff @(posedge clk) f_ready <= 1'b1;
always_comb if (!f_ready) assume (rst);

// An input keeps to the beat that it offers until it is taken.
always_ff @(posedge clk) begin
  f_stalled_a <= a_valid && !a_ready && !rst;
  f_stalled_b <= b_valid && !b_ready && !rst;
  f_stalled_out <= out_valid && !out_ready && !rst;
  {f_data_a, f_keep_a, f_last_a} <= {a_data, a_keep, a_last};
  {f_data_b, f_keep_b, f_last_b} <= {b_data, b_keep, b_last};
  f_data_out <= out_data;
end
always_comb begin
  if (f_ready && f_stalled_a)
    assume (a_valid && {a_data, a_keep, a_last} == {f_data_a, f_keep_a, f_last_a});
  if (f_ready && f_stalled_b)
    assume (b_valid && {b_data, b_keep, b_last} == {f_data_b, f_keep_b, f_last_b});
end

always_ff @(posedge clk) begin
  if (rst) begin
    f_within   <= 1'b0;
    f_passed_a <= '0;
    f_passed_b <= '0;
  end else begin
    if (f_take_out) begin
      f_within <= !out_last;
      f_owner  <= f_take_b;
    end
    // Frames of the other stream that ended while this one offered a beat.
    if (!a_valid || f_take_a) f_passed_a <= '0;
    else if (f_take_b && b_last && f_passed_a != '1) f_passed_a <= f_passed_a + 1'b1;
    if (!b_valid || f_take_b) f_passed_b <= '0;
    else if (f_take_a && a_last && f_passed_b != '1) f_passed_b <= f_passed_b + 1'b1;
  end
end

always_comb begin
  if (f_ready && !rst) begin
    assert (!(f_take_a && f_take_b));
    assert (f_take_out == (f_take_a || f_take_b));
    if (f_take_a) assert ({out_data, out_keep, out_last} == {a_data, a_keep, a_last});
    if (f_take_b) assert ({out_data, out_keep, out_last} == {b_data, b_keep, b_last});
    if (f_within && f_take_out) assert (f_take_b == f_owner);
    if (f_stalled_out) assert (out_valid && out_data == f_data_out);
    assert (f_passed_a <= 2'd1 && f_passed_b <= 2'd1);
    // There is no cycle without an offer while there is a frame.
    if (!f_within && (a_valid || b_valid)) assert (out_valid);
  end
end

`ifdef FORMAL_INVARIANTS
always_comb begin
  if (f_ready && !rst) begin
    if (f_within) assert (held && served == f_owner);
    if (held && !f_within) assert (served ? f_stalled_b : f_stalled_a);
    if (f_passed_a != '0 && a_valid && !f_within && !held) assert (served);
    if (f_passed_b != '0 && b_valid && !f_within && !held) assert (!served);
    if (f_passed_a != '0 && f_stalled_a && held) assert (!served);
    if (f_passed_b != '0 && f_stalled_b && held) assert (served);
  end
end
`endif
