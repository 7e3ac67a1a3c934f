// What the circuit's modules share: sizes, the operations of the command port, and their answers.
//
// Yosys takes no `import`, so modules write kv_pkg::NAME. This file is read first.
package kv_pkg;
  // A key has 1 to 255 bytes. Each slot has room for 256.
  parameter int unsigned KEY_SPACE = 256;
  parameter int unsigned KEY_LEN_W = 8;

  // A value has 1 to 65,535 bytes on the reply port. A reply of length 0 is a miss.
  parameter int unsigned VAL_LEN_W = 16;

  // Tags travel with a request and come back with its reply.
  parameter int unsigned TAG_W = 8;

  // Counts of hits saturate at 63.
  parameter int unsigned COUNT_W = 6;
  parameter logic [COUNT_W-1:0] COUNT_MAX = 6'd63;

  // The memory port moves whole lines.
  parameter int unsigned LINE_BYTES = 64;
  parameter int unsigned LINE_BITS = 512;

  parameter int unsigned FLAGS_W = 32;
  parameter int unsigned CAS_W = 64;

  // The paper's seven operations (cmd_funct7).
  parameter logic [6:0] OP_SWITCH_MODE = 7'd0;  // rs1[0]: 1 write, 0 read
  parameter logic [6:0] OP_DELETE = 7'd1;  // rs1: address of the key, rs2[7:0]: its length
  parameter logic [6:0] OP_RESERVE = 7'd2;  // as delete, and rs2[13:8]: the weight
  parameter logic [6:0] OP_ADDRESS = 7'd3;  // rs1: slot, rs2: address in the value memory
  parameter logic [6:0] OP_LENGTH = 7'd4;  // rs1: slot, rs2[31:0]: length, rs2[63:32]: flags
  parameter logic [6:0] OP_WRITE_VALUE = 7'd5;  // rs1: slot, rs2: address in the CPU's memory
  parameter logic [6:0] OP_RESET_COUNTS = 7'd6;
  // Ours: the item's CAS, which the paper leaves zero. It is zero until this operation.
  parameter logic [6:0] OP_CAS = 7'd7;  // rs1: slot, rs2: CAS

  // rsp_rd of every operation. Delete and reserve return the slot or NO_SLOT; the others OK.
  parameter logic [63:0] RD_OK = 64'd0;
  parameter logic [63:0] RD_NO_SLOT = 64'h0000_0000_ffff_ffff;
  // The operation was refused and nothing has changed.
  parameter logic [63:0] RD_READ_MODE = 64'h0000_0000_ffff_fffe;
  parameter logic [63:0] RD_BAD_KEY = 64'h0000_0000_ffff_fffd;  // of length 0
  parameter logic [63:0] RD_BAD_SLOT = 64'h0000_0000_ffff_fffc;  // beyond the last, or empty
  parameter logic [63:0] RD_BAD_VALUE = 64'h0000_0000_ffff_fffb;  // not within the value memory
  parameter logic [63:0] RD_BAD_OP = 64'h0000_0000_ffff_fffa;  // no such operation

endpackage
