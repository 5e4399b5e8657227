"""Programs as bytes: one line that names the format and its version, then JSON in UTF-8.

Everything that runs is kept: blocks, variables, ops, attributes (arrays as base64), the seed. Python
objects that only matter while a program is built (regularizers, clips) are not.
"""

import base64
import json

import numpy as np

from fleet_mpi.errors import CheckpointDamaged, ProgramError
from fleet_mpi.program.block import Block
from fleet_mpi.program.operator import Operator
from fleet_mpi.program.program import Program
from fleet_mpi.program.variable import Parameter

MAGIC = b"fleet_mpi program "
VERSION = 1


def program_to_bytes(program, extra=None):
    """The program as bytes; ``extra`` is a small dictionary kept with it (feed and fetch names)."""
    document = {"seed": program.random_seed, "extra": extra or {},
                "blocks": [_block_to_data(block) for block in program.blocks]}
    try:
        text = json.dumps(document, default=_encode, separators=(",", ":"))
    except TypeError as error:
        raise ProgramError(f"this program cannot be saved: {error}") from None
    return MAGIC + str(VERSION).encode() + b"\n" + text.encode()


def program_from_bytes(data):
    """The program that ``program_to_bytes`` wrote."""
    return parse(data)[0]


def parse(data):
    """(program, extra) from bytes; damaged or foreign bytes are a CheckpointDamaged."""
    head, _, body = bytes(data).partition(b"\n")
    if not head.startswith(MAGIC):
        raise CheckpointDamaged("these bytes are no fleet_mpi program (a __model__ file of the original "
                                "is another format: build the network and load its parameter files)")
    if head[len(MAGIC):] != str(VERSION).encode():
        raise CheckpointDamaged(f"program format {head[len(MAGIC):]!r}: this version reads {VERSION}")
    try:
        document = json.loads(body.decode(), object_hook=_decode)
        return _program_from_data(document), document["extra"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointDamaged(f"the program's bytes are damaged: {type(error).__name__}: {error}") from None


def _block_to_data(block):
    return {"parent": block.parent_idx,
            "vars": [_var_to_data(var) for var in block.vars.values()],
            "ops": [[op.type, op.inputs, op.outputs, op.attrs, list(op.site)] for op in block.ops]}


def _var_to_data(var):
    fields = var.fields()
    fields.update(dtype=None if var._dtype is None else var._dtype.name, type=var.type.value, name=var.name)
    if isinstance(var, Parameter):
        fields["parameter"] = {"trainable": var.trainable, "optimize_attr": var.optimize_attr,
                               "need_clip": var.need_clip, "is_distributed": var.is_distributed}
    return fields


def _program_from_data(document):
    program = Program()
    program.random_seed = document["seed"]
    program.blocks = [Block(program, i, data["parent"]) for i, data in enumerate(document["blocks"])]
    for block, data in zip(program.blocks, document["blocks"]):
        for fields in data["vars"]:
            _enter_var(block, dict(fields))
        block.ops = [Operator(block, type, inputs, outputs, attrs, tuple(site))
                     for type, inputs, outputs, attrs, site in data["ops"]]
    return program


def _enter_var(block, fields):
    parameter = fields.pop("parameter", None)
    if parameter is None:
        block.create_var(**fields)
        return
    kept = {key: fields[key] for key in ("name", "shape", "dtype", "stop_gradient")}
    block.create_parameter(**kept, **parameter)


def _encode(value):
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"__array__": data, "dtype": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    raise TypeError(f"an attribute holds a {type(value).__name__}")


def _decode(data):
    if "__array__" not in data:
        return data
    raw = base64.b64decode(data["__array__"])
    return np.frombuffer(raw, data["dtype"]).reshape(data["shape"]).copy()
