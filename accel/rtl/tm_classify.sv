// Tells which frames are GETs that the accelerator may answer, while they are written into the main
// buffer. It makes the checks of the packet program's twin, and those of both checksums. Any doubt
// is a frame for the CPU.
//
//  offset  field                      check
//       0  destination                host_mac
//       6  source                     not a group
//      12  type                       IPv4
//      14  version, header length     4, 5
//      16  total length               as long as the frame
//      20  flags, fragment's offset   no fragment
//      23  protocol                   UDP
//      24  checksum                   right
//      26  source                     in source_net, one host
//      30  destination                host_ip
//      34  source port                not zero
//      36  destination port           host_port
//      38  length                     that of the packet less 20
//      40  checksum                   right, or zero: the sender has made none
//      42  request ID
//      44  sequence, datagrams        0, 1
//      50  magic, opcode              0x80; GET, GETQ, GETK or GETKQ
//      52  key length                 1 to KEY_MAX, up to the frame's end
//      54  extras, type, vbucket      0
//      58  body length                the key's
//      62  opaque
//      66  CAS                        0
//      74  key
module tm_classify #(
    parameter int W = 1,
    parameter int KEY_MAX = 250
) (
    input  logic           clk,
    input  logic           rst,
    input  logic [   47:0] host_mac,
    input  logic [   31:0] host_ip,
    input  logic [   15:0] host_port,
    input  logic [   31:0] source_net,
    input  logic [   31:0] source_mask,
    // A beat is being accepted.
    input  logic           beat,
    input  logic [8*W-1:0] data,
    input  logic [  W-1:0] keep,
    input  logic           last,
    // In the cycle after the last beat: the frame's length, and the answers.
    input  logic           done,
    input  logic [   15:0] bytes,
    output logic           is_get,
    output logic [   47:0] req_mac,
    output logic [   31:0] req_ip,
    output logic [   15:0] req_port,
    output logic [   15:0] req_id,
    output logic [    7:0] req_opcode,
    output logic [   31:0] req_opaque,
    output logic [    7:0] req_key_len,
    // What may be the key, in whole beats. The last one may come together with `done`.
    output logic           key_we,
    output logic [8*W-1:0] key_data
);
  localparam int KEY_AT = 74;
  localparam int KEY_BEAT = KEY_AT / W;
  localparam int KEY_END = (KEY_AT + 256) / W;
  localparam int SHIFT = KEY_AT % W;
  localparam int LANES = (W == 1) ? 0 : $clog2(W);

  logic [10:0] at;  // the number of the beat; it stays at its highest value
  logic ok;
  logic [15:0] total;
  logic has_sum;
  logic [19:0] ip_sum, udp_sum;

  wire  [15:0] udp_len = total - 16'd20;
  wire  [15:0] key_len = total - 16'd60;

  // Whether a byte of the header is as it has to be.
  function automatic logic rule(input logic [13:0] offset, input logic [7:0] b);
    case (offset)
      14'd0: rule = b == host_mac[47:40];
      14'd1: rule = b == host_mac[39:32];
      14'd2: rule = b == host_mac[31:24];
      14'd3: rule = b == host_mac[23:16];
      14'd4: rule = b == host_mac[15:8];
      14'd5: rule = b == host_mac[7:0];
`ifdef BUG_TM_GROUP
      14'd6: rule = 1'b1;
`else
      14'd6: rule = !b[0];
`endif
      14'd12: rule = b == 8'h08;
      14'd13: rule = b == 8'h00;
      14'd14: rule = b == 8'h45;
      14'd20: rule = b[5:0] == 6'd0;
      14'd21: rule = b == 8'h00;
      14'd23: rule = b == 8'd17;
      14'd26: rule = ((b ^ source_net[31:24]) & source_mask[31:24]) == 8'd0 && b[7:4] != 4'd14;
      14'd27: rule = ((b ^ source_net[23:16]) & source_mask[23:16]) == 8'd0;
      14'd28: rule = ((b ^ source_net[15:8]) & source_mask[15:8]) == 8'd0;
      14'd29: rule = ((b ^ source_net[7:0]) & source_mask[7:0]) == 8'd0;
      14'd30: rule = b == host_ip[31:24];
      14'd31: rule = b == host_ip[23:16];
      14'd32: rule = b == host_ip[15:8];
      14'd33: rule = b == host_ip[7:0];
      14'd36: rule = b == host_port[15:8];
      14'd37: rule = b == host_port[7:0];
      14'd38: rule = b == udp_len[15:8];
      14'd39: rule = b == udp_len[7:0];
      14'd44, 14'd45, 14'd46: rule = b == 8'd0;
      14'd47: rule = b == 8'd1;
      14'd50: rule = b == 8'h80;
      14'd51: rule = b == 8'h00 || b == 8'h09 || b == 8'h0c || b == 8'h0d;
      14'd52: rule = b == 8'd0;
`ifdef BUG_TM_KEY_LENGTH
      14'd53: rule = 1'b1;
