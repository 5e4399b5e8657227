"""The variables that a script feeds."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph.types import VarType


def data(name, shape, append_batch_size=True, dtype="float32", lod_level=0, type=VarType.LOD_TENSOR,
         stop_gradient=True):
    """A variable to feed; ``fluid.layers.data``. The batch size is put in front unless the shape has a -1."""
    shape = [-1 if size is None else int(size) for size in _sizes(name, shape)]
    if append_batch_size and not any(size < 0 for size in shape):
        shape = [-1] + shape
    return _declare(name, shape, dtype, lod_level, type, stop_gradient, need_check_feed=False)


def static_data(name, shape, dtype="float32", lod_level=0):
    """A variable to feed, in just this shape (None or -1: any size); ``fluid.data`` and ``paddle.static.data``."""
    return _declare(name, _sizes(name, shape), dtype or "float32", lod_level, VarType.LOD_TENSOR, True,
                    need_check_feed=True)


def _sizes(name, shape):
    if not isinstance(name, str):
        raise UsageError(f"data: the name must be a text, got {type(name).__name__}")
    if not isinstance(shape, (list, tuple)):
        raise UsageError(f"data {name!r}: expected the shape as a list, such as [None, 13], got {shape!r}")
    return shape


def _declare(name, shape, dtype, lod_level, type, stop_gradient, need_check_feed):
    block = LayerHelper("data", name=name).main_program.global_block()
    return block.create_var(name=name, shape=shape, dtype=dtype, lod_level=lod_level, type=type,
                            stop_gradient=stop_gradient, is_data=True, need_check_feed=need_check_feed)
