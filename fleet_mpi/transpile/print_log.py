"""What ``print_log = True`` tells of a transpiler: every variable's blocks and servers, the ops that come and go.

Log lines at level info. Reads programs and distributions, changes nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleet_mpi import notices
from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.placement.variables import itemsize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleet_mpi.program.graph.operator import Operator
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig
    from fleet_mpi.transpile.distribution import Distribution


def log_placement(config: DistributeTranspilerConfig, distribution: Distribution) -> None:
    """Each variable, its blocks, their sizes and servers; one process says it for the job."""
    if config.print_log and notices.speaks_for_job():
        for line in placement_lines(distribution):
            _say(line)


def placement_lines(distribution: Distribution) -> Iterator[str]:
    """The lines of ``log_placement``, the whole in one sentence first."""
    placements = (distribution.placement, distribution.row_placement)
    found = [(variable, placement.of_variable(variable.name), " by rows" if placement is placements[1] else "")
             for placement in placements for variable in placement.variables]
    count = sum(len(shards) for _, shards, _ in found)
    yield (f"mode {distribution.mode.name}, {distribution.workers} worker(s), {len(distribution.endpoints)} server(s), "
           f"{len(found)} variable(s) in {count} block(s)")
    for variable, shards, how in found:
        yield f"{variable.name} {variable.dtype} {list(variable.shape)}: {len(shards)} block(s){how}"
        for shard in shards:
            yield (f"  {shard.name} {list(shard.shape)}, from row {shard.row_begin}, {shard.size:,} elements, "
                   f"{shard.size * itemsize(variable.dtype):,} bytes: server {shard.server} "
                   f"({distribution.endpoints[shard.server]})")
    for name, one in distribution.growing.items():
        yield f"{name} {one.dtype} {[ANY_HEIGHT, one.width]}: rows for any id, by its hash on every server"


@contextmanager
def logged_ops(wanted: bool, program: Program, startup: Program) -> Iterator[None]:
    """Log which ops the block adds to two programs, and which it takes from them."""
    before = {name: [(op, op.type) for op in one.global_block().ops] if wanted else []
              for name, one in (("main program", program), ("startup program", startup))}
    yield
    if wanted:
        for (name, known), one in zip(before.items(), (program, startup)):
            for line in difference(known, one.global_block().ops):
                _say(f"{name}: {line}")


def difference(before: Sequence[tuple[Operator, str]], after: Sequence[Operator]) -> Iterator[str]:
    """What changed between two lists of ops, a line each; ``before``: (op, its type) pairs."""
    known, left = {id(op): kind for op, kind in before}, {id(op) for op in after}
    yield from (f"takes out {_call(op)}" for op, _ in before if id(op) not in left)
    for op in after:
        if id(op) not in known:
            yield f"adds {_call(op)}"
        elif known[id(op)] != op.type:
            yield f"makes {known[id(op)]} {_call(op)}"


def log_server(config: DistributeTranspilerConfig, program: Program, server: int) -> None:
    """The ops of a server's program, block by block."""
    if config.print_log:
        for block in program.blocks:
            for op in block.ops:
                _say(f"server {server}, block {block.idx}: {_call(op)}")


def _call(op):
    made = f" -> {', '.join(op.output_arg_names)}" if op.output_arg_names else ""
    return f"{op.type}({', '.join(op.input_arg_names)}){made}"


def _say(line):
    notices.log().info("transpiler: %s", line)
