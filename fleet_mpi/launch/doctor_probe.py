"""``python -m fleet_mpi.launch.doctor_probe``: looks around, starts MPI, and tells what it sees step by step.

The doctor runs it beside itself, since MPI and file systems may hang for ever or end the process: whoever reads the
lines knows at which step. A line is one JSON object: {"step": name} before a step, {"facts": {...}} after one, at last
{"met": facts of all ranks, by rank} where ranks have met, or {"apart": why}. Then it waits until its stdin is closed:
a launcher that sees a rank go may end the others before somebody has read what they said.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING

from fleet_mpi.collective import cuda_awareness, cuda_trial
from fleet_mpi.collective.cuda_awareness import Awareness
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.launch import doctor_facts
from fleet_mpi.launch.doctor_launcher import launcher
from fleet_mpi.program.engine import places
from fleet_mpi.ranks import cluster, meeting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

WITHOUT_MPI, MPI_ONLY = "--without-mpi", "--mpi-only"
MEETING = "starting MPI"
EXCHANGE = "GPU buffers sent between ranks"
LEVELS = ("single", "funneled", "serialized", "multiple")
_TRIAL_S = 15
_OTHERS_SPEAK_S = 3  # a rank other than the first, that has failed, stays so long: its end may end the job


def main(argv: Sequence[str]) -> int:
    """Tell everything; returns the exit code."""
    number = launcher(os.environ).number
    started_by_us = MPI_ONLY in argv
    tell = _keep if started_by_us and number else _tell
    facts = {"number": number, "pid": os.getpid()}
    if not started_by_us:
        for name, look in doctor_facts.steps(os.environ, alone=WITHOUT_MPI in argv):
            tell({"step": name})
            facts.update(look())
            tell({"facts": facts})
    if WITHOUT_MPI in argv:
        return 0
    tell({"step": MEETING})
    try:
        told = _meet(facts, tell)
    except Exception as error:
        # Whatever it is: the doctor says it better than a traceback, and this process must not take the job with it.
        told = {"apart": f"{type(error).__name__}: {error}", "facts": facts}
    tell(told)
    if not started_by_us:
        _wait_for_the_reader(number if "apart" in told else 0)
    if "apart" in told:
        os._exit(1)  # MPI_Finalize would wait for those who have not come
    return 0


def _meet(facts: doctor_facts.Facts, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Start MPI as a training job does, and gather what all ranks have seen."""
    begun, refused = time.monotonic(), ""
    try:
        cluster.world()
    except EnvironmentProblem as problem:
        refused = str(problem)
    mpi = sys.modules.get("mpi4py.MPI")  # cluster imports it; here its world may be a wrong one, and is looked at
    if mpi is None:
        return {"apart": refused, "facts": facts}
    comm = mpi.COMM_WORLD
    aware = _tried(comm, tell, refused)
    facts.update(rank=comm.rank, size=comm.size, library=doctor_facts.first_line(mpi.Get_library_version()),
                 library_problem="", libmpi=_path_of(cuda_awareness.loaded_library()), level=_level(mpi),
                 is_cuda_aware=aware.is_aware, cuda_aware_by=aware.reason)
    if refused:
        return {"apart": refused, "facts": facts}
    table = meeting.all_gather(comm, facts, "rank {}".format)
    return {"met": table if comm.rank == 0 else [], "rank": comm.rank, "seconds": round(time.monotonic() - begun, 1)}


def _tried(comm: Any, tell: Callable[[dict[str, Any]], None], refused: str) -> Awareness:
    """Whether MPI takes GPU buffers: what the library says, then a process alone, then, where all ranks may, all ranks
    together; that may end them, and the reader knows by the step.
    """
    aware = cuda_awareness.awareness()
    if not aware.in_doubt or refused:
        return aware
    has_gpu = places.why_no_gpu() is None
    problem = cuda_trial.why_it_fails(places.own_device(), _TRIAL_S) if has_gpu else "there is no GPU to try"
    if all(meeting.all_gather(comm, not problem, "rank {}".format)):
        tell({"step": EXCHANGE})
        problem = cuda_trial.exchanged(comm, places.CUDAPlace().array_module())
        tell({"step": MEETING})
    return Awareness(not problem, f"{aware.reason}, {'but ' + problem if problem else 'and all ranks have tried'}")


def _level(mpi: Any) -> str:
    return next(level for level in LEVELS if getattr(mpi, "THREAD_" + level.upper()) == mpi.Query_thread())


def _path_of(library: Any) -> str:
    return getattr(library, "_name", None) or ""


def _wait_for_the_reader(number: int) -> None:
    if number:
        time.sleep(_OTHERS_SPEAK_S)
    sys.stdin.buffer.read()


def _tell(about: dict[str, Any]) -> None:
    # One write for one line: what ranks write at the same time stays whole.
    os.write(1, (json.dumps(about) + "\n").encode())


def _keep(about: dict[str, Any]) -> None:
    """Of two ranks that the doctor started itself, one speaks."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
