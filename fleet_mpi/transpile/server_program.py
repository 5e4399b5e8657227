"""A server's programs: ``listen_and_serv`` with one block of update ops per shard, and the startup of its shards.

The main program is for reading (and names what the service needs); servers run the recipes, which are the same
updates. The startup program draws each shard as the part of the whole variable that it is, so that initial values
do not depend on the number of servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import settings
from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.program.graph.attachment import Attachment
from fleet_mpi.program.graph.operator import ROLE, Operator
from fleet_mpi.program.graph.program import Program
from fleet_mpi.program.graph.types import Role
from fleet_mpi.transpile.reading import reads_and_writes
from fleet_mpi.transpile.server_blocks import new_block, rate_block, table_blocks

if TYPE_CHECKING:
    from typing import Any

    from fleet_mpi.placement.shard import Shard
    from fleet_mpi.transpile.distribution import Distribution
    from fleet_mpi.transpile.reading import Updates

# The name's end of a variable that is made whole to be cut.
WHOLE = ".whole"


def server_program(distribution: Distribution, server: int, updates: Updates, endpoint: str) -> Program:
    """The program of server number ``server``."""
    program = Program()
    root = program.global_block()
    blocks, grad_to_block = [], []
    scheduled = rate_block(program, distribution)
    for shard in shards_of(distribution, server):
        block = new_block(program)
        block.ops = _update_ops(block, root, distribution, shard, updates)
        blocks.append(block.idx)
        grad_to_block.append(f"{distribution.gradients[shard.variable]}{_suffix(shard)}:{block.idx}")
    if not blocks:
        blocks.append(new_block(program).idx)  # as in the original: a server without shards has an empty one
    root.ops.append(Operator(root, "listen_and_serv", {"X": []}, {}, {
        "endpoint": endpoint, "pserver_id": server, "Fanin": distribution.workers,
        "distributed_mode": distribution.mode.number, "sync_mode": distribution.mode.has_rounds,
        "optimize_blocks": blocks, "grad_to_block_id": grad_to_block, "lr_decay_block_id": scheduled,
        "sparse_grad_to_param": [f"{distribution.gradients[name]}:{name}" for name in distribution.tables],
        "dc_asgd": distribution.mode.corrects_delay, **_thread_numbers(),
        **table_blocks(program, _tables(distribution, server, updates)), ROLE: int(Role.RPC)}))
    belongs_to(program, distribution, ps_endpoint=endpoint, server=server)
    program.touch()
    return program


def belongs_to(program: Program, distribution: Distribution, **more: Any) -> None:
    """Attach a program to its job; ``more`` are fields of the Attachment."""
    # Imported with the first job: a program that trains alone has no use for it.
    from fleet_mpi.transpile.vars_distributed import VarsDistributed
    program.attachment = Attachment(
        distribution=distribution, is_distributed=True, is_chief=not distribution.worker,
        endpoints=list(distribution.endpoints),
        distributed_lookup_table=next(iter(distributed_tables(distribution)), None),
        parameters_on_pservers=VarsDistributed(distribution, state_name), **more)


def distributed_tables(distribution: Distribution) -> list[str]:
    """The names of the tables that scripts asked to be distributed."""
    block = distribution.origin.global_block()
    return [name for name in distribution.tables if getattr(block._var_recursive(name), "is_distributed", False)]


def _tables(distribution, server, updates):
    """{distributed table: (name, shape, dtype) of its first part on this server, or of all its rows there}."""
    wanted, found = set(distributed_tables(distribution)), {}
    for shard in distribution.row_placement.of_server(server):
        if shard.variable in wanted:
            dtype = updates.block._var_recursive(shard.variable).dtype
            found.setdefault(shard.variable, (shard.variable + _suffix(shard), shard.shape, dtype))
    return {**found, **{name: (name, (ANY_HEIGHT, one.width), one.dtype) for name, one in distribution.growing.items()
                        if name in wanted}}


def _thread_numbers():
    """What the original's servers had threads for; shown, without effect here."""
    return {f"rpc_{what}_thread_num": settings.get(f"FLAGS_rpc_{what}_thread_num")
            for what in ("send", "get", "prefetch")}


