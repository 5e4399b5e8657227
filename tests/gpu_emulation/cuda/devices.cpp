// Devices: how many there are, which one a thread uses, and what they answer when asked about themselves.
#include "emulation.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#undef cudaGetDeviceProperties   // a macro of the header, in whose place cupy asks for the plain name

namespace emulation {

const int VERSION = 13000, THREADS_OF_A_BLOCK = 1024, WARP = 32, MULTIPROCESSORS = 4, SHARED_BYTES = 48 << 10;

static thread_local int current = 0;

static std::vector<int> visible()
{
    std::vector<int> found;
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    if (!list) {
        for (int device = 0; device < settings().devices; device++)
            found.push_back(device);
        return found;
    }
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) {
        char *end;
        long number = strtol(word.c_str(), &end, 10);
        if (end == word.c_str() || number < 0 || number >= settings().devices)
            break;   // as CUDA does: what follows a device that is not there is not seen
        found.push_back((int)number);
    }
    return found;
}

static const std::vector<int> &devices()
{
    static const std::vector<int> &found = *new std::vector<int>(visible());
    return found;
}

int visible_devices()
{
    return (int)devices().size();
}

int physical_device(int visible)
{
    return devices()[visible];
}

int current_device()
{
    return current;
}

}   // namespace emulation

using namespace emulation;

EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
    *count = visible_devices();
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

EXPORT cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return visible_devices() ? cudaSuccess : cudaErrorNoDevice;
}

EXPORT cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= visible_devices())
        return cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDriverGetVersion(int *version)
{
    *version = VERSION;
    return cudaSuccess;
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = VERSION;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device)
{
    if (device < 0 || device >= visible_devices())
        return cudaErrorInvalidDevice;
    switch (which) {
    case cudaDevAttrComputeCapabilityMajor: *value = 8; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = THREADS_OF_A_BLOCK; break;
    case cudaDevAttrWarpSize: *value = WARP; break;
    case cudaDevAttrMultiProcessorCount: *value = MULTIPROCESSORS; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = SHARED_BYTES; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2 * THREADS_OF_A_BLOCK; break;
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    case cudaDevAttrCooperativeLaunch: *value = 0; break;
    default: *value = 1;
    }
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp *found, int device)
{
    if (device < 0 || device >= visible_devices())
        return cudaErrorInvalidDevice;
    memset(found, 0, sizeof *found);
    strcpy(found->name, "emulated GPU");
    found->major = 8;
    found->warpSize = WARP;
    found->multiProcessorCount = MULTIPROCESSORS;
    found->maxThreadsPerBlock = THREADS_OF_A_BLOCK;
    found->maxThreadsPerMultiProcessor = 2 * THREADS_OF_A_BLOCK;
    found->totalGlobalMem = 8ull << 30;
    found->sharedMemPerBlock = SHARED_BYTES;
    found->sharedMemPerMultiprocessor = 160 << 10;
    found->regsPerBlock = 65536;
    found->pciBusID = physical_device(device);
    return cudaSuccess;
}

// No device reads another one's memory from its kernels; copies between them are possible.
EXPORT cudaError_t cudaDeviceGetPCIBusId(char *name, int length, int device)
{
    if (device < 0 || device >= visible_devices())
        return cudaErrorInvalidDevice;
    snprintf(name, length, "0000:%02x:00.0", physical_device(device));
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int, int)
{
    *can = 0;
    return cudaSuccess;
}

EXPORT const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    default: return "an error without a name in the emulation";
    }
}

EXPORT const char *cudaGetErrorString(cudaError_t error)
{
    return cudaGetErrorName(error);
}

// Errors are returned by the call that makes them; none is kept.
EXPORT cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

// ---- the driver's words for the same. A context is its device's number plus one: zero would be none.

EXPORT CUresult cuInit(unsigned)
{
    return visible_devices() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = (CUcontext)(size_t)(current + 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    current = (int)(size_t)context - 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = current;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    *context = (CUcontext)(size_t)(device_of_stream(stream) + 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = cudaGetErrorName((cudaError_t)error);   // both libraries number these errors alike
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    return cuGetErrorName(error, text);
}

// ---- the driver's management library (NVML), which counts the machine's devices, not those that a process may see.

EXPORT int nvmlInit_v2()
{
    return 0;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)settings().devices;
    return 0;
}

EXPORT int nvmlShutdown()
{
    return 0;
}
