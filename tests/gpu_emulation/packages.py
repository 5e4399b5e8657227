"""What the emulation takes from PyPI, by pip, into folders of its own: no environment is changed."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

CUPY = "14.2.0"
# Without their dependencies: numpy is the environment's, and cupy's toolkit is what is emulated.
RUN = [f"cupy-cuda13x=={CUPY}", "cuda-pathfinder>=1.3.4,<2"]
# Headers (cuda.h and cuda_runtime_api.h are in the first, what they include in the second), and what cupy's source
# distribution is built with.
BUILD = ["nvidia-cuda-runtime==13.0.*", "nvidia-cuda-crt==13.0.*", "nvidia-cuda-profiler-api==13.0.*",
         "cython>=3.2,<3.3", "setuptools<81"]


class BuildProblem(Exception):
    """Why the emulation cannot be built here, as one sentence."""


def install(folder):
    """Install the packages: cupy to ``site``, tools and headers to ``tools``; unpack cupy's sources to ``source``."""
    _pip(folder, "install", "--no-deps", "--upgrade", "--target", folder / "site", *RUN)
    _pip(folder, "install", "--no-deps", "--upgrade", "--target", folder / "tools", *BUILD)
    _pip(folder, "download", "--no-deps", "--no-build-isolation", "--no-binary", "cupy", "-d", folder / "sdist",
         f"cupy=={CUPY}")
    with tarfile.open(folder / "sdist" / f"cupy-{CUPY}.tar.gz") as sources:
        sources.extractall(folder / "source", filter="data")


def headers(folder):
    """Where CUDA's headers are; cupy takes the folder above for the toolkit."""
    return folder / "tools" / "nvidia" / "cu13" / "include"


def sources(folder):
    """Where cupy's sources are."""
    return folder / "source" / f"cupy-{CUPY}"


def environment(folder):
    """This process's environment, such that the tools are found."""
    found = {**os.environ, "PYTHONPATH": str(folder / "tools")}
    # pip asks a source distribution for its metadata; cupy's looks for CUDA unless it is told not to.
    return {**found, "CUPY_INSTALL_USE_STUB": "1"}


def _pip(folder, *words):
    done = subprocess.run([sys.executable, "-m", "pip", *map(str, words), "--quiet"], env=environment(folder),
                          capture_output=True, text=True)
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr[-300:]]
        python = ".".join(map(str, sys.version_info[:2]))
        raise BuildProblem(f"pip cannot {words[0]} {', '.join(Path(str(word)).name for word in words[-2:])} for Python "
                           f"{python}: {reasons[-1]}")
