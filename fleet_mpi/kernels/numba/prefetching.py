"""Ask for a cache line before it is needed: rows chosen by id lie anywhere, and each would be waited for in turn."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fleet_mpi.kernels.numba.compiling import compiled

# How many rows ahead: enough for the latency of memory, less than what the first-level cache holds.
AHEAD = 24
LINE_BYTES = 64
_READ, _ALL_CACHES, _DATA = 0, 3, 1


@intrinsic
def prefetch(typing_context, line, place):
    """Ask for the cache line of ``line[place]``, of a one-dimensional array; nothing is read, so no place is wrong."""
    return types.void(line, place), _code


def _code(context, builder, signature, arguments):
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    address = builder.bitcast(builder.gep(array.data, [arguments[1]]), cgutils.voidptr_t)
    number = ir.IntType(32)
    function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], ir.FunctionType(
        ir.VoidType(), [address.type, number, number, number]))
    builder.call(function, [address, *(ir.Constant(number, one) for one in (_READ, _ALL_CACHES, _DATA))])
    return context.get_dummy_value()


@compiled
def prefetch_elements(line, first, count):
    """Ask for all lines of ``line[first:first + count]``, the first of which begins a cache line or lies within one."""
    step = LINE_BYTES // line.itemsize
    for j in range(0, count, step):
        prefetch(line, first + j)
