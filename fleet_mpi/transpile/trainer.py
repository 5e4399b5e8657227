"""The worker's programs: gradients go out by ``send``, parameters come back by ``recv``; updates are the servers'.

The ops are the original's, in its order; one of them, the first ``recv``, does the exchange (its
attribute ``does`` says so), the others show what is exchanged. Programs are changed in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.parameter_server.tables.base import KEYS
from fleet_mpi.program.graph.attachment import Attachment
from fleet_mpi.program.graph.operator import ROLE, ROLE_VAR
from fleet_mpi.program.graph.types import Role
from fleet_mpi.transpile.ops import communicating
from fleet_mpi.transpile.reading import reads_and_writes
from fleet_mpi.transpile.server_program import belongs_to

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet_mpi.program.graph.operator import Operator
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.transpile.distribution import Distribution

RATE = "recv_rate"   # the type of the op that asks servers for a learning rate


def rewrite_main(program: Program, distribution: Distribution, moved: Iterable[Operator]) -> None:
    """Let a training program push its gradients and pull its parameters."""
    block = program.global_block()
    at_update = next((index for index, op in enumerate(block.ops) if op in moved and not op.role & Role.LRSched),
                     len(block.ops))
    kept_before = [op for op in block.ops[:at_update] if op not in moved]
    kept_after = [op for op in block.ops[at_update:] if op not in moved]
    rates = _rates_of_servers(block, distribution)
    shown = rates & {name for op in kept_after for name in reads_and_writes(program, op)[0]}
    block.ops = [*_with_sends(block, kept_before, distribution), *_exchange(block, distribution),
                 *(communicating(block, RATE, {}, {"Out": [rate]}, {}) for rate in sorted(shown)), *kept_after]
    # The original has no op for the rates that servers compute, and scripts compare the list of ops.
    _belongs_to(program, distribution, moved, rates, made_when_fetched=dict.fromkeys(rates - shown, RATE))


def rewrite_main_for_geo(program: Program, distribution: Distribution, moved: Iterable[Operator]) -> None:
    """Let a program that updates its own parameters exchange what they moved, after each step.

    ``moved`` are the updates of tables that grow: the worker's own rows are not in its scope.
    """
    block = program.global_block()
    ops = _with_sends(block, [op for op in block.ops if op not in moved], distribution)
    sends = [communicating(block, "send", {"X": [name]}, {}, _where(distribution, shards))
             for name, shards in _by_variable(distribution)]
    block.ops = ops + sends + _receives(block, distribution)
    _belongs_to(program, distribution, moved)


def _belongs_to(program, distribution, moved, rates=frozenset(), **more):
    block = program.global_block()
    _drop_unused_variables(block, moved, rates.union(distribution.sent_rates))
    for rate in distribution.sent_rates:
        # So that the scope has it when it is sent, also where ops of the worker compute it.
        block._var_recursive(rate).persistable = True
    belongs_to(program, distribution, connect=distribution.connect, disconnect=distribution.disconnect, **more)
    distribution.program = program
    program.touch()


def rewrite_startup(startup: Program, distribution: Distribution, connects: bool = True) -> None:
    """Let a startup program fetch the parameters from the servers; the states of what they update begin there.

    Without ``connects`` it does so only if the worker is connected by then.
    """
    block = startup.global_block()
    # Which ids a table that grows has is for programs beside this one to ask, though none of it is here.
    states = {name for variable in distribution.handed_over
              for state, name in distribution.recipes[variable].states if state != KEYS}
    block.ops = [op for op in block.ops if not states.intersection(op.output_arg_names)]
    for name in states:
        block.vars.pop(name, None)
    tables = set(distribution.tables)
    for op in block.ops:
        if tables.intersection(op.output_arg_names):
            op.type, op.attrs = "fake_init", {"shape": op.attrs.get("shape", []), ROLE: op.attrs.get(ROLE, 0)}
    block.ops = block.ops + _receives(block, distribution, kind="initial")
    if connects:
        startup.attachment = Attachment(connect=distribution.connect)
    startup.touch()


def _with_sends(block, ops, distribution):
    """The ops, each that makes a gradient followed by the ``send`` of it."""
    by_gradient = {distribution.gradients[name]: (name, shards) for name, shards in _by_variable(distribution, True)
                   if name in distribution.handed_over}
    last = {name: index for index, op in enumerate(ops) for name in op.output_arg_names}
    found = []
    for index, op in enumerate(ops):
        found.append(op)
        for grad in op.output_arg_names:
            if grad in by_gradient and last[grad] == index:
                found += _send(block, grad, *by_gradient[grad], distribution)
    return found


def _send(block, grad, variable, shards, distribution):
    var = block.var(grad)
    is_rows = variable in distribution.tables
    if not is_rows:
        # So that its memory is the scope's: there it lies in the flat array that is sent.
        var.persistable = True
    where = {**_where(distribution, shards), ROLE_VAR: [variable, grad], "table": variable if is_rows else ""}
    if len(shards) <= 1:
        return [communicating(block, "send", {"X": [grad]}, {}, where)]
    names = [f"{grad}.block{shard.block}" for shard in shards]
    for name, shard in zip(names, shards):
        block.create_var(name=name, shape=shard.shape, dtype=var.dtype, type=var.type, stop_gradient=True)
    split = {"shapes": [list(shard.shape) for shard in shards],
             "height_sections" if is_rows else "sections": [shard.rows for shard in shards]}
    # Rows are taken from the gradient as it is: how they are split is there to be read.
    return [communicating(block, _split_of(block, variable, is_rows), {"X": [grad]}, {"Out": names}, split),
            communicating(block, "send", {"X": [grad] if is_rows else names}, {}, where)]


def _split_of(block, variable, is_rows):
    """The op that shows how a gradient is cut: by position, by rows, or by the ids of a distributed table."""
    if not is_rows:
        return "split_byref"
    return "split_ids" if getattr(block._var_recursive(variable), "is_distributed", False) else "split_selected_rows"


def _exchange(block, distribution):
    ops = _receives(block, distribution)
    if distribution.mode.has_rounds:
        ops.insert(0, communicating(block, "send_barrier", {}, {}, {"endpoints": distribution.endpoints}))
    return ops


def _receives(block, distribution, kind="exchange"):
    """One ``recv`` per variable, the first of which does the work; a barrier if all wait; the joining of blocks."""
    receives, concats = [], []
    for name, shards in _by_variable(distribution):
        sliced = len(shards) > 1
        outs = [f"{name}.block{shard.block}" for shard in shards] if sliced else [name]
        attrs = {**_where(distribution, shards), "param": name, "does": "" if receives else kind,
                 "shapes": [list(shard.shape) for shard in shards], "rows": [shard.row_begin for shard in shards]}
        for out, shard in zip(outs, shards):
            if sliced:
                block.create_var(name=out, shape=shard.shape, dtype=block.var(name).dtype, stop_gradient=True)
        receives.append(communicating(block, "recv", {}, {"Out": outs}, attrs))
        if sliced:
            concats.append(communicating(block, "concat", {"X": outs}, {"Out": [name]}, {"axis": 0}))
    if not receives:
        receives.append(communicating(block, "recv", {}, {"Out": []},
                                      {"does": kind, "shapes": [], "rows": [], "param": ""}))
    if kind == "initial" or distribution.mode.has_rounds:
        receives.append(communicating(block, "fetch_barrier", {}, {}, {"endpoints": distribution.endpoints}))
    return [*receives, *concats]


def _rates_of_servers(block, distribution):
    """The rates that servers compute; a worker asks for one where a script fetches it, or an op reads it."""
    rates = set(distribution.rate_dtypes) - set(distribution.fed_rates)
    for rate in rates:
        # Persistable it would be the worker's own, at its first value for ever.
        block._var_recursive(rate).persistable = False
    return rates


def _where(distribution, shards):
    """Of a table that grows, which has no shards: every server has rows."""
    return {"epmap": [distribution.endpoints[shard.server] for shard in shards] or distribution.endpoints,
            "trainer_id": distribution.worker or 0}


def _by_variable(distribution, with_rows=False):
    """(variable, its shards) in placement order; tables that grow have none, and come last."""
    placements = [distribution.placement, distribution.row_placement][:1 + with_rows]
    placed = [(variable.name, placement.of_variable(variable.name))
              for placement in placements for variable in placement.variables]
    return [*placed, *((name, ()) for name in distribution.growing if with_rows)]


def _drop_unused_variables(block, moved, rates):
    """Variables that only the servers' ops had, states among them, are gone from the worker's program."""
    used = {name for inner in block.program.blocks for op in inner.ops
            for name in [*op.input_arg_names, *op.output_arg_names]}.union(rates)
    for op in moved:
        for name in {*op.input_arg_names, *op.output_arg_names} - used:
            var = block.vars.get(name)
            if var is not None and not var.is_data and name not in op.input("LearningRate"):
                block.vars.pop(name)
