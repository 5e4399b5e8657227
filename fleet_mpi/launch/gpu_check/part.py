"""``python -m fleet_mpi.launch.gpu_check.part NAME DEVICE quick``: does one part, and prints its findings as JSON.

What the checks themselves print goes to stderr; the last line of stdout is the findings.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

MODULES = {"device": "device_facts", "ops": "op_checks", "kernels": "kernel_checks", "memory": "memory_checks",
           "speed": "speed_checks"}


def main(argv: Sequence[str]) -> int:
    """Do the part that the words name; returns the exit code."""
    name, device, quick = argv
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)
        findings = _check(name)(int(device) if device else None, bool(quick))
        answer.write(json.dumps([one._asdict() for one in findings]) + "\n")
    return 0


def _check(name: str) -> Callable[[int | None, bool], list[Any]]:
    return importlib.import_module(f"fleet_mpi.launch.gpu_check.{MODULES[name]}").check


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
