"""``fleetrun --dry-run``: what would be started, and who would do what, as text. Starts nothing.

What the servers would keep follows from the program, which only the script makes; ``plan_command`` tells it for a saved
model, and this text how to come by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.launch.job import PS

if TYPE_CHECKING:
    from fleet_mpi.launch.command import Command
    from fleet_mpi.launch.job import Allocation, Job


def text(job: Job, command: Command, around: Allocation) -> str:
    """The command, the roles, where logs go, and for a job with servers how to see what they would keep."""
    parts = [command.text() + "\n\n", roles(job, around)]
    if job.log_dir:
        parts.append(f"logs: {job.log_dir}, on the host of each rank\n")
    if job.kind == PS:
        parts.append("\n")
    if job.kind == PS and not job.told.model:
        parts.append(
            f"What each of the {job.servers} server(s) would keep follows from the program, which only the script "
            f"makes. For a model it has saved:\n    fleetrun --dry-run --model FOLDER ..., or python -m fleet_mpi plan "
            f"--servers {job.servers} --model FOLDER\nand before there is one, for variables by name and shape:\n    "
            f"python -m fleet_mpi plan --servers {job.servers} w:1000x20 b:20\n")
    return "".join(parts)


def roles(job: Job, around: Allocation) -> str:
    """A table: every rank's role, host, label and device."""
    labels = [*job.server_labels, *job.worker_labels] or [""] * job.ranks
    devices = [""] * job.servers + list(job.devices) if job.devices else [""] * job.ranks
    hosts = job.hosts or ["as MPI spreads them" if len(around.nodes) > 1 else "this machine"] * job.ranks
    rows = [("rank", "role", "host", "label", "device")]
    rows += [(str(rank), "as the script says" if role == "rank" else f"{role} {number}", hosts[rank],
              labels[rank], devices[rank]) for rank, (role, number) in enumerate(job.roles)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() + "\n"
                   for row in rows)
