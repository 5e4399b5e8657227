// How a compiled kernel is called: what the emulation (execution.cpp) and compiled kernels (words.h) agree on.
#pragma once

namespace emulation {

struct Argument {
    unsigned long size;
    bool is_address;   // begins with an address of memory: a pointer, or one of cupy's arrays
};

struct Kernel {
    void (*call)(void **arguments);   // one thread
    const Argument *arguments;
    int count;
};

struct Index {
    unsigned x, y, z;
};

// Where the running thread is, and how it meets the others of its block. Only one kernel runs at a time.
extern "C" {
extern Index emulation_thread, emulation_block, emulation_block_size, emulation_grid_size;
extern char emulation_dynamic_shared_memory[];
void emulation_sync_block();
void emulation_sync_warp(unsigned mask);
// Hands over a value of at most 8 bytes, and returns where those of all 32 threads of the warp are, by lane. They
// stay there until the warp's next exchange but one.
const unsigned long long *emulation_exchange(unsigned mask, unsigned long long value);
int emulation_lane();
[[noreturn]] void emulation_trap(const char *what);
}

}   // namespace emulation
