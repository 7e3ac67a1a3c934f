// Properties of ctrl.sv: nothing but the mode changes in read mode, and nothing changes in write
// mode before the lookup was seen idle.
logic f_ready, f_drained, f_acts;

initial f_ready = 1'b0;
always_ff @(posedge clk) f_ready <= 1'b1;
always_comb if (!f_ready) assume (rst);

always_ff @(posedge clk) begin
  if (rst || !write_mode) f_drained <= 1'b0;
  else if (lookup_idle) f_drained <= 1'b1;
end

assign f_acts = set_address || set_length || set_cas || write_begin || mem_start || key_len_valid
                || from_memory || deleting || reserving || reset_counts;

always_comb begin
  if (f_ready && !rst) begin
    if (f_acts) assert (write_mode);
    if (f_acts) assert (f_drained || lookup_idle);
    // The mode changes where a command is taken, and nowhere else.
    if (rsp_valid && operation == kv_pkg::OP_SWITCH_MODE && write_mode) assert (f_drained);
  end
end

`ifdef FORMAL_INVARIANTS
always_comb begin
  if (f_ready && !rst) begin
    assert (32'(state) <= 32'(RESPOND));
    if (state != IDLE && state != DECODE && state != DRAIN && state != RESPOND) begin
      assert (write_mode && f_drained);
      assert (operation != kv_pkg::OP_SWITCH_MODE);
    end
    if (state == DRAIN) assert (operation == kv_pkg::OP_SWITCH_MODE);
    if (state == IDLE && write_mode) assert (f_drained);
    if ((state == DECODE || state == RESPOND) && write_mode && operation != kv_pkg::OP_SWITCH_MODE)
      assert (f_drained);
    if (state == RESPOND && operation == kv_pkg::OP_SWITCH_MODE && write_mode) assert (f_drained);
  end
end
`endif
