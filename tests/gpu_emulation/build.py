"""Build the emulation of CUDA in a folder: ``python -m tests.gpu_emulation.build FOLDER``, then ``. FOLDER/env.sh``.

Takes about a minute; what is up to date is kept. Exits with code 3 and one sentence where it cannot be built. What a
folder has:

    site      cupy, for PYTHONPATH                lib        the emulation, under the names of NVIDIA's libraries
    tools     headers and Cython, for building    kernels    compiled kernels: shared by processes, kept between runs
    include   what kernels include, precompiled   env.sh     the settings with which cupy finds all this
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tests.gpu_emulation import compiling, packages
from tests.gpu_emulation.packages import BuildProblem

HERE = Path(__file__).parent
CANNOT = 3  # as the package's exit code for an environment that lacks something
CHECK = """
import cupy
a = cupy.arange(10, dtype="float32")
assert float((a * 2 + 1).sum()) == 100, "a sum"
assert float((a.reshape(2, 5) @ a.reshape(5, 2)).sum()) == 485, "a product"
"""


def build(folder):
    """Build what is not up to date in ``folder``; BuildProblem where that cannot be done."""
    folder = Path(folder).resolve()
    refuse_what_cannot_work()
    for name in ("objects", "lib", "kernels", "include", "cache"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    versions = [*packages.RUN, *packages.BUILD, sys.version]
    _once(folder, "packages", versions, packages.install)
    _once(folder, "extension", versions, compiling.compile_extension)
    headers, flags = _texts("cuda/device/*.h"), compiling.KERNEL_FLAGS
    _once(folder, "library", [*versions, *_texts("*.py"), *_texts("cuda/*.*"), *headers], _library)
    _once(folder, "headers", [*versions, *flags, *headers], _headers)
    (folder / "env.sh").write_text("".join(f"export {name}={value}\n" for name, value in variables(folder).items()))
    _check(folder)


def variables(folder):
    """The environment in which an interpreter finds the emulation's cupy."""
    return {
        "FLEET_EMULATION": str(folder),
        "PYTHONPATH": str(folder / "site"),
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "CUDA_PATH": str(packages.headers(folder).parent),
        "CUPY_CACHE_DIR": str(folder / "cache"),   # what is compiled here is of no use to a GPU
        "CUPY_ACCELERATORS": "",                   # CUB lies compiled for GPUs inside cupy
    }


def refuse_what_cannot_work():
    """BuildProblem for what can be told before anything is downloaded."""
    machine = f"{platform.system()} on {platform.machine()}"
    if machine != "Linux on x86_64":
        raise BuildProblem(f"expected Linux on x86_64, which threads of kernels are switched for, got {machine}")
    for program in ("g++", "nm"):
        if shutil.which(program) is None:
            raise BuildProblem(f"expected {program}, which compiles the emulation and kernels, and found none: "
                               f"install g++ and binutils")


def _library(folder):
    compiling.compile_library(folder)
    compiling.replace_extensions(folder)


def _headers(folder):
    for name in ("kernels", "cache"):   # compiled with older headers
        shutil.rmtree(folder / name)
        (folder / name).mkdir()
    compiling.precompile_headers(folder)


def _once(folder, name, depends_on, action):
    """Run ``action`` unless it has been run for the same things before."""
    key = hashlib.sha256("\n".join(map(str, depends_on)).encode()).hexdigest()
    stamp = folder / f"{name}.done"
    if not stamp.exists() or stamp.read_text() != key:
        stamp.unlink(missing_ok=True)
        action(folder)
        stamp.write_text(key)


def _texts(pattern):
    return [path.read_text() for path in sorted(HERE.glob(pattern))]


def _check(folder):
    done = subprocess.run([sys.executable, "-c", CHECK], env={**os.environ, **variables(folder)}, capture_output=True,
                          text=True)
    if done.returncode:
        raise BuildProblem(f"cupy does not compute on the emulation: {done.stderr.strip().splitlines()[-1]}")


def main(arguments):
    """The command; returns its exit code."""
    if len(arguments) != 1:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    try:
        build(arguments[0])
    except BuildProblem as problem:
        print(f"the emulation of CUDA cannot be built: {problem}", file=sys.stderr)
        return CANNOT
    print(f". {Path(arguments[0]).resolve() / 'env.sh'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
