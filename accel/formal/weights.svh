// Properties of weights.sv: a hit never lowers a count, and a count is the number of hits since it
// was set or reset, 63 at most, also while the sweep is under way.
//
// The solver chooses the slot that is watched.
(* anyconst *) logic [SLOT_W-1:0] f_watched;
logic f_ready, f_asked, f_hit;
logic [COUNT_W-1:0] f_count, f_base, f_answer;

initial f_ready = 1'b0;
always_ff @(posedge clk) f_ready <= 1'b1;
always_comb if (!f_ready) assume (rst);

// What the caller sees to.
always_comb begin
  if (clearing) assume (!inc_valid && !set_valid && !rd_valid && !reset_valid);
  assume (32'(inc_valid) + 32'(set_valid) + 32'(rd_valid) <= 1);
end

assign f_hit  = inc_valid && inc_slot == f_watched;
assign f_base = reset_valid && reset_ready ? '0 : f_count;
always_ff @(posedge clk) begin
  if (rst) f_count <= '0;
  else if (set_valid && set_slot == f_watched) f_count <= set_count;
  else if (f_hit && f_base != kv_pkg::COUNT_MAX) f_count <= f_base + 1'b1;
  else f_count <= f_base;
  f_asked  <= rd_valid && rd_slot == f_watched && !rst;
  f_answer <= f_base;
end

always_comb begin
  if (f_ready && !rst) begin
    if (write && inc_q) assert (next >= count);
    if (f_asked) assert (rd_count == f_answer);
  end
end
