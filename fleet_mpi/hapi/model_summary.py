"""``paddle.summary``: the table of a network's layers, the shapes of their outputs and the numbers of parameters."""

import math

from fleet_mpi.errors import UsageError
from fleet_mpi.hapi.mode_programs import scratch
from fleet_mpi.hapi.progress import say
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import Program, default_main_program, program_guard
from fleet_mpi.program.graph.structures import flatten
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.input_spec import InputSpec

COLUMNS = "{:<28}{:<24}{:<24}{:>14}"


def summary(net, input_size, dtypes=None):
    """Print the table for inputs of these sizes; returns {"total_params": ..., "trainable_params": ...}."""
    specs = _specs(input_size, dtypes)
    lines = [COLUMNS.format("Layer (type)", "Input Shape", "Output Shape", "Param #")]
    lines += [COLUMNS.format(*row) for row in _rows(net, specs)]
    counts = [(math.prod(one.shape), one.trainable) for one in net.parameters()]
    total, trained = sum(count for count, _ in counts), sum(count for count, trainable in counts if trainable)
    width = len(lines[0])
    say("\n".join(["-" * width, lines[0], "=" * width, *lines[1:], "=" * width, f"Total params: {total:,}",
                   f"Trainable params: {trained:,}", f"Non-trainable params: {total - trained:,}", "-" * width]))
    return {"total_params": total, "trainable_params": trained}


def _specs(sizes, dtypes):
    """Descriptions of the inputs: from one shape, a list of shapes, or descriptions."""
    if isinstance(sizes, InputSpec):
        sizes = [sizes]
    if not isinstance(sizes, (list, tuple)) or not sizes:
        raise UsageError(f"summary: expected input_size, a shape such as (1, 1, 28, 28) or a list of them, got "
                         f"{sizes!r}")
    if isinstance(sizes[0], int) or sizes[0] is None:
        sizes = [sizes]
    kinds = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes or "float32"] * len(sizes)
    return [one if isinstance(one, InputSpec) else InputSpec(one, kind) for one, kind in zip(sizes, kinds)]


def _rows(net, specs):
    """(name, input shape, output shape, parameters) of every layer without sublayers, in the order of their calls."""
    rows, hooks = [], []
    for layer in net.sublayers(include_self=True):
        if not layer._sub_layers:
            hooks.append(layer.register_forward_post_hook(
                lambda layer, inputs, outputs: rows.append(_row(layer, inputs, outputs))))
    own = net.parameters()
    home = own[0].program if own else default_main_program()
    try:
        with unique_name.guard("summary_"), scratch(home), program_guard(home, Program()):
            net(*(InputSpec(one.shape, one.dtype).declare(f"input_{i}") for i, one in enumerate(specs)))
    finally:
        for hook in hooks:
            hook.remove()
    return rows


def _row(layer, inputs, outputs):
    count = sum(math.prod(one.shape) for one in layer.parameters())
    return f"{layer.full_name()} ({type(layer).__name__})", _shapes(inputs), _shapes(outputs), f"{count:,}"


def _shapes(values):
    found = [str(list(one.shape)) for one in flatten(list(values) if isinstance(values, (list, tuple)) else [values])
             if isinstance(one, Variable)]
    return " ".join(found)
