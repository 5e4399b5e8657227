"""The kinds of variable and of element, under the names that scripts use (``VarType.FP32``, ...)."""

import enum

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
    if isinstance(dtype, str) and dtype == "float":
        dtype = "float32"
    try:
        found = np.dtype(dtype)
        VarType(found.name)
    except (TypeError, ValueError):
        names = [kind.value for kind in ELEMENT_TYPES]
        raise ProgramError(f"no element type {dtype!r}; {nearest(dtype, names)}") from None
    return found


def var_type(dtype):
    """The VarType of a numpy dtype or of anything ``as_dtype`` takes."""
    return VarType(as_dtype(dtype).name)


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
