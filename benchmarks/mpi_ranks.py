"""Ranks of a benchmark's own: started by the mpirun beside this Python, heard through what one of them prints.

Among the ranks: a barrier that takes no core from others, and what the ranks of this machine have used of it.
"""

import json
import os
import subprocess
import sys
import time

import numpy as np

from benchmarks.rounds import ROOT
from fleet_mpi.launch import mpirun

TIMEOUT_S = 900


def command(ranks, module, *words):
    """The command line that runs a module of the benchmarks on some ranks of this machine."""
    found = mpirun.find_mpirun()
    return [found.path, *mpirun.options(found.family, ranks, os.cpu_count()), "-np", str(ranks), sys.executable,
            "-m", "benchmarks." + module, *words]


def environment():
    """The variables the ranks run with."""
    return {**os.environ, **mpirun.environment(mpirun.find_mpirun().family, os.environ)}


def family():
    """Whose MPI it is."""
    return mpirun.find_mpirun().family


def run(ranks, module, what, options):
    """Run ``what`` of a module with some options and return what a rank printed, as JSON."""
    line = command(ranks, module, what, json.dumps(options))
    done = subprocess.run(line, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S,
                          stdin=subprocess.DEVNULL)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"{' '.join(line)}\nended with code {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return json.loads(lines[-1])


def quiet_barrier(comm):
    """A barrier that sleeps: ranks that spin would take the cores of those that still work."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(0.001)


def cpu_s(processes):
    """CPU seconds that processes of this machine, by their ids, have used so far, all their threads."""
    # How Linux numbers the CPU clock of a process (clock_getcpuclockid).
    return np.array([time.clock_gettime(~process << 3 | 2) for process in processes])
