// Counts of what a program asked of its device, read by tests/gpu_emulation/counters.py.
#include "emulation.h"

#include <atomic>
#include <cstring>

namespace emulation {

static const char *NAMES[COUNTERS] = {"launches", "waits", "uploads", "downloads", "device_copies", "blas_calls",
                                      "allocations", "collectives", "polls"};
static std::atomic<long> counts[COUNTERS];

void count(Counter what)
{
    counts[what]++;
}

}   // namespace emulation

// The name of a counter; null past the last one.
EXPORT const char *emulation_counter_name(int number)
{
    return number < emulation::COUNTERS ? emulation::NAMES[number] : nullptr;
}

EXPORT long emulation_count(int number)
{
    return emulation::counts[number];
}
