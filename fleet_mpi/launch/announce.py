"""What the launcher shows before a job starts, in the form that users of the original know: texts only.

The block of configuration arguments, the table of the first process's variables, and lines with a level and a time.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleet_mpi.errors import UsageError
from fleet_mpi.launch import flags, rank_roles
from fleet_mpi.launch.job import COLLECTIVE, PS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet_mpi.launch.job import Allocation, Job

# Always in the block, as the launcher of 2.0 shows them; others where they are given.
ALWAYS = ("gpus", "heter_worker_num", "heter_workers", "http_port", "ips", "log_dir", "nproc_per_node", "server_num",
          "servers", "worker_num", "workers")
SHOWN_IF_UNSAID = {"ips": "127.0.0.1"}
NAMES_WIDTH, VALUES_WIDTH, GAP = 40, 45, 2
FIRST_OF_ALL = "First process distributed environment info (Only For Debug): "
ORDER = {COLLECTIVE: ("PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ENDPOINTS",
                      "FLAGS_selected_gpus",
                      "PADDLE_TRAINER_ID"),
         PS: ("PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINER_ENDPOINTS", "TRAINING_ROLE", "PADDLE_PORT", "POD_IP",
              "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID", "FLAGS_selected_gpus")}


def opening(job: Job, around: Allocation, added: Mapping[str, str]) -> str:
    """All that is shown for a job (``added``: the variables its command needs), ready to be written."""
    level = _level(job.told.log_level)
    parts = [configuration(job)] if job.shows else []
    parts += [line(*said) for said in _mode(job, around) if said[0] >= level and job.shows]
    if job.kind == COLLECTIVE and job.shows:
        parts.append(f"launch train in {'GPU' if around.gpus and job.devices else 'CPU'} mode\n")
    if job.shows and level <= logging.INFO:
        for text, variables in _first_processes(job, added):
            parts += [line(logging.INFO, text), table(variables)]
    return "".join(parts)


def configuration(job: Job) -> str:
    """The block of arguments, by name."""
    told = {name: value for name, value in vars(job.told).items()
            if name in ALWAYS or f"--{name}".replace("dry_run", "dry-run") in job.given}
    told.update({name: value for name, value in SHOWN_IF_UNSAID.items() if told[name] is None})
    module = job.script[0] == "-m"
    told.update(log_dir=job.log_dir or None, training_script=" ".join(job.script[:2]) if module else job.script[0],
                training_script_args=list(job.script[2 if module else 1:]))
    lines = [f"{name}: {value}".rstrip() for name, value in sorted(told.items())]
    return "\n".join(["-----------  Configuration Arguments -----------", *lines, "-" * 48]) + "\n"


def table(variables: Mapping[str, str]) -> str:
    """The frame with names and values; of a long value, its end."""
    width = max([NAMES_WIDTH, *map(len, variables)])
    rows = [f"|{name:>{width}}{'':{GAP}}{_end(value):^{VALUES_WIDTH}}|" for name, value in variables.items()]
    border, rule = (f"+{sign * (width + GAP + VALUES_WIDTH)}+" for sign in "=-")
    header = f"|{'Distributed Envs':>{width}}{'':{GAP}}{'Value':^{VALUES_WIDTH}}|"
    return "".join(f"    {row}\n" for row in (border, header, rule, *rows, border)) + "\n"


def line(level: int, text: str) -> str:
    """A line with its level, the time, this file's name and the place in it."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)) + f",{int(now * 1000) % 1000:03d}"
    return f"{logging.getLevelName(level)} {stamp} {Path(__file__).name}:{sys._getframe(1).f_lineno}] {text}\n"


def endpoints(job: Job) -> str:
    """What the original writes into ``endpoints.log`` beside the logs of a collective job."""
    return "PADDLE_TRAINER_ENDPOINTS: \n" + "\n".join(job.worker_labels) + "\n"


def idle(job: Job) -> list[str]:
    """A sentence for every flag that was given and changes nothing."""
    return [f"{flag.names[0]} has no effect: {flag.meaning.partition(';')[0]}" for flag in flags.IDLE
            if flag.names[0] in job.given and getattr(job.told, flag.name) not in ("", None, -1)]


def _mode(job: Job, around: Allocation) -> Iterator[tuple[int, str]]:
    """(level, text) of how the kind of job was found, and of what will not be as it was asked for."""
    if job.kind == PS:
        asked = [name for name in job.given if name in ("--server_num", "--servers", "--worker_num", "--workers")]
        yield logging.INFO, f"Run parameter-server mode. pserver arguments:{asked}, cuda count:{len(around.gpus)}"
    elif job.kind == COLLECTIVE and "--ips" in job.given:
        yield logging.INFO, f"Run collective mode. gpu arguments:['--ips'], cuda count:{len(around.gpus)}"
    elif job.kind == COLLECTIVE:
        cuda = "compiled with cuda" if around.gpus else "no GPU here: ranks run on the CPU"
        yield logging.WARNING, f"Not found distinct arguments and {cuda}. Default use collective mode"


def _first_processes(job: Job, added: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """(text, variables) of the first process of each role."""
    for role, count, rank in (("server", job.servers, 0), ("worker", len(job.worker_labels), job.servers)):
        if count:
            who = "Local start" if job.kind == COLLECTIVE else f"Local {role} start"
            known = {**added, **rank_roles.rank_variables(added, str(rank))}
            names = [name for name in ORDER[job.kind] if name in known]
            yield f"{who} {count} processes. {FIRST_OF_ALL}", {name: known[name] for name in names}


def _end(value: str) -> str:
    return value if len(value) < VALUES_WIDTH else "... " + value[-(VALUES_WIDTH - 4):]


def _level(text: str | int | None) -> int:
    """The number of a level, given by name or as one."""
    if text is None or str(text).isdecimal():
        return int(text or logging.INFO)
    number = logging.getLevelName(str(text).upper())
    if not isinstance(number, int):
        raise UsageError(f"--log_level {text}: expected DEBUG, INFO, WARNING, ERROR or a number")
    return number
