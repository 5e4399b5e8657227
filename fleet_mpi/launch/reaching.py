"""Why a job on other hosts did not begin: asks each of them, by the program that mpirun would start ranks with."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from fleet_mpi.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fleet_mpi.launch.job import Allocation, Job

_ANSWER_S = 10


def problem(job: Job, around: Allocation, run: Callable[..., Any] = subprocess.run) -> EnvironmentProblem | None:
    """An EnvironmentProblem with the hosts that cannot be reached and the cause; None where all can."""
    agent = job.told.rsh or "ssh"
    others = [host for host in dict.fromkeys(job.hosts) if not around.is_here(host)]
    causes = {host: _cause(agent, host, run) for host in others}
    silent = [host for host in others if causes[host]]
    if not silent:
        return None
    return EnvironmentProblem(
        f"no rank was started: {', '.join(silent)} cannot be reached from here by {agent}: {causes[silent[0]]}. Are "
        f"the names right, and does '{agent} {silent[0]} true' work without a password? (--rsh says another program)")


def _cause(agent: str, host: str, run: Callable[..., Any]) -> str:
    """What keeps this host from starting a process; empty if nothing does."""
    words = [agent, *(["-o", "BatchMode=yes", "-o", f"ConnectTimeout={_ANSWER_S}"] if agent == "ssh" else []), host,
             "true"]
    try:
        asked = run(words, capture_output=True, text=True, errors="replace", timeout=2 * _ANSWER_S,
                    stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return f"no answer within {2 * _ANSWER_S} s"
    except OSError as error:
        return str(error)
    said = asked.stderr.strip().splitlines() or [f"exit code {asked.returncode}"]
    return said[-1].strip().rstrip(".") if asked.returncode else ""
