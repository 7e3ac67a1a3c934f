// Three clients at one memory port. They take turns; memory answers in order, and each answer goes
// to the client that asked. At most ON_THE_WAY requests wait for their answers.
module mem_mux #(
    parameter int ON_THE_WAY = 16
) (
    input  logic         clk,
    input  logic         rst,
    // Client i has bit i, address 64 * i and data 512 * i.
    input  logic [  2:0] req_valid,
    output logic [  2:0] req_ready,
    input  logic [191:0] req_addr,
    input  logic [  2:0] req_write,
    input  logic [1535:0] req_data,
    output logic [  2:0] rsp_valid,
    input  logic [  2:0] rsp_ready,
    output logic [511:0] rsp_data,
    // Memory.
    output logic         mem_req_valid,
    input  logic         mem_req_ready,
    output logic [ 63:0] mem_req_addr,
    output logic         mem_req_write,
    output logic [511:0] mem_req_data,
    input  logic         mem_rsp_valid,
    output logic         mem_rsp_ready,
    input  logic [511:0] mem_rsp_data
);
  // A request that is offered stays the one that is offered until memory takes it.
  logic held;
  logic [1:0] served, choice;
  always_comb begin
    if (held) choice = served;
    else
      case (served)
        2'd0: choice = req_valid[1] ? 2'd1 : req_valid[2] ? 2'd2 : 2'd0;
        2'd1: choice = req_valid[2] ? 2'd2 : req_valid[0] ? 2'd0 : 2'd1;
        default: choice = req_valid[0] ? 2'd0 : req_valid[1] ? 2'd1 : 2'd2;
      endcase
  end

  logic has_room, asked;
  logic [1:0] asker;
  logic [$clog2(ON_THE_WAY+1)-1:0] unused_level;
  wire sends = mem_req_valid && mem_req_ready;
  fifo #(
      .WIDTH(2),
      .DEPTH(ON_THE_WAY)
  ) askers (
      .clk,
      .rst,
      .in_valid(sends),
      .in_ready(has_room),
      .in_data(choice),
      .out_valid(asked),
      .out_ready(mem_rsp_valid && mem_rsp_ready),
      .out_data(asker),
      .level(unused_level)
  );

  // There is room for a request that is held: only this port fills the queue.
  assign mem_req_valid = req_valid[choice] && has_room;
  assign mem_req_addr  = req_addr[64*choice+:64];
  assign mem_req_write = req_write[choice];
  assign mem_req_data  = req_data[512*choice+:512];
  assign mem_rsp_ready = asked && rsp_ready[asker];
  assign rsp_data = mem_rsp_data;
  generate
    for (genvar client = 0; client < 3; client++) begin : g_client
      assign req_ready[client] = mem_req_ready && has_room && choice == client;
      assign rsp_valid[client] = mem_rsp_valid && asked && asker == client;
    end
  endgenerate

  always_ff @(posedge clk) begin
    if (rst) begin
      held   <= 1'b0;
      served <= 2'd2;
    end else if (mem_req_valid) begin
      held   <= !mem_req_ready;
      served <= choice;
    end
  end
endmodule
