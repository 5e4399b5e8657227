"""A training program for many equal workers: each gradient is summed over all of them before it is used.

The ops are the original's: the gradient of the loss is scaled by one over the number of workers, ``c_allreduce_sum``
follows the op that makes a gradient, ``c_sync_comm_stream`` comes before the updates. In the startup program
``c_broadcast`` lets all workers begin with worker 0's values. Programs are changed in place. What else is sent instead
of gradients, or otherwise, is in ``local_sgd``, ``gradient_merge`` and ``deep_compression``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import __version__
from fleet_mpi.collective.buckets import Gradient, fuse
from fleet_mpi.collective.choosing import Options
from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.graph.attachment import Attachment
from fleet_mpi.program.graph.operator import ROLE, ROLE_VAR
from fleet_mpi.program.graph.registry import GRAD, grad_name
from fleet_mpi.program.graph.runners import Runner
from fleet_mpi.program.graph.types import Role, VarType
from fleet_mpi.transpile.deep_compression import compressed_gradients, share_compressed
from fleet_mpi.transpile.gradient_merge import merged_gradients, sum_merged
from fleet_mpi.transpile.local_sgd import Schedule, append_averaging
from fleet_mpi.transpile.lookups import GROWING
from fleet_mpi.transpile.ops import backward_digest, communicating, update_texts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any

    from fleet_mpi.program.engine.scope import Scope
    from fleet_mpi.program.graph.operator import Operator
    from fleet_mpi.program.graph.program import Program

HALF = "fp16_allreduce"  # the note of an optimizer in its program (``_fleet_opt``) that gradients travel as float16


_connect = Runner("fleet_mpi.runtime.collective_sessions", "connect")


@dataclass
class CollectivePlan:
    """What the workers of a collective job do together with one program: plain data."""

    workers: int
    worker: int
    gradients: list                    # Gradient of each dense one, in the order they are made
    rows: list                         # names of the row gradients
    buckets: list
    options: Options = field(default_factory=Options)
    digest: str = ""                   # of the backward pass
    compressed: list = field(default_factory=list)  # names of the gradients whose updates send what they choose
    strategy: dict = field(default_factory=dict)    # what else all workers must do alike, in words by name
    updates: dict = field(default_factory=dict)     # the optimizer's ops, in words by name
    first_values: list = field(default_factory=list)  # names of what worker 0 gives the others at the start

    def connect(self, scope: Scope, xp: ModuleType) -> Any:
        """Of the attachment of the startup program."""
        return _connect(self, scope).take_turn

    def connect_to_train(self, scope: Scope, xp: ModuleType) -> Any:
        """Of the attachment of the worker's program: its gradients lie in buckets."""
        session = _connect(self, scope)
        session.install(xp)
        return session.begin_step

    def sum_instead(self, gradients: Iterable[Gradient]) -> None:
        """Let these be what is summed in buckets, in this order."""
        self.gradients, self.rows = gradients, []
        self.buckets = fuse(gradients, self.options.fuse_mb, self.options.last_mb)

    def fingerprint(self) -> dict[str, Any]:
        """What must be the same on all ranks, by name."""
        return {"fleet_mpi": __version__, "workers": self.workers,
                "option": {name: str(value) for name, value in asdict(self.options).items()},
                "gradients": {one.name: f"{one.dtype} {list(one.shape)}" for one in self.gradients},
                "row gradients": {name: "by rows" for name in self.rows},
                "compressed gradients": {name: "compressed" for name in self.compressed}, "strategy": self.strategy,
                "backward pass": self.digest, "update": self.updates,
                "first value": {name: "taken from worker 0" for name in self.first_values}}


def plan_of(program: Program, workers: int, worker: int, options: Options | None = None) -> CollectivePlan:
    """The plan of a minimised program; nothing is changed yet."""
    options = options or Options()
    if (program._fleet_opt or {}).get(HALF):
        options = replace(options, half=True)
    if program._is_distributed:
        raise UsageError("this program was transpiled before: minimize and transpile a program once")
    _refuse_growing(program, workers)
    makers = gradient_makers(program)
    if not makers:
        raise UsageError("no gradient of a parameter was found in the program: call minimize before transpiling")
    compressed = compressed_gradients(program)
    made = merged_gradients(program) or {name: op for name, op in makers.items() if name not in compressed}
    in_order = sorted(made, key=lambda name: made[name].block.ops.index(made[name]))
    variables = {name: made[name].block._var_recursive(name) for name in in_order}
    rows = [name for name in in_order if variables[name].type == VarType.SELECTED_ROWS]
    dense = [Gradient(name, tuple(variables[name].shape), np.dtype(variables[name]._dtype).name)
             for name in in_order if name not in rows]
    return CollectivePlan(workers, worker, dense, rows, fuse(dense, options.fuse_mb, options.last_mb), options,
                          backward_digest(program), compressed, updates=update_texts(program))


