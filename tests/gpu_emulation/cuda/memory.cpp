// Memory of devices and pinned memory, both in host memory; copies between them by CUDA's rules of waiting.
#include "emulation.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace emulation {

// New memory is poisoned. Of all ones floating-point numbers of any size are NaN, which spreads to what is computed.
const int DEVICE_POISON = 0xFF, PINNED_POISON = 0xA5;
const size_t DEVICE_ALIGNMENT = 512, PAGE = 4096, DEVICE_BYTES = 8ull << 30;

struct Region {
    size_t size;
    Place place;
};

static std::mutex &guard = *new std::mutex;
static std::map<const char *, Region> &regions = *new std::map<const char *, Region>;   // by first address
static std::map<int, size_t> &used = *new std::map<int, size_t>;                        // bytes, by device

// The region that has the address, its end included: an empty array may begin there.
static const Region *region_of(const void *address, const char **first = nullptr)
{
    auto next = regions.upper_bound((const char *)address);
    if (next == regions.begin())
        return nullptr;
    --next;
    if (first)
        *first = next->first;
    return (const char *)address <= next->first + next->second.size ? &next->second : nullptr;
}

Place place_of(const void *address)
{
    std::lock_guard<std::mutex> lock(guard);
    const Region *found = region_of(address);
    return found ? found->place : Place{Memory::PAGEABLE, -1};
}

bool usable_on(int device, const void *address)
{
    const Place place = place_of(address);
    return !address || place.kind == Memory::PINNED || (place.kind == Memory::DEVICE && place.device == device);
}

static void *allocate(size_t size, size_t alignment, int poison, Place place)
{
    const size_t rounded = (size + alignment) / alignment * alignment;   // never none at all
    void *made = aligned_alloc(alignment, rounded);
    if (!made)
        return nullptr;
    memset(made, poison, rounded);
    std::lock_guard<std::mutex> lock(guard);
    regions[(const char *)made] = {size, place};
    return made;
}

// Whether the address was the first one of a region of this kind, which is now forgotten.
static bool forget(void *address, Memory kind)
{
    std::lock_guard<std::mutex> lock(guard);
    auto found = regions.find((const char *)address);
    if (found == regions.end() || found->second.place.kind != kind)
        return false;
    if (kind == Memory::DEVICE)
        used[found->second.place.device] -= found->second.size;
    regions.erase(found);
    return true;
}

static bool reserve(int device, size_t size)
{
    std::lock_guard<std::mutex> lock(guard);
    if (used[device] + size > DEVICE_BYTES)
        return false;
    used[device] += size;
    return true;
}

// Whether so many bytes lie in one region; host memory that CUDA does not know is taken on trust.
static bool lies_within(const void *address, size_t size)
{
    std::lock_guard<std::mutex> lock(guard);
    const char *first;
    const Region *found = region_of(address, &first);
    return !found || (const char *)address + size <= first + found->size;
}

static cudaMemcpyKind kind_of(const void *to, const void *from)
{
    const bool to_device = place_of(to).kind == Memory::DEVICE, from_device = place_of(from).kind == Memory::DEVICE;
    return to_device ? from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice
                     : from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

// Checks a copy's words against where its memory lies, and counts it; ``kind`` becomes what it really is.
static cudaError_t check(void *to, const void *from, size_t size, cudaMemcpyKind &kind)
{
    const cudaMemcpyKind real = kind_of(to, from);
    if (kind != cudaMemcpyDefault && kind != real && size) {
        complain("a copy of %zu bytes says kind %d, its memory says %d", size, (int)kind, (int)real);
        return cudaErrorInvalidValue;
    }
    if (!lies_within(to, size) || !lies_within(from, size)) {
        complain("a copy of %zu bytes reaches beyond its memory", size);
        return cudaErrorInvalidValue;
    }
    kind = real;
    log("copy of %zu bytes, kind %d", size, (int)kind);
    if (kind == cudaMemcpyHostToDevice)
        count(UPLOADS);
    else if (kind == cudaMemcpyDeviceToHost)
        count(DOWNLOADS);
    else if (kind == cudaMemcpyDeviceToDevice)
        count(DEVICE_COPIES);
    return cudaSuccess;
}

static void enqueue_copy(void *to, const void *from, size_t size, cudaMemcpyKind kind, void *stream)
{
    const bool waits = place_of(to).kind == Memory::PAGEABLE;
    if (place_of(from).kind == Memory::PAGEABLE && !waits) {
        // CUDA stages pageable memory before the call returns: later changes do not count.
        std::string staged((const char *)from, size);
        enqueue(stream, [=] { memcpy(to, staged.data(), size); });
    } else {
        enqueue(stream, [=] { memmove(to, from, size); });
    }
    if (waits) {
        count(WAITS);
        wait_for_stream(stream);
    }
}

}   // namespace emulation