`else
      14'd53: rule = b == key_len[7:0];
`endif
      14'd54, 14'd55, 14'd56, 14'd57, 14'd58, 14'd59, 14'd60: rule = b == 8'd0;
      14'd61: rule = b == key_len[7:0];
      14'd66, 14'd67, 14'd68, 14'd69, 14'd70, 14'd71, 14'd72, 14'd73: rule = b == 8'd0;
      default: rule = 1'b1;
    endcase
  endfunction

  // Adds the carries back, and says whether the sum is the one of a valid packet.
  function automatic logic is_whole(input logic [20:0] sum);
    logic [16:0] once;
    logic [15:0] twice;
    once = {1'b0, sum[15:0]} + {12'd0, sum[20:16]};
    twice = once[15:0] + {15'd0, once[16]};
    is_whole = twice == 16'hFFFF;
  endfunction

  // The offsets of the lanes' bytes. Their low bits are constants in a wide datapath.
  function automatic logic [13:0] offset_of(input logic [10:0] number, input int lane);
    offset_of = 14'((32'(number) << LANES) | lane);
  endfunction

  logic ok_next;
  logic [19:0] ip_next, udp_next;
  always_comb begin
    ok_next  = at == 0 || ok;
    ip_next  = at == 0 ? 20'd0 : {4'd0, ip_sum[15:0]} + {16'd0, ip_sum[19:16]};
    udp_next = at == 0 ? 20'd0 : {4'd0, udp_sum[15:0]} + {16'd0, udp_sum[19:16]};
    for (int lane = 0; lane < W; lane++) begin
      logic [13:0] offset;
      logic [7:0] here;
      logic [15:0] term;
      offset = offset_of(at, lane);
      here   = keep[lane] ? data[8*lane+:8] : 8'd0;
      term   = offset[0] ? {8'd0, here} : {here, 8'd0};
      if (keep[lane] && !rule(offset, here)) ok_next = 1'b0;
      if (offset >= 14'd14 && offset < 14'd34) ip_next = ip_next + {4'd0, term};
      // The addresses of the pseudo-header, and the datagram.
      if (offset >= 14'd26) udp_next = udp_next + {4'd0, term};
    end
  end

  always_ff @(posedge clk) begin
    if (rst) at <= '0;
    else if (beat) at <= last ? '0 : (&at ? at : at + 1'b1);
    if (beat) begin
      ok <= ok_next;
      ip_sum <= ip_next;
      udp_sum <= udp_next;
      for (int lane = 0; lane < W; lane++) begin
        case (offset_of(at, lane))
          14'd6: req_mac[47:40] <= data[8*lane+:8];
          14'd7: req_mac[39:32] <= data[8*lane+:8];
          14'd8: req_mac[31:24] <= data[8*lane+:8];
          14'd9: req_mac[23:16] <= data[8*lane+:8];
          14'd10: req_mac[15:8] <= data[8*lane+:8];
          14'd11: req_mac[7:0] <= data[8*lane+:8];
          14'd16: total[15:8] <= data[8*lane+:8];
          14'd17: total[7:0] <= data[8*lane+:8];
          14'd26: req_ip[31:24] <= data[8*lane+:8];
          14'd27: req_ip[23:16] <= data[8*lane+:8];
          14'd28: req_ip[15:8] <= data[8*lane+:8];
          14'd29: req_ip[7:0] <= data[8*lane+:8];
          14'd34: req_port[15:8] <= data[8*lane+:8];
          14'd35: req_port[7:0] <= data[8*lane+:8];
          14'd40: has_sum <= data[8*lane+:8] != 8'd0;
          14'd41: if (data[8*lane+:8] != 8'd0) has_sum <= 1'b1;
          14'd42: req_id[15:8] <= data[8*lane+:8];
          14'd43: req_id[7:0] <= data[8*lane+:8];
          14'd51: req_opcode <= data[8*lane+:8];
          14'd62: req_opaque[31:24] <= data[8*lane+:8];
          14'd63: req_opaque[23:16] <= data[8*lane+:8];
          14'd64: req_opaque[15:8] <= data[8*lane+:8];
          14'd65: req_opaque[7:0] <= data[8*lane+:8];
          default: ;
        endcase
      end
    end
  end

  wire ip_whole = is_whole({1'b0, ip_sum});
  // The pseudo-header's protocol and length come last.
`ifdef BUG_TM_UDP_SUM
  wire udp_whole = 1'b1;
`else
  wire udp_whole = !has_sum || is_whole({1'b0, udp_sum} + {5'd0, udp_len} + 21'd17);
`endif
  wire is_host = req_ip != 32'd0 && req_ip != 32'hFFFF_FFFF && req_port != 16'd0;
`ifdef BUG_TM_FRAME_LENGTH
  wire fits = total >= 16'd61;
`else
  wire fits = total >= 16'd61 && bytes == total + 16'd14;
`endif
  assign req_key_len = key_len[7:0];
  assign is_get = done && ok && fits && key_len <= 16'(KEY_MAX) && is_host && ip_whole && udp_whole;

  generate
    if (SHIFT == 0) begin : g_whole
      assign key_we   = beat && at >= 11'(KEY_BEAT) && at < 11'(KEY_END);
      assign key_data = data;
    end else begin : g_shifted
      // The key begins inside a beat: its own beats are made of two.
      logic [8*(W-SHIFT)-1:0] held;
      logic tail;
      always_ff @(posedge clk) begin
        if (rst) tail <= 1'b0;
        else tail <= beat && last && at >= 11'(KEY_BEAT) && at < 11'(KEY_END) && keep[SHIFT];
        if (beat && at >= 11'(KEY_BEAT)) held <= data[8*W-1:8*SHIFT];
      end
      assign key_we   = tail || (beat && at > 11'(KEY_BEAT) && at < 11'(KEY_END));
      assign key_data = {data[8*SHIFT-1:0], held};
    end
  endgenerate
endmodule
