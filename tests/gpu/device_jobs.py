"""Ranks on devices: each on its own one, real or emulated."""

import json
from pathlib import Path
from typing import NamedTuple

from tests.mpi.jobs import ROOT, run_inside, run_job

HERE = ROOT / "tests" / "gpu"
PLUGIN = ("-p", "tests.gpu_emulation.plugin")


class Way(NamedTuple):
    """What is asked for, and whether MPI is said to take device memory: the emulation's is host memory, so it does."""

    variant: str
    aware: str
    has_amp: bool = False


WAYS = {"exact, staged": Way("exact", "no"), "exact, aware": Way("exact", "yes"), "fast, staged": Way("fast", "no"),
        "fast, aware": Way("fast", "yes"), "nccl": Way("nccl", "no"), "default": Way("", "no"),
        "AMP, exact, staged": Way("exact", "no", True), "AMP, exact, aware": Way("exact", "yes", True),
        "AMP, nccl": Way("nccl", "no", True)}


def environment(devices, asynchronous=False, **settings):
    """Variables for ranks: so many emulated devices (a machine with GPUs ignores it), and the package's settings."""
    return {"FLEET_EMULATION_DEVICES": str(devices), "FLEET_EMULATION_ASYNC": str(int(asynchronous)),
            **settings}


def run_on_devices(ranks, script, *arguments, asynchronous=False, timeout=300, **settings):
    """Run a script of this folder (or ``-m`` module) on ranks, one device each; the same as ``run_job``."""
    words = script if isinstance(script, (list, tuple)) else [HERE / script]
    return run_job(ranks, [*words, *arguments], env=environment(ranks, asynchronous, **settings), timeout=timeout)


def run_inside_on_devices(ranks, *arguments, asynchronous=False, timeout=300):
    """Run the inside-tests of tests/mpi that take device arrays, with real cupy, in every rank."""
    return run_inside(ranks, (*PLUGIN, *arguments), timeout=timeout, per_test=120,
                      env=environment(ranks, asynchronous))


def own_devices(folder, ranks):
    """The device of each rank, by what own_device_rank.py has written; whatever names a device must name the same."""
    told = [json.loads(Path(folder, str(rank)).read_text()) for rank in range(ranks)]
    for one in told:
        own = one["lies_on"]
        assert one == {"flag": str(own), "device_id": own, "cuda_places": [own], "lies_on": own}, told
    return [one["lies_on"] for one in told]
