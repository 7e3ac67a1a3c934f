// The flat C interface of a top: SHIM(In, Out) defines it, given the functions
//   void drive(Vtop *, const In *)   sets the input ports
//   void sample(Vtop *, Out *)       reads the output ports
//   uint64_t peek(Vtop *, uint64_t what, uint64_t index)   reads what no port shows
// In and Out consist of uint64_t alone, as their twins in Rust do.
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "Vtop.h"
#include "Vtop___024root.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

struct Shim {
    VerilatedContext context;
    Vtop top;
    explicit Shim(int seed) : context{}, top{(context.randReset(2), context.randSeed(seed), &context)} {
#if VM_TRACE
        context.traceEverOn(true);
        top.trace(&vcd, 99);
#endif
    }

#if VM_TRACE
    VerilatedVcdC vcd;
    uint64_t ps = 0;
    // Half a cycle of 125 MHz passes.
    void dump() {
        if (vcd.isOpen()) vcd.dump(ps);
        ps += 4000;
    }
    void begin(const char *file) { vcd.open(file); }
    void end() { vcd.close(); }
#else
    void dump() {}
    void begin(const char *) {}
    void end() {}
#endif
};

// A value of more than 64 bits, as Verilator keeps it.
template <typename Wide>
static void widen(Wide &wide, const uint64_t *words, int count) {
    for (int i = 0; i < count; i++) {
        wide[2 * i] = static_cast<uint32_t>(words[i]);
        wide[2 * i + 1] = static_cast<uint32_t>(words[i] >> 32);
    }
}

template <typename Wide>
static void narrow(uint64_t *words, const Wide &wide, int count) {
    for (int i = 0; i < count; i++)
        words[i] = wide[2 * i] | static_cast<uint64_t>(wide[2 * i + 1]) << 32;
}

// What the circuit has reached goes into a file of its own in the folder that
// GLIMMER_RTL_COVERAGE names.
static void write_coverage(Shim *shim) {
#if VM_COVERAGE
    const char *folder = std::getenv("GLIMMER_RTL_COVERAGE");
    if (!folder) return;
    // A library's addresses come again when it is closed, so the time is in the name.
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const auto place = reinterpret_cast<uintptr_t>(shim);
    const auto file = std::string(folder) + "/" + std::to_string(getpid()) + "-"
                      + std::to_string(now) + "-" + std::to_string(place) + ".dat";
    shim->context.coveragep()->write(file.c_str());
#else
    (void)shim;
#endif
}

#define SHIM(In, Out)                                                                        \
    extern "C" {                                                                             \
    Shim *top_new(uint64_t seed) { return new Shim(static_cast<int>(seed & 0x7fffffff) | 1); } \
    void top_free(Shim *shim) {                                                              \
        /* The last context that was made on this thread may be another circuit's, freed. */ \
        Verilated::threadContextp(&shim->context);                                           \
        shim->top.final();                                                                   \
        write_coverage(shim);                                                                \
        delete shim;                                                                         \
    }                                                                                        \
    uint64_t top_inputs() { return sizeof(In) / sizeof(uint64_t); }                          \
    uint64_t top_outputs() { return sizeof(Out) / sizeof(uint64_t); }                        \
    /* The clock is low: outputs follow inputs. */                                           \
    void top_settle(Shim *shim, const In *in, Out *out) {                                    \
        shim->top.clk = 0;                                                                   \
        drive(&shim->top, in);                                                               \
        shim->top.eval();                                                                    \
        shim->dump();                                                                        \
        sample(&shim->top, out);                                                             \
    }                                                                                        \
    /* The clock rises. */                                                                   \
    void top_rise(Shim *shim) {                                                              \
        shim->top.clk = 1;                                                                   \
        shim->top.eval();                                                                    \
        shim->dump();                                                                        \
    }                                                                                        \
    void top_trace(Shim *shim, const char *file) { shim->begin(file); }                      \
    void top_stop_trace(Shim *shim) { shim->end(); }                                         \
    uint64_t top_peek(Shim *shim, uint64_t what, uint64_t index) {                           \
        return peek(&shim->top, what, index);                                                \
    }                                                                                        \
    }
