// Pearson's hash of a stream of bytes (section IV-A1): byte j of the hash begins with T[x[0] + j],
// and each further byte of the key is folded in by T[h ^ x[i]]. All bytes of the hash are computed
// side by side, one byte of the key each cycle.
//
// The paper does not print its tables. These are the permutations of crates/accel-device/src/pearson.rs.
module pearson #(
    parameter int unsigned HASH_BYTES = 2,
    parameter bit SECONDARY = 0  // which of the two tables
) (
    input  logic                    clk,
    input  logic                    first,  // data is the first byte of a key
    input  logic                    valid,
    input  logic [             7:0] data,
    output logic [8*HASH_BYTES-1:0] hash    // of the bytes so far
);

  // Entry 255 first.
  localparam logic [2047:0] PRIMARY_TABLE = {
      256'h281d4a14_303b0852_4513af37_5a80bde7_90bbb81a_07539d9f_0b7a21b0_86a702f5,
      256'h83d8996a_2348a8f3_367c5cdd_abae6475_eacff893_fbd36bc5_e9016d2f_0ded7df4,
      256'h5db55f43_1fd4b18d_5e0cc041_f7ca2c7f_e2bcc6b6_fe8b4691_9ee43119_03244260,
      256'h163d95a9_56782d3a_201cdfb2_06baf026_e55873f9_8c6972a4_2b9b7098_276f0e15,
      256'hc8fa5517_3c797e22_3e4dbf87_fc00e029_8fb4d2da_88a53267_9afdb305_6c4e89cd,
      256'h346e3ff6_2a04be11_09db61a3_b7d7c349_eb65c4d9_4fe10a39_92e840e3_a6d66268,
      256'h54f22571_ef5b3884_c29c7651_a14cb981_5950d0aa_8a85351b_ec122e97_9444f1ac,
      256'h82cb74ff_c9addedc_9657638e_18d5c7ce_770fccd1_4b1e10ee_e67b33c1_a047a266
  };
  localparam logic [2047:0] SECONDARY_TABLE = {
      256'hd11bc9d3_6c84f1bf_1017f366_e263568e_ff3d4035_a32633d2_4d281ab1_48e3422f,
      256'h95dbc5fc_e8ceb9e4_08d53849_745ecbf2_dc13939c_3a1837aa_d909ae81_0be55288,
      256'h5d4b2901_778f9d0e_a16d9144_581ec6fb_f959f44a_a9ed57be_2acf2c43_aceac7c4,
      256'h517c653b_eb7ebc27_89dad0f8_c1a2ec1d_4164709a_5bab391c_ba5afafe_6a75d74e,
      256'h12b47f79_c0729436_b89f46a6_903c4c24_dd208d34_049bf006_54adef07_dea730fd,
      256'hbd60c8d6_d4eeb682_3e6b0de6_83f58a15_871f145c_972b45a0_cd78227a_3f999268,
      256'h0fca85f7_55cc7dd8_6e259e71_23b53269_0ca50a02_6fa4df8c_80c25311_4fb7e962,
      256'he02d61af_67a82131_50197673_7be703e1_988b9686_f6b2b016_052eb35f_0047c3bb
  };
  localparam logic [2047:0] TABLE = SECONDARY ? SECONDARY_TABLE : PRIMARY_TABLE;

  generate
    for (genvar j = 0; j < HASH_BYTES; j++) begin : byte_of_hash
      logic [7:0] h;
      logic [7:0] index;
      assign index = first ? data + 8'(j) : h ^ data;
      always_ff @(posedge clk) if (valid) h <= TABLE[{index, 3'd0}+:8];
      assign hash[8*j+:8] = h;
    end
  endgenerate

endmodule
