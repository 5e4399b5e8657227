"""An inference program as an ONNX model.

What the program is fed becomes inputs, what it gives outputs, its saved variables constants; sizes that the program
leaves open (the batch) stay open. Sequences: the offsets of a fed variable with a LoD are an input of their own,
``NAME.lod``, where an op needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, checker, helper

from fleet_mpi import __version__
from fleet_mpi.errors import UsageError
from fleet_mpi.export.onnx_graph import Graph, Refused, Step
from fleet_mpi.export.onnx_ops import CONVERTERS

if TYPE_CHECKING:
    from typing import BinaryIO

    from fleet_mpi.export.saved_model import SavedModel
    from fleet_mpi.program.graph.block import Block
    from fleet_mpi.program.graph.variable import Variable

# From 18 on all reductions take their axes alike; runtimes of 2023 and later read it.
OPSET, IR_VERSION = 18, 8
# Protocol buffers have no larger message; the graph itself is small.
LARGEST_BYTES = (1 << 31) - (1 << 24)

_BY_EXECUTOR = ("feed", "fetch")


def write_onnx(saved: SavedModel, stream: BinaryIO) -> str:
    """Write a saved model as ONNX; returns words on it."""
    model = onnx_model(saved)
    stream.write(model.SerializeToString())
    graph = model.graph
    inputs, outputs = (", ".join(map(_shown, infos)) for infos in (graph.input, graph.output))
    return f"{len(graph.node)} nodes from {inputs or 'nothing'} to {outputs}"


def onnx_model(saved: SavedModel) -> ModelProto:
    """The model; UsageError that names all ops that have no counterpart."""
    if saved.program is None:
        raise UsageError(f"export: {saved.path} holds variables without a program for inference, which ONNX needs: "
                         f"export what save_inference_model wrote, or use --to safetensors or --to npz")
    block = saved.program.global_block()
    graph = Graph({value.name: value.array for value in saved.values}, block.vars)
    for name in saved.feeds:
        graph.feed(name, bool(block.var(name).lod_level))
    _convert(saved, block, graph)
    outputs = [_output(saved, graph, block, name) for name in saved.fetches]
    _refuse_too_large(saved, graph)
    made = helper.make_graph(graph.nodes, "fleet_mpi", _inputs(graph, block, saved.feeds), outputs, graph.tensors())
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
                              producer_name="fleet_mpi", producer_version=__version__)
    checker.check_model(model)
    return model


def _convert(saved: SavedModel, block: Block, graph: Graph) -> None:
    """Convert all ops; one that is refused does not keep the others from being looked at."""
    ops = [op for op in block.ops if op.type not in _BY_EXECUTOR]
    unknown = sorted({op.type for op in ops if op.type not in CONVERTERS})
    if unknown:
        raise _refusal(saved, unknown)
    refused: dict[str, None] = {}   # in their order
    for op in ops:
        try:
            CONVERTERS[op.type](Step(graph, op))
            graph.pass_sequences(op)
        except Refused as error:
            refused[f"{op.type} ({error})"] = None
            for name in op.output_arg_names:
                graph.feed(name, False)   # only so that whoever reads it is looked at
    if refused:
        raise _refusal(saved, list(refused))


def _refusal(saved: SavedModel, names: list[str]) -> UsageError:
    return UsageError(f"export: {saved.path}: no counterpart in ONNX for the op{'s' * (len(names) > 1)} "
                      f"{', '.join(names)}; --to safetensors and --to npz export the variables")


def _refuse_too_large(saved: SavedModel, graph: Graph) -> None:
    size_bytes = sum(array.nbytes for array in graph.constants.values())
    if size_bytes > LARGEST_BYTES:
        raise UsageError(f"export: {saved.path}: the variables have {size_bytes:,} bytes, an ONNX file may have "
                         f"{LARGEST_BYTES:,}; --to safetensors has no such limit")


def _inputs(graph: Graph, block: Block, feeds: tuple[str, ...]) -> list[ValueInfoProto]:
    """What is fed. Only a single open first size is called N: two of that name would have to be equal."""
    variables = [block.var(name) for name in feeds]
    several = sum(var.shape[:1] == (-1,) for var in variables) + len(graph.offsets) > 1
    made = []
    for var in variables:
        names = [f"{var.name}_{axis}" if axis or several else "N" for axis in range(len(var.shape))]
        made.append(_info(var, var.name, [name if size < 0 else size for name, size in zip(names, var.shape)]))
    return made + [helper.make_tensor_value_info(name, TensorProto.INT64, [f"{name}_0"])
                   for name in graph.offsets.values()]


def _output(saved: SavedModel, graph: Graph, block: Block, name: str) -> ValueInfoProto:
    var = block.var(name)
    try:
        value = graph.value(name)
    except Refused:
        raise UsageError(f"export: {saved.path}: no counterpart in ONNX for {name!r}, which the model gives (an output "
                         f"of the op {var.op.type if var.op else 'feed'}); save it with other targets") from None
    if value != name:
        # Another name only where a variable that is fetched was an input, or saved, before an op wrote it.
        name = graph.name_for(name)
        graph.nodes.append(helper.make_node("Identity", [value], [name]))
    return _info(var, name, [None if size < 0 else size for size in var.shape])


def _info(var: Variable, name: str, sizes: list[int | str | None]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(var._dtype)), sizes)


def _shown(info: ValueInfoProto) -> str:
    """``x float32[N, 13]``."""
    tensor = info.type.tensor_type
    sizes = [size.dim_param or (str(size.dim_value) if size.HasField("dim_value") else "?")
             for size in tensor.shape.dim]
    return f"{info.name} {helper.tensor_dtype_to_np_dtype(tensor.elem_type)}[{', '.join(sizes)}]"

