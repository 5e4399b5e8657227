"""``python -m fleet_mpi gpu-check``: whether this package computes rightly, and how fast, on the GPU of this machine.

    findings            what a check says, and the report file
    device_facts        the device, its driver and the libraries that cupy has found
    op_cases            a few dozen ops with inputs
    op_checks           their values and gradients, device against CPU
    kernel_checks       our CUDA kernels against their references
    layer_cases         those of layers, with inputs
    memory_checks       device and pinned memory, copies that overlap
    speed_checks        copies, a product and a ResNet-18 step beside plain cupy
    part                the process that does one part

Each part runs in a process of its own with a deadline: a fault of the device ends only its part, and the report is
written in any case. Starts no MPI; for several ranks see ``slurm/gpu_acceptance.sbatch``.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from fleet_mpi.command_line import CommandLine, seconds
from fleet_mpi.errors import EnvironmentProblem, FleetError
from fleet_mpi.launch.gpu_check.findings import FAIL, OK, Finding, lines, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ABOUT = """Runs ops, kernels, memory and speed checks on one GPU, against the CPU and plain cupy, and writes one report
file to send back. Exit codes: 0 all is right, 1 something is wrong, 3 there is no usable GPU."""
DEVICE = "device"
PARTS = (DEVICE, "ops", "kernels", "memory", "speed")
DEADLINE_S = 900.0


def main(argv: Sequence[str]) -> int:
    """Run all parts, print and write the report; returns the exit code."""
    asked = _parser().parse_args(argv)
    found: dict[str, list[Finding]] = {}
    for part in PARTS:
        found[part] = _run(part, asked)
        sys.stdout.write(lines(part, found[part]))
        sys.stdout.flush()
        if part == DEVICE and _fails(found[part]):
            break
    write(asked.report, found)
    sys.stdout.write(f"report: {asked.report}\n")
    if _fails(found[DEVICE]):
        return EnvironmentProblem.exit_code
    return FleetError.exit_code if any(map(_fails, found.values())) else 0


def _parser() -> CommandLine:
    parser = CommandLine("python -m fleet_mpi gpu-check", description=ABOUT,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", default=f"gpu-check-{socket.gethostname()}.txt", metavar="FILE",
                        help="where the report is written (gpu-check-HOST.txt)")
    parser.add_argument("--device", type=int, metavar="N",
                        help="which GPU, as CUDA_VISIBLE_DEVICES counts (this rank's)")
    parser.add_argument("--quick", action="store_true", help="small sizes: for breakage, not for numbers")
    parser.add_argument("--deadline", type=seconds, default=DEADLINE_S, metavar="SECONDS",
                        help=f"how long any one part may take ({DEADLINE_S:.0f})")
    return parser


def _run(part: str, asked: argparse.Namespace) -> list[Finding]:
    """What a part found, in a process of its own; one that dies or hangs is a finding."""
    command = [sys.executable, "-m", "fleet_mpi.launch.gpu_check.part", part, "" if asked.device is None else
               str(asked.device), "quick" if asked.quick else ""]
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=asked.deadline)
    except subprocess.TimeoutExpired as error:
        return [Finding(part, FAIL, f"did not end within {asked.deadline:g} s{_last_words(error.stderr)}",
                        "give a longer --deadline, or look at the device with nvidia-smi")]
    try:
        return [Finding(**one) for one in json.loads(ended.stdout.splitlines()[-1])]
    except (IndexError, ValueError, TypeError):
        return [Finding(part, FAIL, f"the process ended with code {ended.returncode}{_last_words(ended.stderr)}")]


def _last_words(written: bytes | None) -> str:
    text = " ".join((written or b"").decode(errors="replace").split())
    return f": {text[-400:]}" if text else ""


def _fails(findings: Iterable[Finding]) -> bool:
    return any(one.state != OK for one in findings)
