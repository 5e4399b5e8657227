// Modules (compiled kernels) and their launches: the driver's part that cupy uses.
#include "emulation.h"
#include "device/entry.h"
#include "images.h"

#include <cuda.h>

#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

namespace emulation {

const unsigned MOST_THREADS = 1024;
const unsigned SHARED_BYTES = 48 << 10;

struct Function {
    std::string name;
    Kernel kernel;
};

// A launch's arguments, copied: the caller's are gone when the kernel runs.
class Arguments {
public:
    Arguments(const Kernel &kernel, void **given)
    {
        for (int i = 0; i < kernel.count; i++)
            copies.emplace_back((const char *)given[i], kernel.arguments[i].size);
        for (std::string &copy : copies)
            addresses.push_back(copy.data());
    }
    void **data() { return addresses.data(); }

private:
    std::vector<std::string> copies;
    std::vector<void *> addresses;
};

// A GPU faults at an address of the host's or of another device; here the launch is refused.
static bool addresses_are_usable(const Function &function, void **given)
{
    for (int i = 0; i < function.kernel.count; i++) {
        if (!function.kernel.arguments[i].is_address)
            continue;
        const void *address;
        memcpy(&address, given[i], sizeof address);
        if (!usable_on(current_device(), address)) {
            complain("kernel %s: argument %d is the address %p, which is no memory of device %d",
                     function.name.c_str(), i, address, current_device());
            return false;
        }
    }
    return true;
}

static bool size_is_valid(Dimensions grid, Dimensions block)
{
    return grid.x && grid.y && grid.z && block.x && block.y && block.z && grid.y < 65536 && grid.z < 65536 &&
           (unsigned long long)block.x * block.y * block.z <= MOST_THREADS && block.z <= 64;
}

static CUresult launch(const Function &function, Dimensions grid, Dimensions block, unsigned shared, void *stream,
                       void **given)
{
    if (!size_is_valid(grid, block) || shared > SHARED_BYTES) {
        complain("kernel %s: no device can launch grid (%u, %u, %u), block (%u, %u, %u) with %u bytes of shared memory",
                 function.name.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_stream(stream) || device_of_stream(stream) != current_device()) {
        complain("kernel %s: the stream is not one of device %d", function.name.c_str(), current_device());
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!addresses_are_usable(function, given))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    log("launch %s, grid (%u, %u, %u), block (%u, %u, %u)", function.name.c_str(), grid.x, grid.y, grid.z, block.x,
        block.y, block.z);
    count(LAUNCHES);
    auto arguments = std::make_shared<Arguments>(function.kernel, given);
    if (!settings().skips_kernels)
        enqueue(stream, [=, &function] {
            execute(function.name.c_str(), function.kernel, arguments->data(), grid, block);
        });
    return CUDA_SUCCESS;
}

}   // namespace emulation

using namespace emulation;

// Modules stay loaded for good: kernels may still be queued when cupy lets go of them.
EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    const std::string path = path_in_image((const char *)image);
    void *library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        complain("cannot load a module: %s", path.empty() ? "it was not compiled by the emulation" : dlerror());
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *module = (CUmodule)library;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    std::ifstream file(path);
    std::stringstream image;
    image << file.rdbuf();
    return file ? cuModuleLoadData(module, image.str().c_str()) : CUDA_ERROR_FILE_NOT_FOUND;
}

EXPORT CUresult cuModuleUnload(CUmodule)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *found, CUmodule module, const char *name)
{
    void *entry = dlsym(module, (std::string(name) + "_kernel").c_str());
    if (!entry)
        return CUDA_ERROR_NOT_FOUND;
    *found = (CUfunction) new Function{name, ((Kernel(*)())entry)()};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *name)
{
    complain("cuModuleGetGlobal(%s): variables of a module are not emulated", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **given,
                               void **)
{
    return launch(*(Function *)function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, given);
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction)
{
    *value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? (int)MOST_THREADS : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction, int, size_t)
{
    *blocks = 4;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction, CUoccupancyB2DSize, size_t, int)
{
    *grid = 16;
    *block = 256;
    return CUDA_SUCCESS;
}
