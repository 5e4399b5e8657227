"""``python -m fleet_mpi.collective.cuda_trial DEVICE``: send and sum buffers in GPU memory, in a process of its own.

An MPI library that says it takes GPU buffers may die of one all the same: older versions of Open MPI answer what they
were compiled with, and UCX may lack CUDA. So a throw-away process tries, and its death is an answer.

The process is a singleton, an MPI world of one: it needs no launcher, and whatever started its parent hears nothing of
it. What it shows: the library and the transport that it uses within a process read and write GPU memory. What it does
not show: the transports between processes and between machines. The doctor's ranks try these (``exchanged``).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import arrays

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType
    from typing import Any

LENGTHS = (3, 1 << 20)  # elements: libraries send short and long messages in different ways
DONE = "device buffers were sent and summed"
_LETTERS = 200
# By which a launcher tells its processes who they are; settings of the user's (OMPI_MCA_pml and the like) stay.
_OF_LAUNCHERS = ("OMPI_COMM_", "OMPI_UNIVERSE", "OMPI_FIRST_", "OMPI_FILE_", "OMPI_APP_", "OMPI_MCA_orte_",
                 "OMPI_MCA_ess", "OMPI_MCA_pmix", "OMPI_MCA_prte_", "PRTE_", "PMIX_", "PMI_", "MPI_LOCAL", "PALS_",
                 "MV2_COMM_", "MVP_COMM_", "HYDI_", "HYDRA_", "SLURM_")


def main(argv: Sequence[str]) -> int:
    """Try on one device; returns the exit code."""
    xp = arrays.cupy_module()
    xp.cuda.Device(int(argv[0])).use()
    from mpi4py import MPI
    problem = exchanged(MPI.COMM_WORLD, xp)
    print(problem or DONE)
    return 1 if problem else 0


def exchanged(comm: Any, xp: ModuleType) -> str:
    """Collective: send device buffers in a ring and sum them over all ranks; returns what came out wrong, or nothing.

    Kills this process where the library takes their addresses for those of host memory.
    """
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for length in LENGTHS:
        numbers = np.arange(length, dtype=np.float32)
        sent, came, total = (xp.asarray(numbers + start) for start in (comm.rank, -1, -1))
        xp.cuda.get_current_stream().synchronize()
        comm.Sendrecv(sent, right, recvbuf=came, source=left)
        comm.Allreduce(sent, total)
        ranks = np.float32(sum(range(comm.size)))
        for what, found, expected in (("sent", came, numbers + left), ("summed", total, numbers * comm.size + ranks)):
            if not np.allclose(xp.asnumpy(found), expected):
                return f"{4 * length} bytes in GPU memory were {what} wrongly"
    return ""


def why_it_fails(device: int, deadline_s: float, command: Sequence[str] | None = None) -> str:
    """Try in a process of its own, on this device; returns why it failed, or nothing where it did not.

    ``command`` is for tests. Python starts processes without copying this one (vfork), which MPI may not survive.
    """
    command = command or [sys.executable, "-m", "fleet_mpi.collective.cuda_trial", str(device)]
    try:
        ended = subprocess.run(command, env=alone(os.environ), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               errors="replace", timeout=deadline_s)
    except subprocess.TimeoutExpired:
        return f"a trial did not end in {deadline_s:.0f} s"
    except OSError as error:
        return f"a trial could not be started: {error}"
    if ended.returncode == 0 and DONE in ended.stdout:
        return ""
    if ended.returncode < 0:
        return f"a trial was killed by {signal.Signals(-ended.returncode).name}"
    said = (ended.stdout + ended.stderr).strip().splitlines() or [f"exit code {ended.returncode}"]
    return f"a trial failed: {said[-1][:_LETTERS]}"


def alone(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process that no launcher started."""
    kept = {name: value for name, value in environ.items() if not name.startswith(_OF_LAUNCHERS)}
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, kept.get("PYTHONPATH"))))
    # A world of one needs no other; that for neighbours would leave a segment in /dev/shm where the process dies.
    return {"OMPI_MCA_btl": "self", **kept}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
