"""The machine and the versions a table was made with; no host name, no paths."""

import importlib.metadata
import importlib.util
import os
import platform
import subprocess

from benchmarks.rounds import ROOT

PACKAGES = ("numpy", "numba", "threadpoolctl", "torch")


def facts():
    """Processor kind, cores, load, versions and commit."""
    return {"cpu": _cpu(), "cores": len(os.sched_getaffinity(0)), "load": round(os.getloadavg()[0], 2),
            "python": platform.python_version(), **_versions(), "commit": _commit()}


def has(package):
    """Whether a package can be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


def _versions():
    return {name: importlib.metadata.version(name) for name in PACKAGES if has(name)}


def _cpu():
    with open("/proc/cpuinfo") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit():
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return asked.stdout.strip() or "unknown"
