"""Lookups in tables that servers keep: each becomes part of a pull of rows, as few pulls as the program allows.

A lookup may move to anywhere between the op that makes its ids and the first that reads its rows. All that can meet
at one place become one op, ``distributed_lookup_table``: one request per server for all of them. Losses that choose
rows of a table themselves (nce, hsigmoid) stay: they fetch these rows, and keep them for their gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.program.graph.operator import ROLE, ROLE_VAR, SCOPE, Operator
from fleet_mpi.program.graph.program import outside_names, writes_to_outside
from fleet_mpi.program.graph.registry import FORWARD, GRAD, find, infer_at_build
from fleet_mpi.program.ops.class_rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet_mpi.program.graph.program import Program

LOOKUPS = ("lookup_table", "lookup_table_v2")
# The lookup of a table that grows: servers know its rows by the ids themselves.
GROWING = "sparse_table_lookup"


def replace_lookups(program: Program, tables: Iterable[str]) -> None:
    """Rewrite the lookups of these parameters in place, in nested blocks too. The tables' values are not read then."""
    tables = set(tables)
    for block in program.blocks:
        found = [(index, op) for index, op in enumerate(block.ops)
                 if op.type in (*LOOKUPS, GROWING) and tables.intersection(op.input("W"))]
        if found:
            _rewrite(block, found)
        for op in block.ops:
            if op.type == GROWING + "_grad" and tables.intersection(op.attrs[FORWARD]["W"]):
                _by_ids(op)
        _keep_chosen_rows(block, tables)
    for block in program.blocks:
        for op in block.ops:
            _forget(op, tables)
    program.touch()


def _keep_chosen_rows(block, tables):
    """Let ops that choose rows themselves put these into a variable, and their gradients read them there."""
    kept = {}
    for op in block.ops:
        slot = find(op.type).traits.get("by_rows")
        if slot and tables.intersection(op.input(slot)) and ROWS in find(op.type).outputs:
            first = op.output_arg_names[0]
            rows = block.create_var(name=f"{first}.rows", dtype=block._var_recursive(op.input(slot)[0]).dtype,
                                    stop_gradient=True)
            op.outputs[ROWS] = [rows.name]
            infer_at_build(op)
            kept[op.type + "_grad", first] = slot, rows.name
    for op in block.ops:
        slot, rows = kept.get((op.type, _first_forward_output(op)), (None, None))
        if rows is not None:
            op.inputs = {**{name: given for name, given in op.inputs.items() if name != slot}, ROWS: [rows]}


def _first_forward_output(op):
    """The first output of the op that this one is the gradient of."""
    forward = op.attrs.get(FORWARD)
    if forward is None:
        return None
    outputs = find(op.type.removesuffix("_grad")).outputs
    return next((forward[slot][0] for slot in outputs if forward.get(slot)), None)


def _by_ids(op):
    """Let the gradient of a growing table's lookup name ids instead of the rows they were given."""
    ids = op.attrs[FORWARD]["Ids"]
    op.type = _version(op.block, op, ids[0]) + "_grad"
    op.inputs = {"Ids": ids, "Out" + GRAD: op.input("Out" + GRAD)}
    op.attrs = {"is_sparse": True, "any_id": True, "padding_idx": _padding(op), FORWARD: op.attrs[FORWARD],
                **{name: op.attrs[name] for name in (ROLE, ROLE_VAR, SCOPE) if name in op.attrs}}


def _version(block, op, ids):
    """Which of the two lookups an op is: whether a last dimension of 1 gives way to the row."""
    if not op.type.startswith(GROWING):
        return op.type
    if op.attrs.get("version") == LOOKUPS[1]:
        return LOOKUPS[1]
    return LOOKUPS[0] if block._var_recursive(ids).shape[-1:] == (1,) else LOOKUPS[1]


def _padding(op):
    padding = op.attrs.get("padding_idx")
    return -1 if padding is None else int(padding)


def _forget(op, tables):
    """Control flow names what its body reads: no longer the tables that only lookups read."""
    if "sub_block" in op.attrs:
        unread = tables - outside_names(op.block.program, op)
        op.inputs = {slot: [name for name in names if name not in unread] for slot, names in op.inputs.items()}


def _rewrite(block, found):
    touched = [(_reads(op), _writes(op)) for op in block.ops]
    groups = _grouped([(*_range(touched, index, op), index, op) for index, op in found])
    gone = {index for index, _ in found}
    ops = []
    for index, op in enumerate([*block.ops, None]):
        ops += [_pull(block, group) for place, group in groups if place == index]
        if op is not None and index not in gone:
            ops.append(op)
    block.ops = ops


def _range(touched, index, op):
    """(first, last) place before which the lookup may stand: its ids are made, nobody has read its rows yet."""
    ids, out = set(op.input("Ids")), set(op.output("Out"))
    tied = [place for place, (reads, writes) in enumerate(touched)
            if place != index and (not ids.isdisjoint(writes) or not out.isdisjoint(reads | writes))]
    return (max((place + 1 for place in tied if place < index), default=0),
            min((place for place in tied if place > index), default=len(touched)))


def _reads(op):
    return {*op.input_arg_names, *outside_names(op.block.program, op)}


def _writes(op):
    inside = writes_to_outside(op.block.program.blocks[op.attrs["sub_block"]]) if "sub_block" in op.attrs else ()
    return {*op.output_arg_names, *inside}


def _grouped(ranged):
    """[(place, lookups in program order)]: the fewest places that meet every range, each as late as it may be."""
    groups = []
    for first, last, index, op in sorted(ranged, key=lambda one: one[1]):
        if not groups or first > groups[-1][0]:
            groups.append((last, []))
        groups[-1][1].append((index, op))
    return [(place, [op for _, op in sorted(members, key=lambda one: one[0])]) for place, members in groups]


def _pull(block, lookups):
    """The op that stands for some lookups."""
    attrs = {"table_names": [op.input("W")[0] for op in lookups],
             "padding_idx": [_padding(op) for op in lookups],
             "lookup_table_version": [_version(block, op, op.input("Ids")[0]) for op in lookups],
             ROLE: lookups[0].attrs.get(ROLE, 0)}
    return Operator(block, "distributed_lookup_table", {"Ids": [op.input("Ids")[0] for op in lookups]},
                    {"Outputs": [op.output("Out")[0] for op in lookups]}, attrs, lookups[0].site)
