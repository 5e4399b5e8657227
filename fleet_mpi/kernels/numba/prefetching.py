"""Ask for cache lines before they are needed: rows chosen by id lie anywhere, and each would be waited for in turn.

What is asked for is not read, so no place is wrong.
"""

from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir
from numba.extending import intrinsic

# How many rows ahead: enough for the latency of memory, less than what the first-level cache holds.
AHEAD = 24
LINE_BYTES = 64
_READ, _ALL_CACHES, _DATA = 0, 3, 1


@intrinsic
def prefetch(typing_context, line, place):
    """Ask for the cache line of ``line[place]``, of a one-dimensional array."""
    def code(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        _ask(builder, builder.gep(array.data, [arguments[1]]))
        return context.get_dummy_value()
    return types.void(line, place), code


@intrinsic
def prefetch_row(typing_context, table, row, width):
    """Ask for all lines of ``table[row, :width]``, of a contiguous array whose rows begin lines or lie within one."""
    per_line = 8 * LINE_BYTES // table.dtype.bitwidth

    def code(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        _, stride = cgutils.unpack_tuple(builder, array.shape)
        first = builder.mul(builder.sext(arguments[1], stride.type), stride)
        with cgutils.for_range_slice(builder, stride.type(0), arguments[2], stride.type(per_line)) as (column, _):
            _ask(builder, builder.gep(array.data, [builder.add(first, column)]))
        return context.get_dummy_value()
    return types.void(table, types.int64, types.int64), code


def _ask(builder, address):
    pointer = builder.bitcast(address, cgutils.voidptr_t)
    number = ir.IntType(32)
    function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], ir.FunctionType(
        ir.VoidType(), [pointer.type, number, number, number]))
    builder.call(function, [pointer, *(ir.Constant(number, one) for one in (_READ, _ALL_CACHES, _DATA))])
