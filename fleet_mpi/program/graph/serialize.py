"""Programs as bytes: one line that names the format, its version and a checksum of the rest, then JSON in UTF-8.

Everything that runs is kept: blocks, variables, ops, attributes (arrays as base64), the seed. Python
objects that only matter while a program is built (regularizers, clips) are not.
"""

import base64
import json
import zlib

import numpy as np

from fleet_mpi.errors import CheckpointDamaged, ProgramError
from fleet_mpi.program.graph import registry
from fleet_mpi.program.graph.block import Block
from fleet_mpi.program.graph.operator import Operator
from fleet_mpi.program.graph.program import Program
from fleet_mpi.program.graph.variable import Parameter

MAGIC = b"fleet_mpi program "
VERSION = 2
_WITHOUT_CHECKSUM = b"1"


def program_to_bytes(program, extra=None):
    """The program as bytes; ``extra`` is a small dictionary kept with it (feed and fetch names)."""
    document = {"seed": program.random_seed, "extra": extra or {},
                "blocks": [_block_to_data(block) for block in program.blocks]}
    try:
        body = json.dumps(document, default=_encode, separators=(",", ":")).encode()
    except TypeError as error:
        raise ProgramError(f"this program cannot be saved: {error}") from None
    return MAGIC + _version_and_checksum(body) + b"\n" + body


def _version_and_checksum(body):
    return f"{VERSION} {zlib.crc32(body):08x}".encode()


def program_from_bytes(data):
    """The program that ``program_to_bytes`` wrote."""
    return parse(data)[0]


def parse(data, where="the program's bytes"):
    """(program, extra) from bytes; damaged or foreign bytes are a CheckpointDamaged that says where they come from."""
    head, _, body = bytes(data).partition(b"\n")
    if not head.startswith(MAGIC):
        raise CheckpointDamaged(f"{where}: this is no fleet_mpi program (a __model__ file of the original "
                                "is another format: build the network and load its parameter files)")
    version = head[len(MAGIC):]
    if version.partition(b" ")[0] not in (_WITHOUT_CHECKSUM, str(VERSION).encode()):
        raise CheckpointDamaged(f"{where}: program format {version[:20]!r}: this version reads {VERSION}")
    if version not in (_WITHOUT_CHECKSUM, _version_and_checksum(body)):
        raise CheckpointDamaged(f"{where}: damaged, the checksum differs; take an older copy")
    try:
        document = json.loads(body.decode(), object_hook=_decode)
        return _program_from_data(document), dict(document["extra"])
    # Whatever it is that a foreign or damaged document leads to.
    except Exception as error:
        raise CheckpointDamaged(f"{where}: damaged: {type(error).__name__}: {error}") from None


def _block_to_data(block):
    forward = {"forward": block.forward_block_idx} if block.forward_block_idx >= 0 else {}
    return {"parent": block.parent_idx, **forward,
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
    program.blocks = [Block(program, i, _parent(i, data["parent"]), _parent(i, data.get("forward", -1)))
                      for i, data in enumerate(document["blocks"])]
    for block, data in zip(program.blocks, document["blocks"]):
        for fields in data["vars"]:
            _enter_var(block, dict(fields))
        block.ops = [Operator(block, type, inputs, outputs, attrs, tuple(site))
                     for type, inputs, outputs, attrs, site in data["ops"]]
        for op in block.ops:
            _check(op, len(program.blocks))
    return program


def _parent(index, parent):
    """A block is within an earlier one: a circle would be walked for ever."""
    if not isinstance(parent, int) or not -1 <= parent < index:
        raise ValueError(f"block {index} is within block {parent!r}")
    return parent


def _check(op, blocks):
    """Raise where an op could not be run for want of a slot or a block."""
    if registry.is_known(op.type):
        registry.find(op.type).check_slots(op)
    body = op.attrs.get("sub_block")
    if body is not None and not (isinstance(body, int) and op.block.idx < body < blocks):
        raise ValueError(f"{op}: there is no block {body!r} within block {op.block.idx}")


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
