"""Local SGD: workers train by themselves, and average their parameters after some steps.

``local_sgd_is_due`` counts the step and says whether it is such a one; then the way that each parameter has gone since
its ``@SNAPSHOT`` is summed over all workers, and the mean of it gone from there. Programs are changed in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi.collective.buckets import Gradient
from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.operator import ROLE
from fleet_mpi.program.graph.program import program_guard
from fleet_mpi.program.graph.registry import GRAD
from fleet_mpi.program.graph.types import Role
from fleet_mpi.program.layers.control_flow import ConditionalBlock
from fleet_mpi.program.optimizers.base import persistable
from fleet_mpi.transpile.ops import communicating

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.program.graph.program import Program

SNAPSHOT = "@SNAPSHOT"
# What is sent. It ends like a gradient: it lies in the scope only to be sent from there, and is not saved.
WAY = "@WAY" + GRAD
PREFIX = "@LOCAL_SGD@"


class Schedule(NamedTuple):
    """After which steps parameters are averaged: each one up to ``begin``, then every ``every``-th.

    ``adapts``: ``every`` is the first number, which then follows the loss and the learning rate.
    """

    every: int = 1
    begin: int = 1
    adapts: bool = False


def append_averaging(program: Program, startup: Program, workers: int, schedule: Schedule,
                     parameters: Sequence[str]) -> list[Gradient]:
    """Add the ops for these parameters (names); returns what is summed, as Gradients."""
    if schedule.every < 1 or schedule.begin < 0:
        raise UsageError(f"local SGD: expected k_steps from 1 and begin_step from 0 up, got {schedule.every} and "
                         f"{schedule.begin}")
    block = program.global_block()
    with program_guard(program, startup), program._optimized_guard([]):
        counters = {slot: persistable(PREFIX + slot, [1], "int64", value)
                    for slot, value in (("Step", 0), ("Last", schedule.begin), ("Every", schedule.every))}
        due = block.create_var(name=PREFIX + "Due", shape=[1], dtype="bool", stop_gradient=True)
        _append(block, "local_sgd_is_due", counters,
                {"Due": due, "StepOut": counters["Step"], "LastOut": counters["Last"]},
                {"begin_step": schedule.begin})
        with ConditionalBlock([due], is_scalar_condition=True).block():
            ways = _append_mean(program, startup, workers, parameters)
        if schedule.adapts:
            _append_adaption(program, {"Due": due, **counters}, schedule)
    program.touch()
    startup.touch()
    return ways


def _append_mean(program, startup, workers, parameters):
    body, found = program.current_block(), []
    for name in parameters:
        param, way = program.global_block().var(name), _twin(program, name, WAY)
        body.append_op("elementwise_sub", {"X": [_snapshot(program, startup, name)], "Y": [param]}, {"Out": [way]})
        _append(body, "c_allreduce_sum", {"X": way}, {"Out": way}, {"ring_id": 0})
        found.append(Gradient(way.name, tuple(param.shape), np.dtype(param._dtype).name))
    names = [one.name for one in found]
    _append(body, "c_sync_comm_stream", {"X": names}, {"Out": names}, {"does": "sums"})
    for name in parameters:
        body.append_op("scale", {"X": [name + WAY]}, {"Out": [name + WAY]}, {"scale": 1.0 / workers})
        body.append_op("elementwise_sub", {"X": [name + SNAPSHOT], "Y": [name + WAY]}, {"Out": [name]})
        body.append_op("assign", {"X": [name]}, {"Out": [name + SNAPSHOT]})
    return found


def _append_adaption(program, counters, schedule):
    """Every after a step, from the workers' mean loss and the learning rate, against those of the first step."""
    first = {slot: persistable(PREFIX + slot, [1], "float32", 0.0) for slot in ("FirstLoss", "FirstRate")}
    inputs = {"Loss": _loss(program), "LearningRate": _rate(program), **counters, **first}
    _append(program.global_block(), "local_sgd_adapt", inputs,
            {"EveryOut": counters["Every"], "FirstLossOut": first["FirstLoss"], "FirstRateOut": first["FirstRate"]},
            {"begin_step": schedule.begin, "init_k_steps": schedule.every})


def _append(block, type, inputs, outputs, attrs):
    """Of the run-time's ops the table need not know yet."""
    block.ops.append(communicating(block, type, inputs, outputs, {ROLE: int(Role.Optimize), **attrs}))


def _snapshot(program, startup, name):
    """The parameter's value when it was averaged last; at first the one it starts with."""
    made, block = _twin(program, name, SNAPSHOT), startup.global_block()
    block.create_var(name=made.name, shape=made.shape, dtype=made.dtype, persistable=True)
    block.append_op("assign", {"X": [name]}, {"Out": [made.name]})
    return made


def _twin(program, name, suffix):
    block = program.global_block()
    return block.create_var(name=name + suffix, shape=block.var(name).shape, dtype=block.var(name).dtype,
                            persistable=True, stop_gradient=True)


def _loss(program):
    wanted = Role.Backward | Role.Loss
    return next(op.output_arg_names[0] for op in program.global_block().ops
                if op.role & wanted == wanted).removesuffix(GRAD)


def _rate(program):
    """The learning rate; that of a parameter with a factor of its own is ``<rate>@TIMES``."""
    names = [op.input("LearningRate")[0] for op in program.global_block().ops if op.input("LearningRate")]
    return min(names, key=len).partition("@TIMES")[0]
