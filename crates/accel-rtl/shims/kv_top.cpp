// The ports of kv_top.sv. The structs are those of src/top/ports.rs.
#include "shim.h"

struct In {
    uint64_t rst;
    uint64_t host_mac, host_ip, host_port, source_net, source_mask, reply_bytes_max, patience;
    uint64_t rx_valid, rx_data, rx_keep, rx_last, tx_ready;
    uint64_t cmd_valid, cmd_funct7, cmd_rs1, cmd_rs2, rsp_ready;
    uint64_t rx_post_valid, rx_post_line, rx_count_ready, rx_irq_clear;
    uint64_t tx_post_valid, tx_post_addr, tx_post_count, tx_irq_clear;
    uint64_t mem_req_ready, mem_rsp_valid, mem_rsp_data[8];
};

struct Out {
    uint64_t rx_ready, tx_valid, tx_data, tx_keep, tx_last;
    uint64_t cmd_ready, rsp_valid, rsp_rd, write_mode, lookup_idle;
    uint64_t rx_post_ready, rx_count_valid, rx_count_data, rx_read_pointer, rx_current_pointer, rx_write_pointer, rx_irq;
    uint64_t tx_post_ready, tx_read_pointer, tx_current_pointer, tx_write_pointer, tx_irq;
    uint64_t mem_req_valid, mem_req_addr, mem_req_write, mem_req_data[8], mem_rsp_ready;
    uint64_t hits, misses, bypassed, too_long, dropped_main, dropped_defer, jumbos, runts, defer_high_water, has_wrong_tag;
};

static void drive(Vtop *top, const In *in) {
#define SET(port) top->port = in->port
    SET(rst);
    SET(host_mac);
    SET(host_ip);
    SET(host_port);
    SET(source_net);
    SET(source_mask);
    SET(reply_bytes_max);
    SET(patience);
    SET(rx_valid);
    SET(rx_data);
    SET(rx_keep);
    SET(rx_last);
    SET(tx_ready);
    SET(cmd_valid);
    SET(cmd_funct7);
    SET(cmd_rs1);
    SET(cmd_rs2);
    SET(rsp_ready);
    SET(rx_post_valid);
    SET(rx_post_line);
    SET(rx_count_ready);
    SET(rx_irq_clear);
    SET(tx_post_valid);
    SET(tx_post_addr);
    SET(tx_post_count);
    SET(tx_irq_clear);
    SET(mem_req_ready);
    SET(mem_rsp_valid);
    widen(top->mem_rsp_data, in->mem_rsp_data, 8);
#undef SET
}

static void sample(Vtop *top, Out *out) {
#define GET(port) out->port = top->port
    GET(rx_ready);
    GET(tx_valid);
    GET(tx_data);
    GET(tx_keep);
    GET(tx_last);
    GET(cmd_ready);
    GET(rsp_valid);
    GET(rsp_rd);
    GET(write_mode);
    GET(lookup_idle);
    GET(rx_post_ready);
    GET(rx_count_valid);
    GET(rx_count_data);
    GET(rx_read_pointer);
    GET(rx_current_pointer);
    GET(rx_write_pointer);
    GET(rx_irq);
    GET(tx_post_ready);
    GET(tx_read_pointer);
    GET(tx_current_pointer);
    GET(tx_write_pointer);
    GET(tx_irq);
    GET(mem_req_valid);
    GET(mem_req_addr);
    GET(mem_req_write);
    narrow(out->mem_req_data, top->mem_req_data, 8);
    GET(mem_rsp_ready);
    GET(hits);
    GET(misses);
    GET(bypassed);
    GET(too_long);
    GET(dropped_main);
    GET(dropped_defer);
    GET(jumbos);
    GET(runts);
    GET(defer_high_water);
    GET(has_wrong_tag);
#undef GET
}

// 0: whether the traffic manager offers the CPU the last beat of a frame.
static uint64_t peek(Vtop *top, uint64_t, uint64_t) {
    return top->rootp->kv_top__DOT__cpu_rx_valid && top->rootp->kv_top__DOT__cpu_rx_last;
}

SHIM(In, Out)
