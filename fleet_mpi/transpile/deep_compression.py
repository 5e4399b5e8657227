"""Deep gradient compression among workers: its ops send the largest of what has gathered, not gradients.

The gradient that such an op reads is that of the mean over this worker's batch: it was scaled down with the loss and is
scaled up again, before weight decay is added. Before the ramp-up the op takes the scaled gradient and the term of
weight decay instead, each by itself. Programs are changed in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.errors import NotBuilt
from fleet_mpi.program.build.regularizers import REGULARIZED
from fleet_mpi.program.graph.operator import ROLE, ROLE_VAR
from fleet_mpi.program.graph.types import Role

if TYPE_CHECKING:
    from fleet_mpi.program.graph.program import Program

LOCAL, SHARED = "dgc_momentum", "c_dgc_momentum"
WHOLE = "@TIMES_WORKERS"


def compressed_gradients(program: Program) -> list[str]:
    """The names of the gradients that are not summed in buckets."""
    if any(op.type == LOCAL for block in program.blocks[1:] for op in block.ops):
        raise NotBuilt("deep gradient compression within GradientMergeOptimizer is not built: use one of the two")
    found = [op for op in program.global_block().ops if op.type == LOCAL]
    if any(op.input("SkipUpdate") for op in found):
        # Whether a gradient is finite would be known for this worker's alone: some would skip a step, others not.
        raise NotBuilt("deep gradient compression with loss scaling (amp) is not built: use one of the two")
    return [op.attrs[ROLE_VAR][1] for op in found]


def share_compressed(program: Program, workers: int) -> None:
    """Let the ops that compress speak with the other workers."""
    block = program.global_block()
    for op in [one for one in block.ops if one.type == LOCAL]:
        reader, slot, index = _first_reader(block, op)
        grad = reader.inputs[slot][index]
        block.create_var(name=grad + WHOLE, shape=block.var(grad).shape, dtype=block.var(grad).dtype,
                         stop_gradient=True)
        block._insert_op(block.ops.index(reader), "scale", {"X": [grad]}, {"Out": [grad + WHOLE]},
                         {"scale": float(workers), ROLE: int(Role.Optimize), ROLE_VAR: op.attrs[ROLE_VAR]})
        reader.inputs[slot][index] = grad + WHOLE
        op.type, op.attrs = SHARED, {**op.attrs, "nranks": workers}
        op.inputs["Share"] = [grad]
        if reader is not op:
            op.inputs["Decay"] = reader.input("X")[1:]
    program.touch()


def _first_reader(block, op):
    """(op, slot, index) that reads the gradient before decay is added: that sum, else the update itself."""
    grad = op.input("Grad")[0]
    if grad.endswith(REGULARIZED):
        return next(one for one in block.ops if grad in one.output_arg_names), "X", 0
    return op, "Grad", 0
