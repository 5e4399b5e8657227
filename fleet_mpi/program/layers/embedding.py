"""Embeddings: rows of a table by id."""

import contextlib
import contextvars

from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.errors import UsageError
from fleet_mpi.kernels.reference import slots
from fleet_mpi.program.build.initializers import Constant, default_for
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.ops.sparse_table import INDEX, KEYS

# From so many rows on a height is only a word: no array has it, and rows have numbers of 32 bits.
_NO_HEIGHT = 1 << 31
_FIRST_ROWS = 1024   # of a table that grows, where no height says it
_heights_bind = contextvars.ContextVar("heights_bind", default=True)


@contextlib.contextmanager
def any_height():
    """Within the block ``is_distributed`` tables take any id, whatever height they are given."""
    token = _heights_bind.set(False)
    try:
        yield
    finally:
        _heights_bind.reset(token)


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
    """Ids [..., 1] as rows [..., size[1]] of a new table; ``fluid.layers.embedding``.

    A table with ``is_distributed`` and a height of -1, or of 2**31 and more, makes a row when an id is first met.
    """
    return _lookup("lookup_table", input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


def embedding_v2(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None,
                 dtype="float32"):
    """Ids [...] as rows [..., size[1]] of a new table; ``fluid.embedding``, ``paddle.static.nn.embedding``.

    A table with ``is_distributed`` and a height of -1, or of 2**31 and more, makes a row when an id is first met.
    """
    return _lookup("lookup_table_v2", input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


def _lookup(type, input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype):
    helper = LayerHelper("embedding", input=input, param_attr=param_attr)
    if is_distributed and (size[0] == ANY_HEIGHT or size[0] >= _NO_HEIGHT or not _heights_bind.get()):
        return _growing_lookup(helper, size, dtype, {"padding_idx": padding_idx, "version": type})
    table = helper.create_parameter(helper.param_attr, size, dtype)
    table.is_distributed = is_distributed
    return lookup(input, table, is_sparse, is_distributed, padding_idx, type, helper)


def lookup(input, table, is_sparse=False, is_distributed=False, padding_idx=None, type="lookup_table_v2", helper=None):
    """Rows of an existing table; ``paddle.nn.functional.embedding``."""
    helper = helper or LayerHelper("embedding", input=input)
    rows = table.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise UsageError(f"embedding: padding_idx {padding_idx} is no row of a table of {rows}")
    out = helper.create_variable_for_type_inference(table.dtype)
    helper.append_op(type, {"W": [table], "Ids": [helper.input()]}, {"Out": [out]}, {
        "is_sparse": is_sparse, "is_distributed": is_distributed, "remote_prefetch": bool(is_sparse),
        "padding_idx": -1 if padding_idx is None else padding_idx % rows})
    return out


def sparse_embedding(input, size, padding_idx=None, is_test=False, entry=None, param_attr=None, dtype="float32"):
    """Ids, any 64-bit numbers, as rows of a table that makes a row when an id is first met.

    ``size`` is where the table starts: [rows, width]. ``entry`` says when servers store a row; one process stores
    every row at once.
    """
    helper = LayerHelper("sparse_embedding", input=input, param_attr=param_attr)
    return _growing_lookup(helper, size, dtype, {
        "padding_idx": padding_idx, "is_test": is_test, "entry": entry._to_attr() if entry is not None else "none"})


def _growing_lookup(helper, size, dtype, attrs):
    rows = size[0] if 0 < size[0] < _NO_HEIGHT and _heights_bind.get() else _FIRST_ROWS
    table = helper.create_parameter(helper.param_attr, [rows, size[1]], dtype)
    table.is_distributed = True
    out = helper.create_variable_for_type_inference(dtype)
    rows = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    keys = _beside(helper, table, KEYS, table.shape[0], slots.FREE)
    index = _beside(helper, table, INDEX, slots.index_size(table.shape[0]), slots.NOT_THERE)
    helper.append_op(
        "sparse_table_lookup", {"W": [table], "Ids": [helper.input()], "Keys": [keys], "Index": [index]},
        {"Out": [out], "Slots": [rows], "KeysOut": [keys], "IndexOut": [index]},
        {**attrs, **_first_values(helper, table)})
    return out


def _beside(helper, table, suffix, size, value):
    """An int64 variable kept beside the table, filled with one value by the startup program."""
    var, is_new = helper.create_or_get_global_variable(table.name + suffix, shape=[size], dtype="int64",
                                                       persistable=True, stop_gradient=True)
    if is_new:
        helper.set_variable_initializer(var, _Whole(value))
    return var


class _Whole(Constant):
    """A whole number too long for a float."""

    def op_for(self, var):
        return "fill_constant", {"value": int(self.value)}


def _first_values(helper, table):
    """The table's initializer as attributes: rows are made one by one, while the program runs."""
    initializer = helper.param_attr.initializer or default_for(False)
    type, attrs = initializer.op_for(table)
    ends = {"fill_constant": ("value", "value"), "uniform_random": ("min", "max"), "gaussian_random": ("mean", "std"),
            "truncated_gaussian_random": ("mean", "std")}.get(type)
    if ends is None:
        raise UsageError(f"sparse_embedding: {initializer!r} cannot initialise one row at a time: use Constant, "
                         f"Uniform, Normal, TruncatedNormal, Xavier or MSRA")
    return {"init_type": type, "init_from": attrs[ends[0]], "init_to": attrs[ends[1]],
            "init_seed": attrs.get("seed", 0)}
