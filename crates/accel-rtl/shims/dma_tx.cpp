// The ports of dma_tx.sv. The structs are those of src/dma/transmit.rs.
#include "shim.h"

struct In {
    uint64_t rst;
    uint64_t post_valid, post_addr, post_count, irq_clear;
    uint64_t mem_req_ready, mem_rsp_valid, mem_rsp_data[8];
    uint64_t out_ready;
};

struct Out {
    uint64_t post_ready, read_pointer, current_pointer, write_pointer, irq;
    uint64_t mem_req_valid, mem_req_addr, mem_rsp_ready;
    uint64_t out_valid, out_data, out_keep, out_last;
};

static void drive(Vtop *top, const In *in) {
#define SET(port) top->port = in->port
    SET(rst);
    SET(post_valid);
    SET(post_addr);
    SET(post_count);
    SET(irq_clear);
    SET(mem_req_ready);
    SET(mem_rsp_valid);
    widen(top->mem_rsp_data, in->mem_rsp_data, 8);
    SET(out_ready);
#undef SET
}

static void sample(Vtop *top, Out *out) {
#define GET(port) out->port = top->port
    GET(post_ready);
    GET(read_pointer);
    GET(current_pointer);
    GET(write_pointer);
    GET(irq);
    GET(mem_req_valid);
    GET(mem_req_addr);
    GET(mem_rsp_ready);
    GET(out_valid);
    GET(out_data);
    GET(out_keep);
    GET(out_last);
#undef GET
}

static uint64_t peek(Vtop *, uint64_t, uint64_t) { return 0; }

SHIM(In, Out)
