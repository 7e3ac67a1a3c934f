// The ports of dma_rx.sv. The structs are those of src/dma/receive.rs.
#include "shim.h"

struct In {
    uint64_t rst;
    uint64_t in_valid, in_data, in_keep, in_last;
    uint64_t post_valid, post_line, count_ready, irq_clear;
    uint64_t mem_req_ready, mem_rsp_valid;
};

struct Out {
    uint64_t in_ready, post_ready, count_valid, count_data;
    uint64_t read_pointer, current_pointer, write_pointer, irq;
    uint64_t mem_req_valid, mem_req_addr, mem_req_data[8], mem_rsp_ready;
};

static void drive(Vtop *top, const In *in) {
#define SET(port) top->port = in->port
    SET(rst);
    SET(in_valid);
    SET(in_data);
    SET(in_keep);
    SET(in_last);
    SET(post_valid);
    SET(post_line);
    SET(count_ready);
    SET(irq_clear);
    SET(mem_req_ready);
    SET(mem_rsp_valid);
#undef SET
}

static void sample(Vtop *top, Out *out) {
#define GET(port) out->port = top->port
    GET(in_ready);
    GET(post_ready);
    GET(count_valid);
    GET(count_data);
    GET(read_pointer);
    GET(current_pointer);
    GET(write_pointer);
    GET(irq);
    GET(mem_req_valid);
    GET(mem_req_addr);
    narrow(out->mem_req_data, top->mem_req_data, 8);
    GET(mem_rsp_ready);
#undef GET
}

static uint64_t peek(Vtop *, uint64_t, uint64_t) { return 0; }

SHIM(In, Out)
