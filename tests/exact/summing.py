"""One process that sums: what collective training must give, to the bit.

Every worker's batch is run from the same parameters, random ops as on that worker, the gradient of the loss times one
over the number of workers; gradients are summed in worker order (rows: put one behind the other); then the program's
own update ops run once. Nothing of the collective part is used.
"""

import numpy as np

from fleet_mpi.arrays import Rows
from fleet_mpi.program.graph.types import Role
from tests.exact.averaging import Averaging


class Summing(Averaging):
    """A cell's training in one process; ``nodes``, lists of workers: sums are made within each, then between them."""

    def __init__(self, cell, workers, nodes=None):
        super().__init__(cell, workers)
        self.nodes = nodes or [[number] for number in range(workers)]
        block = self.forward.global_block()
        place = next(index for index, op in enumerate(block.ops) if op.role & Role.Backward and op.role & Role.Loss)
        grad = block.ops[place].output_arg_names[0]
        block._insert_op(place + 1, "scale", {"X": [grad]}, {"Out": [grad]}, {"scale": 1.0 / workers})

    def _kept_rows(self, rows):
        return Rows(rows.ids.copy(), rows.values.copy(), rows.height)

    def _combined(self, parts):
        if isinstance(parts[0], Rows):
            return Rows(np.concatenate([one.ids for one in parts]), np.concatenate([one.values for one in parts]),
                        parts[0].height)
        return in_order([in_order([parts[number] for number in node]) for node in self.nodes])


def in_order(arrays):
    """Their sum, from the first to the last."""
    total = arrays[0].copy()
    for one in arrays[1:]:
        total += one
    return total


def summed(cell, workers, nodes=None):
    """The state that one process comes to."""
    one = Summing(cell, workers, nodes)
    one.run()
    return one.state()
