// The ports of lookup.sv. The structs are those of src/lookup/ports.rs.
#include "shim.h"

struct In {
    uint64_t rst;
    uint64_t key_len_valid, key_len, key_tag;
    uint64_t key_valid, key_data, key_keep, key_last;
    uint64_t val_len_ready, val_ready;
    uint64_t cmd_valid, cmd_funct7, cmd_rs1, cmd_rs2;
    uint64_t rsp_ready;
    uint64_t mem_req_ready, mem_rsp_valid, mem_rsp_data[8];
};

struct Out {
    uint64_t key_len_ready, key_ready;
    uint64_t val_len_valid, val_len, val_tag, val_flags, val_cas;
    uint64_t val_valid, val_data, val_keep, val_last;
    uint64_t cmd_ready, rsp_valid, rsp_rd;
    uint64_t write_mode, lookup_idle;
    uint64_t mem_req_valid, mem_req_addr, mem_req_write, mem_req_data[8];
    uint64_t mem_rsp_ready;
};

static void drive(Vtop *top, const In *in) {
    top->rst = in->rst;
    top->key_len_valid = in->key_len_valid;
    top->key_len = in->key_len;
    top->key_tag = in->key_tag;
    top->key_valid = in->key_valid;
    top->key_data = in->key_data;
    top->key_keep = in->key_keep;
    top->key_last = in->key_last;
    top->val_len_ready = in->val_len_ready;
    top->val_ready = in->val_ready;
    top->cmd_valid = in->cmd_valid;
    top->cmd_funct7 = in->cmd_funct7;
    top->cmd_rs1 = in->cmd_rs1;
    top->cmd_rs2 = in->cmd_rs2;
    top->rsp_ready = in->rsp_ready;
    top->mem_req_ready = in->mem_req_ready;
    top->mem_rsp_valid = in->mem_rsp_valid;
    widen(top->mem_rsp_data, in->mem_rsp_data, 8);
}

static void sample(Vtop *top, Out *out) {
    out->key_len_ready = top->key_len_ready;
    out->key_ready = top->key_ready;
    out->val_len_valid = top->val_len_valid;
    out->val_len = top->val_len;
    out->val_tag = top->val_tag;
    out->val_flags = top->val_flags;
    out->val_cas = top->val_cas;
    out->val_valid = top->val_valid;
    out->val_data = top->val_data;
    out->val_keep = top->val_keep;
    out->val_last = top->val_last;
    out->cmd_ready = top->cmd_ready;
    out->rsp_valid = top->rsp_valid;
    out->rsp_rd = top->rsp_rd;
    out->write_mode = top->write_mode;
    out->lookup_idle = top->lookup_idle;
    out->mem_req_valid = top->mem_req_valid;
    out->mem_req_addr = top->mem_req_addr;
    out->mem_req_write = top->mem_req_write;
    narrow(out->mem_req_data, top->mem_req_data, 8);
    out->mem_rsp_ready = top->mem_rsp_ready;
}

// 0: the count of a slot.
static uint64_t peek(Vtop *top, uint64_t what, uint64_t slot) {
    if (what != 0) return UINT64_MAX;
    const auto *root = top->rootp;
    const unsigned stored = root->lookup__DOT__weights_i__DOT__counts__DOT__mem[slot];
    const unsigned count = stored & 63, epoch = stored >> 6;
    return epoch == root->lookup__DOT__weights_i__DOT__epoch ? count : 0;
}

SHIM(In, Out)
