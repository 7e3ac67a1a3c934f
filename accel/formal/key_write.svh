// Properties of key_write.sv: the half that is written is never the half that is read, so the key
// that was taken stays as it was until the next one is taken.
//
// The solver chooses the word that is watched.
(* anyconst *) logic [WORD_W-1:0] f_watched;
logic f_ready, f_has_new, f_has_old, f_asked;
logic [8*W-1:0] f_new, f_old, f_answer;

initial f_ready = 1'b0;
always_ff @(posedge clk) f_ready <= 1'b1;
always_comb if (!f_ready) assume (rst);

always_ff @(posedge clk) begin
  if (rst) begin
    f_has_new <= 1'b0;
    f_has_old <= 1'b0;
  end else begin
    if (len_valid && len_ready) f_has_new <= 1'b0;
    if (put && word == f_watched) begin
      f_has_new <= 1'b1;
      f_new <= data;
    end
    if (out_valid && out_ready) begin
      f_has_old <= f_has_new;
      f_old <= f_new;
    end
  end
  // What is read while a key is exchanged is not looked at.
  f_asked  <= f_has_old && rd_word == f_watched && !rst;
  f_answer <= f_old;
end

always_comb begin
  if (f_ready && !rst) begin
    assert (half != read_half);
    if (f_asked) assert (rd_data == f_answer);
  end
end
