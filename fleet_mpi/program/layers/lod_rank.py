"""Sequences cut into steps by a rank table, longest first, and put together again."""

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.layers.single_op import single_op


def _made(type, inputs, dtype, kind=VarType.LOD_TENSOR, attrs=None):
    helper = LayerHelper(type)
    out = helper.create_variable(name=helper.name + ".out", dtype=dtype, type=kind)
    helper.append_op(type, {slot: [helper.require(var, slot)] for slot, var in inputs.items()}, {"Out": [out]}, attrs)
    return out


def lod_rank_table(x, level=0):
    """The order of the sequences of one LoD level of ``x``, from long to short."""
    table = _made("lod_rank_table", {"X": x}, "float32", VarType.RAW, {"level": level})
    table.stop_gradient = True
    return table


def max_sequence_len(rank_table):
    """The length of the longest sequence, int64 [1]."""
    return _made("max_sequence_len", {"RankTable": rank_table}, "int64")


def lod_tensor_to_array(x, table):
    """A tensor array with the elements of all sequences step by step, in the order of the table."""
    return _made("lod_tensor_to_array", {"X": x, "RankTable": table}, x.dtype, VarType.LOD_TENSOR_ARRAY)


def array_to_lod_tensor(x, table):
    """The sequences that a tensor array holds step by step."""
    return _made("array_to_lod_tensor", {"X": x, "RankTable": table}, x.dtype)


def shrink_memory(x, i, table):
    """The rows of ``x`` of those sequences that have an element at step ``i``."""
    return _made("shrink_rnn_memory", {"X": x, "I": i, "RankTable": table}, x.dtype)


def reorder_lod_tensor_by_rank(x, rank_table):
    """The sequences (without LoD: the rows) of ``x`` in the order of the table."""
    return single_op("reorder_lod_tensor_by_rank", {"X": x, "RankTable": rank_table})
