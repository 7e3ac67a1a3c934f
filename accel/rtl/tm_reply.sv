// Sends a reply: headers with their checksums, and the body, which lies in a memory as it will lie
// in the frame.
module tm_reply #(
    parameter int W = 1,
    parameter int A = 12  // bits of an address in the memory
) (
    input  logic           clk,
    input  logic           rst,
    input  logic [   47:0] host_mac,
    input  logic [   31:0] host_ip,
    input  logic [   15:0] host_port,
    // A reply whose body is complete: to whom, of what, and the length and the sum of its body.
    input  logic           reply_valid,
    output logic           reply_pop,
    input  logic [   47:0] reply_mac,
    input  logic [   31:0] reply_ip,
    input  logic [   15:0] reply_port,
    input  logic [   15:0] reply_id,
    input  logic [    7:0] reply_opcode,
    input  logic [   31:0] reply_opaque,
    input  logic [    7:0] reply_key_bytes,
    input  logic [   31:0] reply_flags,
    input  logic [   63:0] reply_cas,
    input  logic [   15:0] reply_body_bytes,
    input  logic [   15:0] reply_body_sum,
    // The memory: `body_data` is the word that was at `read_next` in the last cycle. Words before
    // `read_at` are free.
    output logic [  A-1:0] read_at,
    output logic [  A-1:0] read_next,
    input  logic [8*W-1:0] body_data,
    // Frames.
    output logic           out_valid,
    input  logic           out_ready,
    output logic [8*W-1:0] out_data,
    output logic [  W-1:0] out_keep,
    output logic           out_last
);
  localparam int HEAD = 78;
  localparam int HEAD_BEATS = HEAD / W;
  localparam int LANES = (W == 1) ? 0 : $clog2(W);

  // Adds the carries of a sum of 16-bit words back.
  function automatic logic [15:0] fold(input logic [20:0] sum);
    logic [16:0] once;
    once = {1'b0, sum[15:0]} + {12'd0, sum[20:16]};
    fold = once[15:0] + {15'd0, once[16]};
  endfunction

  logic sending;
  logic [12:0] at;
  logic [47:0] mac;
  logic [31:0] ip, opaque, flags;
  logic [15:0] port, id, body_bytes, body_sum;
  logic [7:0] opcode, key_bytes;
  logic [63:0] cas;

  // The checksums are ready before the header needs them: the beat with that of IPv4 is the fourth
  // one at the earliest.
  logic [19:0] sum_addresses, sum_udp, sum_request, sum_cas, sum_rest;
  logic [20:0] sum_ip_all, sum_udp_all;
  logic [15:0] ip_checksum, udp_checksum;
  wire  [15:0] udp_bytes = body_bytes + 16'd44;
  wire  [15:0] ip_bytes = body_bytes + 16'd64;
  wire  [15:0] extra_bytes = body_bytes + 16'd4;
  wire  [15:0] udp_folded = ~fold(sum_udp_all);
  always_ff @(posedge clk) begin
    sum_addresses <= 20'(host_ip[31:16]) + 20'(host_ip[15:0]) + 20'(ip[31:16]) + 20'(ip[15:0]);
    // Twice the length: in the pseudo-header, and in the header.
    sum_udp <= 20'd17 + {3'd0, udp_bytes, 1'b0} + 20'(host_port) + 20'(port) + 20'(id);
    // Memcached's frame counts one datagram; magic, opcode and length of the extras.
    sum_request <= 20'h08501 + 20'(opcode) + 20'(key_bytes) + 20'(extra_bytes) +
        20'(opaque[31:16]) + 20'(opaque[15:0]);
    sum_cas <= 20'(cas[63:48]) + 20'(cas[47:32]) + 20'(cas[31:16]) + 20'(cas[15:0]);
    sum_rest <= 20'(flags[31:16]) + 20'(flags[15:0]) + 20'(body_sum);
    sum_ip_all <= 21'h0C511 + 21'(ip_bytes) + 21'(sum_addresses);
    sum_udp_all <= 21'(sum_addresses) + 21'(sum_udp) + 21'(sum_request) + 21'(sum_cas) +
        21'(sum_rest);
    ip_checksum <= ~fold(sum_ip_all);
`ifdef BUG_TM_ZERO_SUM
    udp_checksum <= udp_folded;
`else
    // Zero would say that there is no checksum.
    udp_checksum <= udp_folded == 16'd0 ? 16'hFFFF : udp_folded;
`endif
  end

  function automatic logic [7:0] header(input logic [15:0] offset);
    case (offset)
      16'd0: header = mac[47:40];
      16'd1: header = mac[39:32];
      16'd2: header = mac[31:24];
      16'd3: header = mac[23:16];
      16'd4: header = mac[15:8];
      16'd5: header = mac[7:0];
      16'd6: header = host_mac[47:40];
      16'd7: header = host_mac[39:32];
      16'd8: header = host_mac[31:24];
      16'd9: header = host_mac[23:16];
      16'd10: header = host_mac[15:8];
      16'd11: header = host_mac[7:0];
      16'd12: header = 8'h08;
      16'd14: header = 8'h45;
      16'd16: header = ip_bytes[15:8];
      16'd17: header = ip_bytes[7:0];
      16'd20: header = 8'h40;  // may not be fragmented
      16'd22: header = 8'd64;  // hops
      16'd23: header = 8'd17;
      16'd24: header = ip_checksum[15:8];
      16'd25: header = ip_checksum[7:0];
      16'd26: header = host_ip[31:24];
      16'd27: header = host_ip[23:16];
      16'd28: header = host_ip[15:8];
      16'd29: header = host_ip[7:0];
      16'd30: header = ip[31:24];
      16'd31: header = ip[23:16];
      16'd32: header = ip[15:8];
      16'd33: header = ip[7:0];
      16'd34: header = host_port[15:8];
      16'd35: header = host_port[7:0];
      16'd36: header = port[15:8];
      16'd37: header = port[7:0];
      16'd38: header = udp_bytes[15:8];
      16'd39: header = udp_bytes[7:0];
      16'd40: header = udp_checksum[15:8];
      16'd41: header = udp_checksum[7:0];
      16'd42: header = id[15:8];
      16'd43: header = id[7:0];
      16'd47: header = 8'd1;
      16'd50: header = 8'h81;
      16'd51: header = opcode;
      16'd53: header = key_bytes;
      16'd54: header = 8'd4;
      16'd60: header = extra_bytes[15:8];
      16'd61: header = extra_bytes[7:0];
      16'd62: header = opaque[31:24];
      16'd63: header = opaque[23:16];
      16'd64: header = opaque[15:8];
      16'd65: header = opaque[7:0];
      16'd66: header = cas[63:56];
      16'd67: header = cas[55:48];
      16'd68: header = cas[47:40];
      16'd69: header = cas[39:32];
      16'd70: header = cas[31:24];
      16'd71: header = cas[23:16];
      16'd72: header = cas[15:8];
      16'd73: header = cas[7:0];
      16'd74: header = flags[31:24];
      16'd75: header = flags[23:16];
      16'd76: header = flags[15:8];
      16'd77: header = flags[7:0];
      default: header = 8'd0;
    endcase
  endfunction

  wire takes = sending && (!out_valid || out_ready);
  wire in_body = at >= 13'(HEAD_BEATS);
  wire [15:0] frame_bytes = body_bytes + 16'(HEAD);
  wire [12:0] last_at = 13'((32'(frame_bytes) - 1) / W);
  assign reply_pop = reply_valid && !sending;
  assign read_next = takes && in_body ? read_at + 1'b1 : read_at;

  always_ff @(posedge clk) begin
    if (rst) begin
      sending <= 1'b0;
      out_valid <= 1'b0;
      read_at <= '0;
    end else begin
      read_at <= read_next;
      if (reply_pop) sending <= 1'b1;
      else if (takes && at == last_at) sending <= 1'b0;
      if (!out_valid || out_ready) out_valid <= sending;
    end
    if (reply_pop) begin
      mac <= reply_mac;
      ip <= reply_ip;
      port <= reply_port;
      id <= reply_id;
      opcode <= reply_opcode;
      opaque <= reply_opaque;
      key_bytes <= reply_key_bytes;
      flags <= reply_flags;
      cas <= reply_cas;
      body_bytes <= reply_body_bytes;
      body_sum <= reply_body_sum;
      at <= '0;
    end else if (takes) at <= at + 13'd1;
    if (takes) begin
      out_last <= at == last_at;
      for (int lane = 0; lane < W; lane++) begin
        if ((32'(at) << LANES) + lane < HEAD)
          out_data[8*lane+:8] <= header(16'((32'(at) << LANES) + lane));
        else out_data[8*lane+:8] <= body_data[8*lane+:8];
        out_keep[lane] <= (32'(at) << LANES) + lane < 32'(frame_bytes);
      end
    end
  end
endmodule
