"""Real cupy on a machine without a GPU: an emulation of the CUDA libraries on host memory.

PyPI's wheel of cupy runs on it with two of its extensions replaced: the one that has CUDA's runtime linked into it is
compiled anew from the same version's source distribution, and sorting (Thrust) is done by numpy. All else is cupy's
own: Python and Cython code, types, casting, memory pools, streams and events, and the text of every kernel, which g++
compiles.

    build.py        python -m tests.gpu_emulation.build FOLDER: makes it, in a folder of its own
    packages.py     what it takes from PyPI
    compiling.py    what it compiles
    cuda/           the emulation, in C++: runtime, driver, NVML, NVRTC, cuBLAS, NCCL; device/ is what kernels include
    thrust.py       put in the place of cupy.cuda.thrust
    counters.py     counts of launches, waits and copies
    plugin.py       pytest -p tests.gpu_emulation.plugin: real cupy where tests take the stand-in

Any environment of the same Python uses it after ``. FOLDER/env.sh``, without being changed. Settings, by environment:

    FLEET_EMULATION_DEVICES=n   devices of the machine (1); CUDA_VISIBLE_DEVICES chooses among them
    FLEET_EMULATION_ASYNC=1     nothing runs until somebody waits: finds results that are read too early
    FLEET_EMULATION_NOOP=1      kernels and BLAS calls do nothing: times host code
    FLEET_EMULATION_LOG=1       every launch and copy, to stderr

New memory of a device is poisoned (NaN). A kernel that gets an address of the host's or of another device is refused.
Not emulated: speed, true concurrency, the random order of atomics, flushed subnormals and fused products, CUB and
Thrust, capture of graphs, cuDNN, cuRAND, cuSOLVER, cuSPARSE. A call of what is missing fails and names itself.
"""
