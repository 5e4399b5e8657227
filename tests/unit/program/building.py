"""Small programs for the tests of the engine, made from ops directly."""

from contextlib import contextmanager

import numpy as np

from fleet_mpi.program.engine.scope import Scope, global_scope, scope_guard
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import Program, default_main_program, program_guard


@contextmanager
def from_scratch():
    """Within the block, default programs, names and scope are new; gives the programs (main, startup)."""
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard(), scope_guard(Scope()):
        yield main, startup


def data(name, shape, dtype="float32", **fields):
    """A fed variable."""
    fields.setdefault("stop_gradient", True)
    return default_main_program().global_block().create_var(name=name, shape=shape, dtype=dtype, is_data=True,
                                                            **fields)


def parameter(name, values):
    """A parameter that already has values in the scope."""
    values = np.asarray(values, "float32")
    param = default_main_program().global_block().create_parameter(name=name, shape=values.shape)
    global_scope().var(name).get_tensor().set(values)
    return param


def apply(type, inputs, out=None, slot="Out", **attrs):
    """The output of one more op."""
    block = default_main_program().current_block()
    var = block.create_var(name=out or unique_name.generate(type), dtype=None)
    block.append_op(type, inputs, {slot: var}, attrs)
    return var


def add(x, y, **attrs):
    return apply("elementwise_add", {"X": x, "Y": y}, **attrs)


def mul(x, y, **attrs):
    return apply("elementwise_mul", {"X": x, "Y": y}, **attrs)


def mean(x):
    return apply("mean", {"X": x})
