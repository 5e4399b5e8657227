"""What a check of ``gpu-check`` says, and the report file: lines to read, then the same as one line of JSON."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import fleet_mpi

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OK, FAIL = "ok", "fail"
JSON_BELOW = "---- the same as JSON:"


class Finding(NamedTuple):
    """One check: "ok" or "fail", what was found, what to do about it, and the numbers behind it."""

    name: str
    state: str
    text: str
    cure: str = ""
    numbers: dict[str, Any] = {}


def lines(part: str, findings: Sequence[Finding]) -> str:
    """The findings of a part as text."""
    told = [f"{part}:"]
    width = max((len(one.name) for one in findings), default=0)
    for one in findings:
        told.append(f"  {one.state:<4} {one.name:<{width}}  {one.text}")
        if one.cure:
            told.append(f"  {'':<4} {'':<{width}}  cure: {one.cure}")
    return "\n".join(told) + "\n"


def write(path: str, found: Mapping[str, Sequence[Finding]]) -> None:
    """Write the report, beside and renamed: whoever finds it finds all of it."""
    about = {"fleet_mpi": fleet_mpi.__version__, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
             "parts": {part: [one._asdict() for one in findings] for part, findings in found.items()}}
    text = "".join(lines(part, findings) for part, findings in found.items())
    head = f"fleet_mpi {about['fleet_mpi']} gpu-check, {about['time']}\n"
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w", encoding="utf-8") as file:
        file.write(f"{head}{text}{JSON_BELOW}\n{json.dumps(about)}\n")
    os.replace(beside, path)


def read(path: str) -> Any:
    """The JSON of a report."""
    with open(path, encoding="utf-8") as file:
        return json.loads(file.read().partition(JSON_BELOW + "\n")[2])
