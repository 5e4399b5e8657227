"""``python -m fleet_mpi doctor``: whether a job can run here, before it waits in a queue.

Alone it looks around and starts two ranks of its own; under mpirun or srun every rank looks, and the first one prints
what they found together. Ranks that do not find each other know their number from the launcher: the one with number 0
speaks for itself, the others keep silent, so that N singletons print one report. Starts no MPI in its own process:
probes do, and are ended if they hang.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING

from fleet_mpi.command_line import CommandLine, seconds
from fleet_mpi.launch import mpirun, running
from fleet_mpi.launch.doctor_checks import FAIL, MPI_CHECKS, WARN, Case, Finding
from fleet_mpi.launch.doctor_launcher import launcher
from fleet_mpi.launch.doctor_listening import Heard, listening
from fleet_mpi.launch.doctor_machine import MACHINE_CHECKS
from fleet_mpi.launch.doctor_probe import MPI_ONLY, WITHOUT_MPI
from fleet_mpi.ranks import arriving, ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet_mpi.launch.doctor_facts import Facts
    from fleet_mpi.launch.doctor_launcher import Launcher

ABOUT = """Looks at MPI, cores, memory, GPUs, folders and Slurm, and says what to do about what is wrong.
Alone, or under the launcher of the job to come: mpirun -np N python -m fleet_mpi doctor"""
FAILED = 3
DEADLINE_S = 20


def main(argv: Sequence[str]) -> int:
    """Print the report that this process is to print, if any; returns the exit code: 3 if something fails."""
    asked = _parser().parse_args(argv)
    started_by = launcher(os.environ)
    ending.release()  # a report that has a failure in it is no failure of this rank, and the job ends anyway
    if not started_by.name:
        return _report(_alone(asked.deadline), asked.json)
    with listening(_probe(), _environment(started_by, asked.deadline), asked.deadline) as heard:
        # Not the first: if this process ended with a code, a launcher would end the first before it has spoken.
        if heard.rank if heard.met is not None else started_by.number:
            return 0
        code = _report(Case(heard.met or [heard.facts], started_by, heard), asked.json)
    if heard.met is None and "size" not in heard.facts:
        arriving.end_job(code)  # somebody has not come, and MPICH's mpirun would wait for him
    return code


def _parser() -> CommandLine:
    parser = CommandLine("python -m fleet_mpi doctor", description=ABOUT,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.add_argument("--deadline", type=seconds, default=DEADLINE_S, metavar="SECONDS",
                        help=f"how long any one step may take ({DEADLINE_S})")
    return parser


def _probe(*words: str) -> list[str]:
    return [sys.executable, "-m", "fleet_mpi.launch.doctor_probe", *words]


def _environment(started_by: Launcher, deadline_s: float) -> dict[str, str]:
    added = {"FLAGS_rpc_deadline": str(round(deadline_s * 1000))}
    if started_by.is_deaf and "OMPI_MCA_btl" not in os.environ:
        added["OMPI_MCA_btl"] = "self"  # singletons of Open MPI would each leave a segment in /dev/shm
    return {**os.environ, **added}


def _alone(deadline_s: float) -> Case:
    """The case of a process without a launcher: what it sees, and how two ranks fare."""
    environ = _environment(launcher(os.environ), deadline_s)
    with listening(_probe(WITHOUT_MPI), environ, deadline_s) as heard:
        pass
    pair = _two_ranks(heard.facts, environ, deadline_s)
    met = pair.met[0] if pair.met else pair.facts
    kept = {name: value for name, value in met.items() if name not in ("number", "pid", "rank", "size")}
    return Case([{**heard.facts, **kept}], launcher(os.environ), heard, pair)


def _two_ranks(facts: Facts, environ: Mapping[str, str], deadline_s: float) -> Heard:
    """What two ranks say that are started as fleetrun starts them."""
    path, family = facts.get("mpirun"), facts.get("mpirun_family", "")
    if not path:
        return Heard({})
    command = [path, *mpirun.options(family, 2, running.cores()), "-np", "2", *_probe(MPI_ONLY)]
    with listening(command, {**environ, **mpirun.environment(family, environ)}, deadline_s, starts_ranks=True) as heard:
        return heard


def findings(case: Case) -> dict[str, Finding]:
    """{name: Finding} of all checks; what could not be looked at is said once, by the check that says why."""
    found: dict[str, Finding | None] = {}
    for name, needs, check in (*MPI_CHECKS, *MACHINE_CHECKS):
        if needs and not all(needs in facts for facts in case.ranks):
            found[name] = Finding(WARN, "could not be looked at", "see what failed")
        else:
            found[name] = check(case)
    return {name: finding for name, finding in found.items() if finding is not None}


def _report(case: Case, as_json: bool) -> int:
    found = findings(case)
    sys.stdout.write(_json(case, found) if as_json else _lines(case, found))
    sys.stdout.flush()
    return FAILED if any(finding.state == FAIL for finding in found.values()) else 0


def _lines(case: Case, found: Mapping[str, Finding]) -> str:
    width = max(map(len, found))
    lines = [f"fleet_mpi doctor: {_who(case)}"]
    for name, finding in found.items():
        lines.append(f"{finding.state:<5} {name:<{width}}  {finding.text}")
        if finding.cure:
            lines.append(f"{'':<5} {'':<{width}}  cure: {finding.cure}")
    counts = Counter(finding.state for finding in found.values())
    lines.append(", ".join(f"{counts[state]} {state}" for state in ("ok", WARN, FAIL)))
    return "\n".join(lines) + "\n"


def _who(case: Case) -> str:
    if not case.launcher.name:
        return f"one process on {case.first.get('host', '?')}, without a launcher"
    hosts = sorted({facts.get("host", "?") for facts in case.ranks})
    if case.heard.met is None:
        count = case.launcher.count
        others = f", one of {count} that were started together: the others could not be asked" if count > 1 else ""
        return f"process {case.launcher.number} on {hosts[0]}, started by {case.launcher.name}{others}"
    ranks = f"{len(case.ranks)} rank{'s' if len(case.ranks) > 1 else ''}"
    return f"{ranks} on {', '.join(hosts)}, started by {case.launcher.name}"


def _json(case: Case, found: Mapping[str, Finding]) -> str:
    states = {finding.state for finding in found.values()}
    about = {"state": next(state for state in (FAIL, WARN, "ok") if state in states), "who": _who(case),
             "checks": [{"name": name, **finding._asdict()} for name, finding in found.items()], "ranks": case.ranks}
    return json.dumps(about) + "\n"
