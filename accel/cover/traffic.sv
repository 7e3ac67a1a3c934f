// Situations of the traffic manager that the tests must reach. `cargo xtask rtl` counts them.
module tm_buffers_cover (
    input logic clk, rst, beat, in_frame, dropping, done, is_get, has_word, has_place, rx_valid,
    input logic gives_up, too_long, known, hit, fits, skips, moves, direct, pops, cpu_valid, takes,
    input logic keys_room, head_get, commit
);
  tm_beat_after_last_beat: cover property (@(posedge clk) disable iff (rst) beat && !in_frame && done);
  tm_mac_waits_within_a_frame: cover property (@(posedge clk) disable iff (rst) rx_valid && in_frame && !dropping && !has_word);
  tm_mac_waits_before_a_frame: cover property (@(posedge clk) disable iff (rst) rx_valid && !in_frame && !has_place);
  tm_no_room_for_a_key: cover property (@(posedge clk) disable iff (rst) rx_valid && !keys_room);
  tm_dropped_within_a_frame: cover property (@(posedge clk) disable iff (rst) beat && gives_up && in_frame && !dropping);
  tm_dropped_before_a_frame: cover property (@(posedge clk) disable iff (rst) beat && gives_up && !in_frame);
  tm_dropped_get: cover property (@(posedge clk) disable iff (rst) done && is_get && !commit);
  tm_jumbo: cover property (@(posedge clk) disable iff (rst) beat && too_long && !dropping);
  tm_waits_for_the_defer_buffer: cover property (@(posedge clk) disable iff (rst) known && !hit && !fits && !moves && !skips);
  tm_dropped_before_the_defer_buffer: cover property (@(posedge clk) disable iff (rst) skips && !hit);
  tm_hit_leaves: cover property (@(posedge clk) disable iff (rst) skips && hit);
  tm_miss_leaves: cover property (@(posedge clk) disable iff (rst) moves && head_get);
  tm_past_the_defer_memory: cover property (@(posedge clk) disable iff (rst) direct);
  tm_through_the_defer_memory: cover property (@(posedge clk) disable iff (rst) pops && moves);
  tm_cpu_waits: cover property (@(posedge clk) disable iff (rst) cpu_valid && !takes);
endmodule

bind tm_buffers tm_buffers_cover points (.*);

module tm_keys_cover (
    input logic clk, rst, bypass, starts, sent_valid, key_valid, key_ready, key_last, commit, done, we
);
  tm_bypassed: cover property (@(posedge clk) disable iff (rst) bypass);
  tm_bypassed_behind_a_lookup: cover property (@(posedge clk) disable iff (rst) bypass && sent_valid);
  tm_key_after_key: cover property (@(posedge clk) disable iff (rst) starts && sent_valid);
  tm_lookup_stalls_a_key: cover property (@(posedge clk) disable iff (rst) key_valid && !key_ready && key_last);
  tm_key_is_written_over: cover property (@(posedge clk) disable iff (rst) done && !commit);
  tm_key_ends_after_its_frame: cover property (@(posedge clk) disable iff (rst) commit && we);
endmodule

bind tm_keys tm_keys_cover points (.*);

module tm_respond_cover (
    input logic clk, rst, answered, missed, refused, hit, has_key, key_beat, value_beat, ends, overhangs,
    input logic is_full, out_valid,
    input logic [15:0] val_len
);
  tm_hit: cover property (@(posedge clk) disable iff (rst) hit && !has_key);
  tm_hit_with_key: cover property (@(posedge clk) disable iff (rst) hit && has_key);
  tm_miss: cover property (@(posedge clk) disable iff (rst) missed);
  tm_reply_too_long: cover property (@(posedge clk) disable iff (rst) refused);
  tm_hit_waits_for_room: cover property (@(posedge clk) disable iff (rst) answered && val_len != 0 && !refused && !hit);
  tm_value_ends_in_its_beat: cover property (@(posedge clk) disable iff (rst) ends && is_full && !overhangs);
  tm_value_overhangs: cover property (@(posedge clk) disable iff (rst) ends && overhangs);
  tm_value_is_short: cover property (@(posedge clk) disable iff (rst) ends && !is_full);
  tm_value_during_a_reply: cover property (@(posedge clk) disable iff (rst) value_beat && out_valid);
  tm_key_during_a_reply: cover property (@(posedge clk) disable iff (rst) key_beat && out_valid);
endmodule

bind tm_respond tm_respond_cover points (.*);

module tm_reply_cover (
    input logic clk, rst, reply_valid, sending, out_valid, out_ready,
    input logic [15:0] udp_folded
);
  tm_reply_stalls: cover property (@(posedge clk) disable iff (rst) out_valid && !out_ready);
  tm_next_reply_waits: cover property (@(posedge clk) disable iff (rst) reply_valid && sending);
  tm_checksum_is_zero: cover property (@(posedge clk) disable iff (rst) sending && udp_folded == 0);
endmodule

bind tm_reply tm_reply_cover points (.*);
