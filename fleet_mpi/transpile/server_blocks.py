"""The nested blocks of a server's program that are no updates: the schedule's, and those of distributed tables.

For reading only: a server runs the rate program of its distribution, and answers requests for rows by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.program.graph.operator import ROLE, Operator
from fleet_mpi.program.graph.types import Role, VarType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fleet_mpi.program.graph.block import Block
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.transpile.distribution import Distribution

COUNTER = "@LR_DECAY_COUNTER@"


def new_block(program: Program, parent: int = 0) -> Block:
    """A block inside another one, block 0 by default; layers go on where they were."""
    before = program.current_block_idx
    block = program._create_block(parent)
    program.current_block_idx = before
    return block


def rate_block(program: Program, distribution: Distribution) -> int:
    """The number of the block with the schedule's ops and those of its conditions; -1 where nothing is scheduled."""
    if distribution.rate_program is None:
        return -1
    for var in distribution.rate_program.global_block().vars.values():
        var.copy_to(program.global_block())
    block = new_block(program)
    _copy_ops(distribution.rate_program.global_block(), block)
    if not distribution.mode.has_rounds:
        _count_over_workers(block, distribution.workers)
    return block.idx


def _copy_ops(source, block):
    for op in source.ops:
        attrs = dict(op.attrs)
        if "sub_block" in attrs:
            inner, body = source.program.blocks[attrs["sub_block"]], new_block(block.program, block.idx)
            for var in inner.vars.values():
                var.copy_to(body)
            _copy_ops(inner, body)
            attrs["sub_block"] = body.idx
        block.ops.append(Operator(block, op.type, op.inputs, op.outputs, attrs, op.site))


def _count_over_workers(block, workers):
    """Show that every worker counts its own steps, and that the schedule sees their sum."""
    for place, op in enumerate(block.ops):
        if op.type == "increment" and op.output("Out") == [COUNTER]:
            parts = [f"{COUNTER}.trainer_{worker}" for worker in range(workers)]
            for part in parts:
                block.program.global_block().create_var(name=part, shape=[1], dtype="int64", stop_gradient=True)
            block.ops[place] = Operator(block, "sum", {"X": parts}, {"Out": [COUNTER]}, {ROLE: int(Role.LRSched)},
                                        op.site)


def table_blocks(program: Program, tables: Mapping[str, tuple[str, Sequence[int], str]]) -> Any:
    """Blocks for ``tables``, {table: (its part's name, shape, dtype)}: a lookup for each, one that saves all.

    Returns the attributes of the service that name them.
    """
    root, lookups = program.global_block(), []
    for table, (part, shape, dtype) in tables.items():
        if not root.has_var(table):
            # Under its own name too, as scripts of the time look for it; the values are the part's.
            root.create_var(name=table, shape=shape, dtype=dtype, type=VarType.SELECTED_ROWS, stop_gradient=True)
        lookups.append(f"{table}@PREFETCH:{_lookup_block(program, table, part, shape, dtype)}")
    attrs = {"prefetch_var_name_to_block_id": lookups}
    return {**attrs, "checkpint_block_id": _save_block(program, tables)} if tables else attrs


def _lookup_block(program, table, part, shape, dtype):
    block, root = new_block(program), program.global_block()
    ids = root.create_var(name=f"{table}@PREFETCH.ids", shape=[-1, 1], dtype="int64", stop_gradient=True)
    rows = root.create_var(name=f"{table}@PREFETCH", shape=[-1, *shape[1:]], dtype=dtype, stop_gradient=True)
    block.ops = [Operator(block, "lookup_sparse_table", {"W": [part], "Ids": [ids]}, {"Out": [rows]},
                          {ROLE: int(Role.RPC)})]
    return block.idx


def _save_block(program, tables):
    block = new_block(program)
    block.ops = [Operator(block, "save", {"X": [part]}, {}, {"file_path": "", ROLE: int(Role.RPC)})
                 for part, _, _ in tables.values()]
    return block.idx