def shards_of(distribution: Distribution, server: int) -> list[Shard]:
    """All shards of one server: dense ones, then rows."""
    return [*distribution.placement.of_server(server), *distribution.row_placement.of_server(server)]


def scope_name(shard: Shard) -> str:
    """The name of a parameter's part in its server's scope."""
    return shard.variable + _suffix(shard)


def state_name(name: str, shard: Shard, distribution: Distribution) -> str:
    """The name of a state's part: the state's own, unless the server has several parts of it."""
    by_rows = any(one.name == shard.variable for one in distribution.row_placement.variables)
    placement = distribution.row_placement if by_rows else distribution.placement
    here = sum(one.server == shard.server for one in placement.of_variable(shard.variable))
    return name if here == 1 else name + _suffix(shard)


def _suffix(shard):
    return f".block{shard.block}" if shard.is_cut else ""


def _update_ops(block, root, distribution, shard, updates):
    """The sum and mean over workers (synchronous), then the variable's own ops on the shard's names."""
    grad = distribution.gradients[shard.variable] + _suffix(shard)
    names, whole = _renamed(distribution, shard, updates), tuple(updates.block._var_recursive(shard.variable).shape)
    for old, new in names.items():
        var = updates.block.find_var(old)
        if var is not None and not root.has_var(new):
            shape = shard.shape if tuple(var.shape) == whole else var.shape
            root.create_var(name=new, shape=shape, dtype=var.dtype, persistable=var.persistable, type=var.type)
    ops, workers = [], distribution.workers
    if distribution.mode.has_rounds and workers > 1:
        parts = [f"{grad}.trainer_{worker}" for worker in range(workers)]
        for part in parts:
            root.create_var(name=part, shape=shard.shape, dtype=root.var(grad).dtype, type=root.var(grad).type,
                            persistable=True)
        ops = [Operator(block, "sum", {"X": parts}, {"Out": [grad]}, {ROLE: int(Role.Optimize)}),
               Operator(block, "scale", {"X": [grad]}, {"Out": [grad]},
                        {"scale": 1.0 / workers, ROLE: int(Role.Optimize)})]
    return ops + [_renamed_op(block, op, names) for op in updates.ops_of(shard.variable)]


def _renamed(distribution, shard, updates):
    states = {name for _, name in distribution.recipes[shard.variable].states}
    names = {shard.variable: shard.variable + _suffix(shard)}
    for op in updates.ops_of(shard.variable):
        for name in [*op.input_arg_names, *op.output_arg_names]:
            if name in states:
                names[name] = state_name(name, shard, distribution)
            elif name.startswith(distribution.gradients[shard.variable]):
                names[name] = name.replace(distribution.gradients[shard.variable],
                                           distribution.gradients[shard.variable] + _suffix(shard), 1)
            else:
                names.setdefault(name, name)
    return names


def _renamed_op(block, op, names):
    def renamed(slots):
        return {slot: [names.get(name, name) for name in held] for slot, held in slots.items()}
    return Operator(block, op.type, renamed(op.inputs), renamed(op.outputs), dict(op.attrs), op.site)


# ---------------------------------------------------------------------- startup

def server_startup(distribution: Distribution, server: int) -> Program:
    """The program that gives a server's shards and states their first values."""
    source, program = distribution.startup_source, Program()
    program.random_seed = source.random_seed
    starting = _Starting(source.global_block(), program.global_block())
    for shard in shards_of(distribution, server):
        starting.add(shard.variable, shard.variable + _suffix(shard), shard)
        for _, state in distribution.states_of(shard.variable):
            starting.add(state, state_name(state, shard, distribution), shard)
    for name in _rate_variables(distribution):
        starting.add_whole(name)
    starting.sort()
    program.touch()
    return program


