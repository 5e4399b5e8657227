"""The kinds of variable and of element, under the names that scripts use (``VarType.FP32``, ...)."""

import enum
import functools

import numpy as np

from fleet_mpi.errors import ProgramError, nearest


class VarType(str, enum.Enum):
    """Element types and kinds of variable; an element type equals its numpy name, ``"float32"``."""

    BOOL = "bool"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FP16 = "float16"
    FP32 = "float32"
    FP64 = "float64"
    UINT8 = "uint8"
    INT8 = "int8"
    LOD_TENSOR = "lod_tensor"
    SELECTED_ROWS = "selected_rows"
    LOD_TENSOR_ARRAY = "lod_tensor_array"
    STEP_SCOPES = "step_scopes"
    READER = "reader"
    FEED_MINIBATCH = "feed_minibatch"
    FETCH_LIST = "fetch_list"
    RAW = "raw"


ELEMENT_TYPES = tuple(VarType)[:9]


def as_dtype(dtype):
    """The numpy dtype meant by a VarType, a name such as ``"float32"``, a numpy type or dtype."""
    return _element_type(dtype)[0]


def var_type(dtype):
    """The VarType of a numpy dtype or of anything ``as_dtype`` takes."""
    return _element_type(dtype)[1]


def _element_type(dtype):
    try:
        return _looked_up(dtype)
    except (TypeError, ValueError):
        names = [kind.value for kind in ELEMENT_TYPES]
        raise ProgramError(f"no element type {dtype!r}; {nearest(dtype, names)}") from None


@functools.lru_cache(maxsize=64)  # numpy takes 10 us to tell a dtype's name
def _looked_up(dtype):
    found = np.dtype("float32" if isinstance(dtype, str) and dtype == "float" else dtype)
    return found, VarType(found.name)


def is_float(dtype):
    """Whether gradients can flow through elements of this type."""
    return np.dtype(dtype).kind == "f"


class Role(enum.IntFlag):
    """What an operator is for, as the original numbers it; ops carry it in the attribute ``op_role``."""

    Forward = 0
    Backward = 1
    Optimize = 2
    RPC = 4
    Dist = 8
    LRSched = 16
    Loss = 256
