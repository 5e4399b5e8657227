"""Learning-rate schedules as they run: the ops of a schedule on numbers in float64, all in one call.

A program shows a schedule as ops on variables of shape [1] (``program/schedules.py``); a plan puts
``fused_schedule`` in their place (``program/schedule_fusion.py``). On the host the numbers are Python's: ten array
calls for one number would cost more than a small model's step. On a device they are arrays.
"""

import math
import operator
from types import SimpleNamespace

import numpy as np

from fleet_mpi.program.registry import op


def _power(base, exponent):
    return math.inf if base == 0 and exponent < 0 else base ** exponent


HOST = SimpleNamespace(floor=math.floor, ceil=math.ceil, exp=math.exp, cos=math.cos, power=_power, minimum=min,
                       maximum=max, logical_not=operator.not_, logical_and=lambda one, other: one and other)

# Functions of one value and of two, by op type; those given as a name differ between Python numbers and arrays.
ONE = {"cast": None, "assign": None, "floor": "floor", "ceil": "ceil", "exp": "exp", "cos": "cos",
       "logical_not": "logical_not"}
TWO = {"elementwise_add": operator.add, "elementwise_sub": operator.sub, "elementwise_mul": operator.mul,
       "elementwise_div": operator.truediv, "elementwise_pow": "power", "elementwise_min": "minimum",
       "elementwise_max": "maximum", "less_than": operator.lt, "equal": operator.eq, "logical_and": "logical_and"}


@op("fused_schedule", "X*", "Out*", attrs={"ops": ()})
class FusedSchedule:
    """The variables that a schedule's ops leave, from those that they find."""

    def infer(k):
        """One number each, of the variable's own type."""
        for index, name in enumerate(k.op.output("Out")):
            k.set("Out", [1], k.op.block._var_recursive(name)._dtype, lod=(), index=index)

    def run(k):
        """Bound to Python numbers on the host, to arrays elsewhere."""
        values, kept = {}, dict(zip(k.op.output("Out"), k.all("Out")))
        machine = Machine(values, k.xp, kept, k.attr("ops"))
        calls = machine.calls(k.attr("ops"))
        found = list(zip(k.op.input("X"), k.all("X")))
        as_number = _as_python if k.xp is np else _as_array

        def run():
            for name, array in found:
                values[name] = as_number(array)
            for call in calls:
                call()
            for name, array in kept.items():
                array[...] = values[name]
        return run


class Machine:
    """Makes the calls that compute the ops of a schedule on ``values``, {variable: number}."""

    def __init__(self, values, xp, kept, ops):
        self.values, self.xp, self.kept = values, xp, kept
        self.module = HOST if xp is np else xp
        touched = list(_touched(ops))
        self.reads = {name for reads, _ in touched for name in reads}
        self.writes = [name for _, writes in touched for name in writes]

    def calls(self, ops):
        """One call for each op that does something."""
        return [call for call in map(self.call, ops) if call is not None]

    def call(self, op):
        """The call of one op; a constant is entered at once."""
        if op.type == "conditional_block":
            return self._conditional(op)
        values, out, read = self.values, op.output("Out")[0], op.input_arg_names
        if op.type == "fill_constant":
            return self._constant(out, float(op.attrs["value"]))
        function = self._function(op.type, out)
        if op.type in TWO:
            one, other = read

            def run():
                values[out] = function(values[one], values[other])
            return run
        one, = read

        def run():
            values[out] = function(values[one])
        return run

    def _constant(self, out, value):
        if self.writes.count(out) == 1 and out not in self.kept:
            self.values[out] = value
            return None
        return lambda: self.values.__setitem__(out, value)

    def _function(self, type, out):
        known = TWO[type] if type in TWO else ONE[type]
        function = getattr(self.module, known) if isinstance(known, str) else known or _same
        if out not in self.kept or out not in self.reads:
            return function
        # Others read the variable as it is kept, so the ops of this schedule do too.
        dtype = self.kept[out].dtype
        rounded = (lambda value: dtype.type(value).item()) if self.xp is np else (
            lambda value: value.astype(dtype).astype("float64"))
        return lambda *given: rounded(function(*given))

    def _conditional(self, op):
        values, condition, where = self.values, op.input("Cond")[0], getattr(self.xp, "where", None)
        body = self.calls(op.block.program.blocks[op.attrs["sub_block"]].ops)
        if self.xp is np:
            def run():
                if values[condition]:
                    for call in body:
                        call()
            return run

        def run_on_device():
            before = {name: values[name] for name in op.output("Out")}
            for call in body:
                call()
            for name, old in before.items():
                values[name] = where(values[condition], values[name], old)
        return run_on_device


def _touched(ops):
    """(names read, names written) of every op, of those in conditional blocks too."""
    for one in ops:
        if one.type == "conditional_block":
            yield one.input("Cond"), ()
            yield from _touched(one.block.program.blocks[one.attrs["sub_block"]].ops)
        else:
            yield one.input_arg_names, one.output_arg_names


def _same(value):
    return value


def _as_python(array):
    return float(array.item())


def _as_array(array):
    return array.astype("float64")
