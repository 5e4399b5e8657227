"""Programs that merge the gradients of several steps: what is summed over the workers is the merged gradient.

``GradientMergeOptimizer`` puts the update into a block that runs at every k-th step; the sums over workers go there
too, so that nothing is sent in the steps between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.program.graph.operator import ROLE, ROLE_VAR
from fleet_mpi.program.graph.types import Role
from fleet_mpi.transpile.ops import communicating

if TYPE_CHECKING:
    from fleet_mpi.program.graph.operator import Operator
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.transpile.collective import CollectivePlan

MERGED = "@GradientMerge"


def merged_gradients(program: Program) -> dict[str, Operator]:
    """{merged gradient, as the update reads it: the op that makes it}; empty where steps are not merged."""
    return {op.output("Out")[0]: op for block in program.blocks[1:] for op in block.ops
            if op.type == "scale" and op.input("X")[0].endswith(MERGED)}


def sum_merged(program: Program, plan: CollectivePlan) -> None:
    """Sum the merged gradients of all workers before the update reads them."""
    makers = merged_gradients(program)
    bodies = {id(op.block): op.block for op in makers.values()}
    for body in bodies.values():
        mine = [name for name, op in makers.items() if op.block is body]
        last = max(body.ops.index(makers[name]) for name in mine)
        made = [_sum(body, makers[name], name) for name in mine]
        made.append(communicating(body, "c_sync_comm_stream", {"X": mine}, {"Out": mine},
                                  {"does": "sums", ROLE: int(Role.Optimize)}))
        body.ops[last + 1:last + 1] = made
    program.touch()


def _sum(body, maker, name):
    attrs = {ROLE: int(Role.Optimize), ROLE_VAR: maker.attrs.get(ROLE_VAR, []), "ring_id": 0}
    return communicating(body, "c_allreduce_sum", {"X": [name]}, {"Out": [name]}, attrs)
