// Situations of the receive ring that the tests must reach. `cargo xtask rtl` counts them.
module dma_rx_cover (
    input logic clk, rst, in_valid, in_ready, open, full, ended, cutting, send, begins, finish,
    input logic post_valid, post_ready, count_valid, irq, irq_clear, mem_req_valid, mem_req_ready,
    input logic mem_rsp_valid, way_ready,
    input logic [31:0] read, filling, write
);
  rx_ring_full: cover property (@(posedge clk) disable iff (rst) post_valid && !post_ready);
  rx_ring_empty: cover property (@(posedge clk) disable iff (rst) in_valid && !in_ready && !open && filling == write);
  rx_all_counts_unread: cover property (@(posedge clk) disable iff (rst) count_valid && filling == write && !post_ready);
  rx_write_wrapped: cover property (@(posedge clk) disable iff (rst) write < read);
  rx_frame_cut: cover property (@(posedge clk) disable iff (rst) cutting && in_valid);
  rx_next_begins_as_last_line_is_sent: cover property (@(posedge clk) disable iff (rst) begins && send && ended);
  rx_ends_with_its_line: cover property (@(posedge clk) disable iff (rst) full && ended);
  rx_memory_stalls: cover property (@(posedge clk) disable iff (rst) mem_req_valid && !mem_req_ready && in_valid);
  rx_irq_again_in_the_cycle_of_its_clear: cover property (@(posedge clk) disable iff (rst) finish && irq && irq_clear);
  rx_acknowledged_while_sending: cover property (@(posedge clk) disable iff (rst) mem_rsp_valid && send);
endmodule

bind dma_rx dma_rx_cover points (
    .clk, .rst, .in_valid, .in_ready, .open, .full, .ended, .cutting, .send, .begins, .finish,
    .post_valid, .post_ready, .count_valid, .irq, .irq_clear, .mem_req_valid, .mem_req_ready,
    .mem_rsp_valid, .way_ready,
    .read(32'(read_pointer)), .filling(32'(filling)), .write(32'(write_pointer))
);
