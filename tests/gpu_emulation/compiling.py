"""What the emulation compiles: its library, the one extension of cupy, and headers for kernels.

g++ compiles kernels when they are first used (``cuda/nvrtc.cpp``), 500 of them in the tests: with optimization of the
first level and precompiled headers, 0.2 s each.
"""

import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from tests.gpu_emulation import packages
from tests.gpu_emulation.packages import BuildProblem

CUDA = Path(__file__).parent / "cuda"
FLAGS = ["-std=c++17", "-O2", "-fPIC", "-Wall", "-Wno-deprecated-declarations"]
# For kernels: no fused products (the project promises none), and what NVRTC lets pass.
KERNEL_FLAGS = ["-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-nostdlib", "-w",
                "-fpermissive"]
# The names under which cupy looks for NVIDIA's libraries: all are one.
NAMES = ["libcuda.so.1", "libnvrtc.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcudart.so.13", "libnccl.so.2",
         "libnvidia-ml.so.1"]
# CUDA's, cuBLAS's and NCCL's code for a call that is not supported (NCCL's: invalid usage).
UNSUPPORTED = {"cuda": 801, "cublas": 15, "nccl": 5}
# How the release of cupy was configured; what Cython decides by it.
CONSTANTS = ("CUPY_USE_CUDA_PYTHON=False,CUPY_CUFFT_STATIC=False,CUPY_CYTHON_VERSION='',CUPY_CUDA_VERSION=13000,"
             "CUPY_HIP_VERSION=0")


def compile_extension(folder):
    """Compile cupy's ``runtime.pyx`` from its source distribution to an object file; takes the longest."""
    source = packages.sources(folder)
    pyx = Path("cupy_backends/cuda/api/runtime.pyx")
    _run(folder, [sys.executable, "-m", "cython", "-3", "--cplus", "-X", "embedsignature=True",
                  "-X", "binding=False", "-X", "c_api_binop_methods=True", "-X", "freethreading_compatible=True",
                  "-X", "warn.deprecated.IF=False", "-E", CONSTANTS, pyx], cwd=source)
    includes = [source, source / "cupy_backends", source / "cupy_backends" / "cuda", packages.headers(folder),
                sysconfig.get_paths()["include"], np.get_include()]
    _run(folder, ["g++", "-std=c++17", "-O1", "-fPIC", "-w", "-c", source / pyx.with_suffix(".cpp"),
                  "-o", folder / "objects" / "runtime.o", *(f"-I{path}" for path in includes)])


def compile_library(folder):
    """Compile and link the emulation; symbols that cupy needs and it lacks become stubs that name themselves."""
    objects = folder / "objects" / "emulation"
    shutil.rmtree(objects, ignore_errors=True)
    objects.mkdir(parents=True)
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda source: _object(folder, source, objects), sorted(CUDA.glob("*.cpp"))))
    missing = _needed(folder) - _symbols(made, "--defined-only")
    (objects / "stubs.cpp").write_text(stubs(missing))
    made.append(_object(folder, objects / "stubs.cpp", objects))
    _run(folder, ["g++", "-shared", "-Wl,-soname,libemulation.so", *made, "-ldl", "-lrt", "-pthread",
                  "-o", folder / "lib" / "libemulation.so"])
    for name in NAMES:
        (folder / "lib" / name).unlink(missing_ok=True)
        (folder / "lib" / name).symlink_to("libemulation.so")


def replace_extensions(folder):
    """Put the extension that is linked with the emulation, and numpy's sorts, in the place of cupy's own."""
    site = folder / "site"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    _run(folder, ["g++", "-shared", folder / "objects" / "runtime.o", folder / "lib" / "libemulation.so",
                  f"-Wl,-rpath,{folder / 'lib'}", "-o", site / "cupy_backends" / "cuda" / "api" / f"runtime{suffix}"])
    (site / "cupy" / "cuda" / f"thrust{suffix}").unlink(missing_ok=True)
    shutil.copy(CUDA.parent / "thrust.py", site / "cupy" / "cuda" / "thrust.py")


def precompile_headers(folder):
    """Copy the headers that kernels include, and compile them as g++ will want them."""
    shutil.copytree(CUDA / "device", folder / "include", dirs_exist_ok=True)
    cupy = folder / "site" / "cupy" / "_core" / "include"
    includes = [cupy, *(cupy / "cupy" / "_cccl" / part for part in ("cub", "thrust", "libcudacxx"))]
    for header in ("words.h", "with_cupy.h"):
        _run(folder, ["g++", *KERNEL_FLAGS, *(f"-I{path}" for path in includes), "-x", "c++-header",
                      folder / "include" / header])


def stubs(names):
    """C++ for functions that are not emulated: a call fails, and names itself on stderr."""
    lines = [f'EXPORT int {name}() {{ return emulation::not_emulated("{name}", {_failure(name)}); }}'
             for name in sorted(names)]
    return "\n".join(["// Made by compiling.py.", '#include "emulation.h"', *lines, ""])


def _failure(name):
    """The code by which the function's library says that it cannot do something."""
    library = next(library for library in UNSUPPORTED if name.startswith(library))
    return UNSUPPORTED[library]


def _object(folder, source, objects):
    made = objects / f"{source.stem}.o"
    flags = ", ".join(f'"{flag}"' for flag in KERNEL_FLAGS)
    _run(folder, ["g++", *FLAGS, "-fvisibility=hidden", f"-DEMULATION_KERNEL_FLAGS={flags}", f"-I{CUDA}",
                  f"-I{packages.headers(folder)}", "-c", source, "-o", made])
    return made


def _needed(folder):
    """Functions of NVIDIA's libraries that cupy's extensions are linked with."""
    libraries = folder / "site" / "cupy_backends" / "cuda" / "libs"
    linked = [path for name in ("cublas", "nccl") for path in libraries.glob(f"{name}.*.so")]
    found = _symbols([folder / "objects" / "runtime.o"], "--undefined-only")
    found |= _symbols(linked, "-D", "--undefined-only")
    return {name for name in found if name.startswith(tuple(UNSUPPORTED))}


def _symbols(files, *options):
    listed = subprocess.run(["nm", *options, *map(str, files)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in listed.splitlines() if line.strip() and not line.endswith(":")}


def _run(folder, words, cwd=None):
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=packages.environment(folder),
                          capture_output=True, text=True)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line.lower()), done.stderr[-300:])
        raise BuildProblem(f"{Path(str(words[0])).name} failed on {words[-1]}: {first}")
