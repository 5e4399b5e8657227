// What the parts of the emulation know of each other. Each section is implemented in the file that its heading names.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace emulation {

// ---- settings.cpp: the environment, read once.
struct Settings {
    bool asynchronous;    // FLEET_EMULATION_ASYNC=1: nothing runs until somebody waits
    bool log;             // FLEET_EMULATION_LOG=1: launches and copies, to stderr
    bool skips_kernels;   // FLEET_EMULATION_NOOP=1: kernels and BLAS calls do nothing, to time host code
    int devices;          // FLEET_EMULATION_DEVICES=n, 1 if unset: devices of the machine
    std::string folder;   // FLEET_EMULATION: what build.py made; compiled kernels are kept in it
};
const Settings &settings();
void log(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Tells on stderr why a call is about to fail: CUDA's error codes alone tell too little.
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Complains about a call of what is missing, and returns the code by which it fails.
int not_emulated(const char *name, int code);
// For faults of the emulated program that no error code can report (a deadlock in a kernel).
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- counters.cpp: what tests count. The order is that of the names there.
enum Counter {
    LAUNCHES, WAITS, UPLOADS, DOWNLOADS, DEVICE_COPIES, BLAS_CALLS, ALLOCATIONS, COLLECTIVES, POLLS, COUNTERS
};
void count(Counter what);

// ---- devices.cpp
int visible_devices();              // as CUDA_VISIBLE_DEVICES leaves them
int current_device();               // of the calling thread
int physical_device(int visible);   // the number that other processes see too

// ---- memory.cpp
enum class Memory { PAGEABLE, PINNED, DEVICE };
struct Place {
    Memory kind;
    int device;   // -1 on the host
};
Place place_of(const void *address);
// Whether kernels on this device may use the address: its own memory, pinned memory, or none (null).
bool usable_on(int device, const void *address);

// ---- streams.cpp: work runs in the order of its stream, when and only when the rules of CUDA let it.
using Work = std::function<void()>;
// Returns false as long as the work cannot be done yet (a collective whose peers have not arrived).
using Attempt = std::function<bool()>;
bool is_stream(void *stream);
int device_of_stream(void *stream);
// A handle that means the same stream in every thread: the default stream's own one depends on the current device.
void *own_handle(void *stream);
void enqueue(void *stream, Work work);
void enqueue_attempt(void *stream, Attempt attempt);
void wait_for_stream(void *stream);
void wait_for_device(int device);
// Runs what can be run now, without waiting. For peers that wait for this process.
void progress(void *stream);

// ---- execution.cpp: one kernel, thread by thread.
struct Dimensions {
    unsigned x, y, z;
};
struct Kernel;   // device/entry.h
void execute(const char *name, const Kernel &kernel, void **arguments, Dimensions grid, Dimensions block);

// ---- halves.cpp: the 16-bit formats, for BLAS and collectives.
float from_half(unsigned short bits);
unsigned short to_half(float value);
float from_bfloat(unsigned short bits);
unsigned short to_bfloat(float value);

}   // namespace emulation
