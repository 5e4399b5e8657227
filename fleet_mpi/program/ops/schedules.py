"""Learning-rate schedules as they run: the ops of a schedule on numbers in float64, all in one call.

A program shows a schedule as ops on variables of shape [1] (``program/build/schedules.py``); a plan puts
``fused_schedule`` in their place (``program/engine/schedule_fusion.py``). On the host the numbers are Python's: ten
array calls for one number would cost more than a small model's step. On a device they are arrays.
"""

import operator

import numpy as np

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.schedule_formula import Formula, number_module

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
        formula = Formula(dict(zip(k.op.input("X"), k.all("X"))), _rates(k), k.xp)
        _enter(formula, k.attr("ops"))
        stores = [(array, formula.function(name)) for name, array in zip(k.op.output("Out"), k.all("Out"))]
        cells = [(formula.found[name], cell) for name, cell in formula.cells.items()]
        if k.xp is np and len(stores) == len(cells) == 1:
            return _of_one(*cells[0], *stores[0])

        def run():
            for array, cell in cells:
                cell[0] = formula.number(array)
            for array, value in stores:
                array[...] = value()
        return run


def _of_one(source, cell, target, value):
    """The call for the usual case, one counter and one rate."""
    def run():
        cell[0] = float(source.item())
        target[0] = value()
    return run


def _rates(k):
    """{name: array} of the outputs that other steps read: within the schedule too they are taken as they are kept."""
    return {name: array for name, array in zip(k.op.output("Out"), k.all("Out"))
            if k.op.block._var_recursive(name).persistable}


def _enter(formula, ops):
    """Let the formula know what each op makes, in order."""
    for one in ops:
        if one.type == "conditional_block":
            body = one.block.program.blocks[one.attrs["sub_block"]].ops
            formula.choose(one.input("Cond")[0], one.output("Out"), lambda branch, body=body: _enter(branch, body))
        elif one.type == "fill_constant":
            formula.constant(one.output("Out")[0], float(one.attrs["value"]))
        else:
            known = TWO[one.type] if one.type in TWO else ONE[one.type]
            function = getattr(number_module(formula.xp), known) if isinstance(known, str) else known
            formula.apply(one.output("Out")[0], function, one.input_arg_names)
