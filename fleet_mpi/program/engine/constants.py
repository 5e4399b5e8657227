"""On a device, small constants are written once, when the plan is made: a launch less in every run for each.

They lie in memory that nothing else uses, where the arena's is shared from step to step. Knows ops and shapes.
"""

from fleet_mpi import arrays
from fleet_mpi.program.engine.layout import count_writes
from fleet_mpi.program.graph.registry import find

LARGEST_BYTES = 4096  # larger ones would cost memory that others could use


def set_apart(ops, feeds, frame):
    """The ops whose outputs are the same in all runs; gives these outputs memory of their own."""
    writes, found = count_writes(ops, feeds), []
    for op in ops:
        if find(op.type).traits.get("constant") and not any(op.input_arg_names) \
                and all(writes[name] == 1 and _may_stay(name, op, frame) for name in op.output_arg_names):
            for name in op.output_arg_names:
                meta = frame.metas[name]
                frame.values[name] = arrays.empty(meta.shape, meta.dtype, frame.xp)
            found.append(op)
    return found


def _may_stay(name, op, frame):
    var, meta = op.block.find_var(name), frame.metas.get(name)
    return (meta is not None and meta.kind == "dense" and meta.size * meta.dtype.itemsize <= LARGEST_BYTES
            and not (var is not None and var.persistable))