def _refuse_growing(program, workers):
    """NotBuilt where equal workers would each give the ids of a table that grows rows of their own."""
    for op in (op for block in program.blocks for op in block.ops if op.type == GROWING and workers > 1):
        raise NotBuilt(f"{op}: equal workers keep whole copies of all tables, and have none with a row for any id: "
                       f"train with servers, or give embedding() a height")


def gradient_makers(program: Program) -> dict[str, Operator]:
    """{gradient of a trainable parameter: the last op of the backward pass that writes it}."""
    wanted = {grad_name(param.name) for param in program.all_parameters() if param.trainable}
    return {name: op for op in program.global_block().ops if op.role & Role.Backward
            for name in op.output_arg_names if name in wanted}


def rewrite(program: Program, startup: Program, plan: CollectivePlan) -> None:
    """Make a program and its startup program those of one worker among others."""
    if plan.options.mean:
        _scale_loss(program, plan.workers)
    if merged_gradients(program):
        sum_merged(program, plan)
    else:
        _sum_gradients(program, plan)
        share_compressed(program, plan.workers)
    _belongs_to(program, plan)
    rewrite_startup(startup, program, plan)


def rewrite_for_local_sgd(program: Program, startup: Program, plan: CollectivePlan,
                          schedule: Schedule = Schedule()) -> None:
    """Make them those of a worker that trains by itself and averages its parameters after the steps of a schedule."""
    if plan.compressed or merged_gradients(program):
        raise UsageError("local SGD sends no gradients: it goes neither with deep gradient compression nor with merged "
                         "gradients")
    makers = gradient_makers(program)
    in_order = sorted(makers, key=lambda name: makers[name].idx)
    plan.strategy["local SGD"] = str(schedule)
    plan.sum_instead(append_averaging(program, startup, plan.workers, schedule,
                                      [name.removesuffix(GRAD) for name in in_order]))
    _belongs_to(program, plan)
    rewrite_startup(startup, program, plan)


def rewrite_startup(startup: Program, program: Program, plan: CollectivePlan) -> None:
    """Let all workers begin with worker 0's values of what the startup program makes."""
    block = startup.global_block()
    made = {name for op in block.ops for name in op.output_arg_names}
    names = plan.first_values = sorted(name for name in made if block.vars[name].persistable)
    for name in names:
        block.ops.append(communicating(block, "c_broadcast", {"X": [name]}, {"Out": [name]}, {"root": 0, "ring_id": 0}))
    block.ops.append(communicating(block, "c_sync_comm_stream", {"X": names}, {"Out": names}, {"does": "broadcast"}))
    startup.attachment = Attachment(connect=plan.connect)
    startup.touch()


def _scale_loss(program, workers):
    """The first gradient, that of the loss, is one over the number of workers: then sums are means."""
    block = program.global_block()
    for index, op in enumerate(block.ops):
        if op.role & Role.Backward and op.role & Role.Loss:
            grad = op.output_arg_names[0]
            block._insert_op(index + 1, "scale", {"X": [grad]}, {"Out": [grad]},
                             {"scale": 1.0 / workers, ROLE: int(Role.Backward)})
            return
    raise UsageError("the gradient of the loss was not found in the program: call minimize before transpiling")


def _sum_gradients(program, plan):
    block, makers = program.global_block(), gradient_makers(program)
    param_of = {grad_name(param.name): param.name for param in program.all_parameters()}
    by_op = {}
    for name, op in makers.items():
        if name not in plan.compressed:
            by_op.setdefault(id(op), []).append(name)
    found = []
    for op in block.ops:
        found.append(op)
        for name in by_op.get(id(op), ()):
            attrs = {ROLE: int(Role.Backward), ROLE_VAR: [param_of[name], name], "ring_id": 0}
            kind = "c_allgather_rows" if name in plan.rows else "c_allreduce_sum"
            if kind == "c_allreduce_sum":
                # So that its memory is the scope's: there it lies in its bucket.
                block._var_recursive(name).persistable = True
            found.append(communicating(block, kind, {"X": [name]}, {"Out": [name]}, attrs))
    names = [one.name for one in plan.gradients]
    last = max((index for index, op in enumerate(found) if op.type in ("c_allgather_rows", "c_allreduce_sum")),
               default=None)
    if last is not None:
        found.insert(last + 1,
                     communicating(block, "c_sync_comm_stream", {"X": names}, {"Out": names}, {"does": "sums"}))
    block.ops = found


def _belongs_to(program, plan):
    program.attachment = Attachment(connect=plan.connect_to_train, for_training=True, is_distributed=True)
    program.touch()
