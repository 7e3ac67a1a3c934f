// The ports of traffic.sv. The structs are those of src/traffic/ports.rs.
#include "shim.h"

struct In {
    uint64_t rst;
    uint64_t host_mac, host_ip, host_port, source_net, source_mask, reply_bytes_max, patience;
    uint64_t rx_valid, rx_data, rx_keep, rx_last, tx_ready;
    uint64_t cpu_rx_ready, cpu_tx_valid, cpu_tx_data, cpu_tx_keep, cpu_tx_last;
    uint64_t write_mode;
    uint64_t key_len_ready, key_ready;
    uint64_t val_len_valid, val_len, val_tag, val_flags, val_cas;
    uint64_t val_valid, val_data, val_keep, val_last;
};

struct Out {
    uint64_t rx_ready, tx_valid, tx_data, tx_keep, tx_last;
    uint64_t cpu_rx_valid, cpu_rx_data, cpu_rx_keep, cpu_rx_last, cpu_tx_ready;
    uint64_t key_len_valid, key_len, key_tag, key_valid, key_data, key_keep, key_last;
    uint64_t val_len_ready, val_ready;
    uint64_t hits, misses, bypassed, too_long, dropped_main, dropped_defer, jumbos, runts;
    uint64_t defer_high_water, has_wrong_tag;
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
    SET(cpu_rx_ready);
    SET(cpu_tx_valid);
    SET(cpu_tx_data);
    SET(cpu_tx_keep);
    SET(cpu_tx_last);
    SET(write_mode);
    SET(key_len_ready);
    SET(key_ready);
    SET(val_len_valid);
    SET(val_len);
    SET(val_tag);
    SET(val_flags);
    SET(val_cas);
    SET(val_valid);
    SET(val_data);
    SET(val_keep);
    SET(val_last);
#undef SET
}

static void sample(Vtop *top, Out *out) {
#define GET(port) out->port = top->port
    GET(rx_ready);
    GET(tx_valid);
    GET(tx_data);
    GET(tx_keep);
    GET(tx_last);
    GET(cpu_rx_valid);
    GET(cpu_rx_data);
    GET(cpu_rx_keep);
    GET(cpu_rx_last);
    GET(cpu_tx_ready);
    GET(key_len_valid);
    GET(key_len);
    GET(key_tag);
    GET(key_valid);
    GET(key_data);
    GET(key_keep);
    GET(key_last);
    GET(val_len_ready);
    GET(val_ready);
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

static uint64_t peek(Vtop *, uint64_t, uint64_t) { return 0; }

SHIM(In, Out)