using namespace emulation;

EXPORT cudaError_t cudaMalloc(void **made, size_t size)
{
    const int device = current_device();
    count(ALLOCATIONS);
    if (!reserve(device, size))
        return cudaErrorMemoryAllocation;
    *made = allocate(size, DEVICE_ALIGNMENT, DEVICE_POISON, {Memory::DEVICE, device});
    return *made ? cudaSuccess : cudaErrorMemoryAllocation;
}

EXPORT cudaError_t cudaFree(void *address)
{
    if (!address)
        return cudaSuccess;
    const Place place = place_of(address);
    if (place.kind != Memory::DEVICE)
        return cudaErrorInvalidValue;
    wait_for_device(place.device);   // as CUDA does
    if (!forget(address, Memory::DEVICE))
        return cudaErrorInvalidValue;
    free(address);
    return cudaSuccess;
}

EXPORT cudaError_t cudaMallocAsync(void **made, size_t size, cudaStream_t)
{
    return cudaMalloc(made, size);
}

EXPORT cudaError_t cudaFreeAsync(void *address, cudaStream_t)
{
    return cudaFree(address);
}

EXPORT cudaError_t cudaHostAlloc(void **made, size_t size, unsigned)
{
    *made = allocate(size, PAGE, PINNED_POISON, {Memory::PINNED, -1});
    return *made ? cudaSuccess : cudaErrorMemoryAllocation;
}

EXPORT cudaError_t cudaFreeHost(void *address)
{
    for (int device = 0; device < visible_devices(); device++)
        wait_for_device(device);
    if (!forget(address, Memory::PINNED))
        return cudaErrorInvalidValue;
    free(address);
    return cudaSuccess;
}

// Memory of the caller's own, pinned from now on.
EXPORT cudaError_t cudaHostRegister(void *address, size_t size, unsigned)
{
    std::lock_guard<std::mutex> lock(guard);
    regions[(const char *)address] = {size, {Memory::PINNED, -1}};
    return cudaSuccess;
}

EXPORT cudaError_t cudaHostUnregister(void *address)
{
    return forget(address, Memory::PINNED) ? cudaSuccess : cudaErrorInvalidValue;
}

EXPORT cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    std::lock_guard<std::mutex> lock(guard);
    *total = DEVICE_BYTES;
    *unused = DEVICE_BYTES - used[current_device()];
    return cudaSuccess;
}

EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *found, const void *address)
{
    const Place place = place_of(address);
    memset(found, 0, sizeof *found);
    found->device = place.device;
    if (place.kind == Memory::DEVICE) {
        found->type = cudaMemoryTypeDevice;
        found->devicePointer = (void *)address;
    } else if (place.kind == Memory::PINNED) {
        found->type = cudaMemoryTypeHost;
        found->hostPointer = found->devicePointer = (void *)address;
    }
    return cudaSuccess;
}

// In the default stream. Between devices' memories the host does not wait; in all other directions it does.
EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind)
{
    const cudaError_t wrong = check(to, from, size, kind);
    if (wrong)
        return wrong;
    enqueue(nullptr, [=] { memmove(to, from, size); });
    if (kind != cudaMemcpyDeviceToDevice) {
        count(WAITS);
        wait_for_stream(nullptr);
    }
    return cudaSuccess;
}

EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t stream)
{
    if (!is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    const cudaError_t wrong = check(to, from, size, kind);
    if (!wrong)
        enqueue_copy(to, from, size, kind, stream);
    return wrong;
}

EXPORT cudaError_t cudaMemcpyPeer(void *to, int, const void *from, int, size_t size)
{
    return cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice);
}

EXPORT cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t size, cudaStream_t stream)
{
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}

EXPORT cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream)
{
    if (!is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (!lies_within(to, size))
        return cudaErrorInvalidValue;
    enqueue(stream, [=] { memset(to, value, size); });
    return cudaSuccess;
}

EXPORT cudaError_t cudaMemset(void *to, int value, size_t size)
{
    return cudaMemsetAsync(to, value, size, nullptr);
}