def _rate_variables(distribution):
    """Rates, and what schedules keep from step to step."""
    names, program = set(distribution.rate_dtypes), distribution.rate_program
    if program is not None:
        names = names.union(*(reads_and_writes(program, op)[0] for op in program.global_block().ops))
    return sorted(names)


class _Starting:
    """A server's startup program in the making: ops of the whole program's, cut to shards."""

    def __init__(self, source, block):
        self.source, self.block = source, block
        self.makers, self.done = {}, set()
        self._places, self._place_of = [], {}
        for place, op in enumerate(source.ops):
            self._place_of[op] = place
            for name in op.output_arg_names:
                self.makers.setdefault(name, []).append(op)

    def sort(self):
        """Put the ops into the order of those that they come from: so what an op reads is made before it."""
        order = sorted(range(len(self.block.ops)), key=self._places.__getitem__)
        self.block.ops = [self.block.ops[index] for index in order]

    def add_whole(self, name):
        """Copy the ops that make a variable, under its own name, and all that lead to it."""
        if name in self.done:
            return
        self.done.add(name)
        for op in self.makers.get(name, ()):
            self._add_inputs(op)
            if not self.block.has_var(name):
                self.source.var(name).copy_to(self.block)
            self._append(op, op.outputs, dict(op.attrs))

    def add(self, name, new, shard):
        """Add the ops that draw one shard of a variable (or of a state that is as the variable)."""
        for op in self.makers.get(name, ()):
            self._add_inputs(op)
            var = self.source.var(name)
            is_one_number = int(np.prod(var.shape, dtype=np.int64)) == 1
            is_whole = is_one_number and shard.size != 1 or shard.name == shard.variable
            shape = list(var.shape) if is_whole else list(shard.shape)
            self.block.create_var(name=new, shape=shape, dtype=var.dtype, persistable=True, type=var.type)
            if is_whole:
                self._append(op, _outputs(op, name, new),
                             op.attrs if new == name else {**op.attrs, "random_name": name})
            else:
                made = _cut(self.block, op, var, name, new, shard)
                self.block.ops += made
                self._places += [self._place_of[op]] * len(made)

    def _add_inputs(self, op):
        for name in op.input_arg_names:
            self.add_whole(name)

    def _append(self, op, outputs, attrs):
        self.block.ops.append(Operator(self.block, op.type, op.inputs, outputs, attrs, op.site))
        self._places.append(self._place_of[op])


def _cut(block, op, var, name, new, shard):
    """The op for a part of the variable: drawn from its offset on; of other ops the whole, then a slice."""
    outputs = _outputs(op, name, new)
    if op.type == "fill_constant":
        return [Operator(block, op.type, {}, outputs, {**op.attrs, "shape": list(shard.shape)}, op.site)]
    if op.type in ("uniform_random", "gaussian_random", "truncated_gaussian_random"):
        attrs = {**op.attrs, "shape": list(shard.shape), "offset": shard.offset, "random_name": name}
        return [Operator(block, op.type, {}, outputs, attrs, op.site)]
    if op.type == "assign_value":
        values = np.asarray(op.attrs["values"]).reshape(-1)[shard.offset:shard.offset + shard.size]
        return [Operator(block, op.type, {}, outputs,
                         {**op.attrs, "shape": list(shard.shape), "values": values}, op.site)]
    whole = new + WHOLE
    # Persistable, as the variable is: what is drawn depends on it. A server that has its shard forgets the whole.
    block.create_var(name=whole, shape=var.shape, dtype=var.dtype, persistable=True)
    attrs = {"axes": [0], "starts": [shard.row_begin], "ends": [shard.row_begin + shard.rows]}
    return [Operator(block, op.type, op.inputs, _outputs(op, name, whole), {**op.attrs, "random_name": name}, op.site),
            Operator(block, "slice", {"Input": [whole]}, {"Out": [new]}, attrs)]


def _outputs(op, old, new):
    return {slot: [new if name == old else name for name in names] for slot, names in op.outputs.items()}
