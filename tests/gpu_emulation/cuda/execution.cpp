// Runs a kernel thread by thread, on this one core: blocks and threads from last to first, so that what holds only for
// another order does not pass. A thread that waits for others (__syncthreads, __shfl_sync) is put aside on its own
// stack, a fibre; threads that never wait follow each other on the same one. Knows no streams and no modules.
#include "emulation.h"
#include "device/entry.h"

#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include <sys/mman.h>

#ifndef __x86_64__
#error "the emulation switches stacks in the machine's own language: x86-64 only"
#endif

// void switch_stack(void **save, void *to): keeps what a function must preserve on this stack, goes on with another.
asm(R"(
.text
.hidden emulation_switch_stack
.globl emulation_switch_stack
emulation_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
extern "C" void emulation_switch_stack(void **save, void *to);

namespace emulation {

extern "C" {
__attribute__((visibility("default"))) Index emulation_thread, emulation_block, emulation_block_size,
    emulation_grid_size;
alignas(128) __attribute__((visibility("default"))) char emulation_dynamic_shared_memory[64 << 10];
}

const int WARP = 32, MOST_THREADS = 1024;
const size_t STACK = 64 << 10;   // only what is touched takes memory
const int PRESERVED = 6;         // registers that a switch keeps

enum class State { IDLE, AT_WARP, AT_BLOCK };

struct Fibre {
    void *stack_pointer;
    char *stack;
    State state;
    int thread;
    unsigned mask;   // of the lanes that it waits for
};

// The one block that runs now.
struct Block {
    const char *name;
    const Kernel *kernel;
    void **arguments;
    int size, unstarted;              // threads; those still to start are 0 ... unstarted - 1
    std::vector<int> waiting;         // fibres
    unsigned long long handed[2][MOST_THREADS];
    unsigned char turn[MOST_THREADS]; // which of the two the thread's next exchange uses
};

static std::mutex &one_at_a_time = *new std::mutex;
static std::vector<Fibre> &fibres = *new std::vector<Fibre>;
static std::vector<int> &idle = *new std::vector<int>;
static Block block;
static int running;          // fibre
static void *scheduler;      // its stack pointer

static void enter_thread(int thread)
{
    const unsigned x = emulation_block_size.x, y = emulation_block_size.y;
    emulation_thread = {thread % x, thread / x % y, thread / (x * y)};
}

// What a fibre does all its life: run threads that were not started yet. Where there is none, it is idle.
static void live()
{
    for (;;) {
        while (block.unstarted > 0) {
            const int thread = --block.unstarted;
            fibres[running].thread = thread;
            enter_thread(thread);
            block.kernel->call(block.arguments);
        }
        fibres[running].state = State::IDLE;
        idle.push_back(running);
        emulation_switch_stack(&fibres[running].stack_pointer, scheduler);
    }
}

static int new_fibre()
{
    void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        die("no memory for the stack of a thread of kernel %s", block.name);
    // As if live() had been called and switched away from: the ABI wants its frame 8 bytes off a multiple of 16.
    void **top = (void **)((char *)stack + STACK) - 2;
    *top = (void *)live;
    fibres.push_back({top - PRESERVED, (char *)stack, State::IDLE, 0, 0});
    return (int)fibres.size() - 1;
}

static void resume(int fibre)
{
    running = fibre;
    enter_thread(fibres[fibre].thread);
    emulation_switch_stack(&scheduler, fibres[fibre].stack_pointer);
}

static void wait(State what, unsigned mask)
{
    Fibre &mine = fibres[running];
    mine.state = what;
    mine.mask = mask;
    block.waiting.push_back(running);
    emulation_switch_stack(&mine.stack_pointer, scheduler);
}

// Called when every thread that has not ended waits. A warp's barrier opens unless one of its threads is at the
// block's; the block's opens when all are there.
static std::vector<int> released()
{
    std::vector<unsigned> at_block(MOST_THREADS / WARP);
    std::vector<int> at_warp;
    for (int fibre : block.waiting) {
        const Fibre &each = fibres[fibre];
        if (each.state == State::AT_BLOCK)
            at_block[each.thread / WARP] |= 1u << each.thread % WARP;
        else
            at_warp.push_back(fibre);
    }
    for (int fibre : at_warp)
        if (fibres[fibre].mask & at_block[fibres[fibre].thread / WARP])
            die("kernel %s: deadlock: threads of one warp wait for each other at __syncthreads and at a warp's "
                "barrier", block.name);
    if (at_warp.empty())
        return std::move(block.waiting);
    std::vector<int> staying;
    for (int fibre : block.waiting)
        if (fibres[fibre].state == State::AT_BLOCK)
            staying.push_back(fibre);
    block.waiting = staying;
    return at_warp;
}

static void run_block()
{
    block.unstarted = block.size;
    block.waiting.clear();
    while (block.unstarted > 0) {
        if (idle.empty())
            idle.push_back(new_fibre());
        const int next = idle.back();
        idle.pop_back();
        resume(next);
    }
    while (!block.waiting.empty()) {
        const std::vector<int> now = released();
        block.waiting.reserve(MOST_THREADS);
        for (int fibre : now)
            resume(fibre);
    }
}

void execute(const char *name, const Kernel &kernel, void **arguments, Dimensions grid, Dimensions size)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);
    fibres.reserve(MOST_THREADS);   // references stay
    block.name = name;
    block.kernel = &kernel;
    block.arguments = arguments;
    block.size = size.x * size.y * size.z;
    memset(block.turn, 0, sizeof block.turn);
    emulation_grid_size = {grid.x, grid.y, grid.z};
    emulation_block_size = {size.x, size.y, size.z};
    for (unsigned z = grid.z; z-- > 0;)
        for (unsigned y = grid.y; y-- > 0;)
            for (unsigned x = grid.x; x-- > 0;) {
                emulation_block = {x, y, z};
                run_block();
            }
}

}   // namespace emulation

using namespace emulation;

EXPORT void emulation_sync_block()
{
    wait(State::AT_BLOCK, 0);
}

EXPORT void emulation_sync_warp(unsigned mask)
{
    wait(State::AT_WARP, mask);
}

// Two buffers in turn: a thread may hand over its next value before the others have read the last one.
EXPORT const unsigned long long *emulation_exchange(unsigned mask, unsigned long long value)
{
    const int thread = fibres[running].thread, turn = block.turn[thread] ^= 1;
    block.handed[turn][thread] = value;
    wait(State::AT_WARP, mask);
    return block.handed[turn] + thread / WARP * WARP;
}

EXPORT int emulation_lane()
{
    return fibres[running].thread % WARP;
}

EXPORT void emulation_trap(const char *what)
{
    die("kernel %s: %s", block.name, what);
}
