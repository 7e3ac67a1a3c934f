// Situations of the transmit ring that the tests must reach. `cargo xtask rtl` counts them.
module dma_tx_cover (
    input logic clk, rst, post_valid, post_ready, start, done, send, shifted, needs_word, take_word,
    input logic out_valid, out_ready, out_last, line_valid, active, irq, irq_clear, request,
    input logic queue_full, asked_and_queued, empty_frame,
    input logic [31:0] read, current, write
);
  tx_ring_full: cover property (@(posedge clk) disable iff (rst) post_valid && !post_ready);
  tx_ring_empty: cover property (@(posedge clk) disable iff (rst) read == write);
  tx_write_wrapped: cover property (@(posedge clk) disable iff (rst) write < read);
  tx_queue_full: cover property (@(posedge clk) disable iff (rst) queue_full);
  tx_fetches_while_it_sends: cover property (@(posedge clk) disable iff (rst) asked_and_queued && send);
  tx_fetches_the_next_frame_ahead: cover property (@(posedge clk) disable iff (rst) active && request && current - read > 32'd1);
  tx_waits_for_memory: cover property (@(posedge clk) disable iff (rst) active && !line_valid && needs_word);
  tx_waits_for_the_sink: cover property (@(posedge clk) disable iff (rst) out_valid && !out_ready);
  tx_no_bytes: cover property (@(posedge clk) disable iff (rst) empty_frame);
  tx_irq_again_in_the_cycle_of_its_clear: cover property (@(posedge clk) disable iff (rst) done && irq && irq_clear);
  tx_one_beat: cover property (@(posedge clk) disable iff (rst) send && out_last && take_word);
endmodule

bind dma_tx dma_tx_cover points (
    .clk, .rst, .post_valid, .post_ready, .start, .done, .send, .shifted, .needs_word, .take_word,
    .out_valid, .out_ready, .out_last, .line_valid, .active, .irq, .irq_clear, .request,
    .queue_full(level == LEVEL_BITS'(QUEUE_LINES)),
    .asked_and_queued(on_the_way != '0 && line_valid),
    .empty_frame(start && extent[15:0] == '0),
    .read(32'(read_pointer)), .current(32'(current_pointer)), .write(32'(write_pointer))
);
