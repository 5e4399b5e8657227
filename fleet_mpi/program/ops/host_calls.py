"""Ops that leave the program for the host: print a variable, call a Python function."""

import sys

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.engine.scope import Tensor
from fleet_mpi.program.graph.registry import Meta, op

# Functions that py_func ops of this process call, by number; a program's attributes hold no functions.
FUNCTIONS = []

PRINT = {"first_n": -1, "message": "", "summarize": 20, "print_tensor_name": True, "print_tensor_type": True,
         "print_tensor_shape": True, "print_tensor_lod": True, "print_phase": "BOTH", "is_forward": True}


@op("print", "In", attrs=PRINT, view={"Out": "In"}, effect=True)
class Print:
    """The same, described on stderr the first ``first_n`` times (-1: always)."""

    def infer(k):
        k.set("Out", k.shape("In"))

    def run(k):
        """Describe, then copy unless a view serves."""
        value, left = k["In"], [k.attr("first_n")]
        copy = k.view("Out", value)
        wanted = ("BOTH", "FORWARD" if k.attr("is_forward") else "BACKWARD")

        def run():
            if left[0] != 0 and k.attr("print_phase").upper() in wanted:
                left[0] -= 1
                sys.stderr.write(described(k, value))
            if copy is not None:
                copy()
        return run

    def make_grad(walk, op, grads):
        """The gradient, described too."""
        part = walk.contribution(op.input("In")[0])
        if part:
            attrs = {name: op.attrs[name] for name in PRINT}
            made = walk.block.append_op("print", {"In": grads["Out"]}, {"Out": [part]}, {**attrs, "is_forward": False})
            walk.add(op.input("In")[0], part, made)


def described(k, value):
    """A variable in a few lines."""
    host, count = arrays.to_host(value), k.attr("summarize")
    lines = [k.attr("message")] if k.attr("message") else []
    if k.attr("print_tensor_name"):
        lines.append(f"variable: {k.name('In')}")
    if k.attr("print_tensor_lod") and k.lod("In"):
        lines.append(f"  lod: {[list(level) for level in k.lod('In')]}")
    if k.attr("print_tensor_shape"):
        lines.append(f"  shape: {list(host.shape)}")
    if k.attr("print_tensor_type"):
        lines.append(f"  dtype: {host.dtype}")
    shown = host.reshape(-1)[:count if count >= 0 else None]
    lines.append(f"  data: {shown.tolist()}" + (" ..." if len(shown) < host.size else ""))
    return "\n".join(lines) + "\n"


def number_of(function):
    """The number under which ops find a function."""
    if not callable(function):
        raise UsageError(f"py_func: expected a function, got {type(function).__name__}")
    FUNCTIONS.append(function)
    return len(FUNCTIONS) - 1


@op("py_func", "X*", "Out*", attrs={"forward_callable_id": -1, "backward_callable_id": -1,
                                    "backward_skip_vars": []}, effect=True, dynamic=True)
class PyFunc:
    """What a Python function of the host makes of the inputs."""

    def infer(k):
        """As the outputs were declared."""

    def run(k):
        """Call with tensors on the host; results take the declared element types."""
        number = k.attr("forward_callable_id")
        if not 0 <= number < len(FUNCTIONS):
            k.fail("its Python function is not in this process: a program read from a file cannot call it")
        function = FUNCTIONS[number]

        def run():
            given = [Tensor(arrays.to_host(one).copy(), k.lod("X", i)) for i, one in enumerate(k.all("X"))]
            put_results(k, function(*given))
        return run

    def make_grad(walk, op, grads):
        """The gradients that the backward function makes of inputs, outputs and the outputs' gradients."""
        if op.attrs["backward_callable_id"] < 0:
            return
        parts = [walk.contribution(name) for name in op.input("X")]
        skipped = set(op.attrs["backward_skip_vars"])
        reads = [walk.value(op, name) for name in op.input("X") + op.output("Out") if name not in skipped]
        if not any(parts) or not all(grads["Out"]):
            return
        for name, part in zip(op.input("X"), parts):
            if part:
                var = walk.block._var_recursive(name)
                walk.block.create_var(name=part, shape=var.shape, dtype=var._dtype)
        made = walk.block.append_op("py_func", {"X": reads + grads["Out"]}, {"Out": parts},
                                    {"forward_callable_id": op.attrs["backward_callable_id"]})
        for name, part in zip(op.input("X"), parts):
            if part:
                walk.add(name, part, made)


def put_results(k, results):
    """Let the outputs be what the function returned."""
    results = list(results) if isinstance(results, (list, tuple)) else [] if results is None else [results]
    if len(results) != k.count("Out"):
        raise ProgramError(f"{k.op}: the function returned {len(results)} value(s) for {k.count('Out')} output(s)")
    for i, result in enumerate(results):
        name = k.name("Out", i)
        if name:
            var = k.op.block._var_recursive(name)
            lod = result.lod_offsets if isinstance(result, Tensor) else ()
            host = np.array(result, dtype=var._dtype)
            k.put("Out", arrays.to_module(host, k.xp), i, Meta(host.shape, host.dtype, lod))
