"""A strict stand-in for device arrays.

``DeviceArray`` holds a numpy array and behaves like cupy's, except that it never comes to the host
by itself: no ``__array__``, no iteration, no ``float()``, no mixing with numpy's arrays or scalars.
``device`` stands for the module cupy and has only what cupy has too. So an op that passes with them
has no silent copy through the host and calls nothing that a GPU could not do. ``device.cuda`` has streams
and events: copies to and from pinned memory happen only when someone waits for them, and an array shows
its address (``__cuda_array_interface__``, which MPI takes) only after its stream was waited for. Indices and ``at``
behave as cupy's (``indexing``); results have numpy's bits, where cupy's exp, log and sums round otherwise. Importing
this registers the pair with ``fleet_mpi.arrays``. A test holds its names and keywords against a table of cupy's.
"""

import operator
import types

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import FleetError, UnknownName, nearest
from fleet_mpi.testing import indexing, streams

_SCALARS = (bool, int, float, complex)


class HostAccess(FleetError, TypeError):
    """A device array was used in a way that would pass through the host, or mix the two."""


class DeviceArray:
    """What a cupy array would be, without a GPU; made by the functions of ``device``."""

    __slots__ = ("_values",)
    __hash__ = None

    def __init__(self, values):
        self._values = values

    shape = property(lambda self: self._values.shape, doc="Sizes of the axes.")
    dtype = property(lambda self: self._values.dtype, doc="Type of the elements.")
    ndim = property(lambda self: self._values.ndim, doc="Number of axes.")
    size = property(lambda self: self._values.size, doc="Number of elements.")
    nbytes = property(lambda self: self._values.nbytes, doc="Size in bytes.")
    itemsize = property(lambda self: self._values.itemsize, doc="Size of an element in bytes.")
    strides = property(lambda self: self._values.strides, doc="Bytes from element to element.")
    flags = property(lambda self: self._values.flags, doc="Layout: c_contiguous, f_contiguous.")
    T = property(lambda self: DeviceArray(self._values.T), doc="The transposed view.")

    def __len__(self):
        return len(self._values)

    def __repr__(self):
        return f"DeviceArray({self.dtype} {list(self.shape)})"

    def __getitem__(self, key):
        streams.current_stream().catch_up()
        return _wrapped(self._values[_view_key(indexing.wrapped(self.shape, _index(key)))])

    def __setitem__(self, key, value):
        streams.current_stream().catch_up()
        key = indexing.wrapped(self.shape, _index(key))
        self._values[key] = _operand(value, "item assignment")
        written = self._values[_view_key(key)]  # a copy, where elements are chosen one by one
        streams.current_stream().note(written if np.may_share_memory(written, self._values) else self._values)

    def __getattr__(self, name):
        raise UnknownName(f"DeviceArray has no {name!r}, because cupy's arrays have none or because it "
                          f"leads to the host; {nearest(name, _METHODS)}")

    def get(self):
        """A copy on the host: the one way there, as in cupy."""
        streams.current_stream().catch_up()
        return self._values.copy()

    @property
    def data(self):
        """The memory, for copies and for libraries that take addresses."""
        return streams.Memory(self._values)

    @property
    def __cuda_array_interface__(self):
        if streams.current_stream().may_write(self._values):
            raise HostAccess(f"the address of {self!r} is asked for while its stream may still compute: synchronise "
                             f"first")
        values = self._values
        return {"shape": values.shape, "typestr": values.dtype.str, "version": 3, "stream": None,
                "strides": None if values.flags.c_contiguous else values.strides,
                "data": (values.ctypes.data, not values.flags.writeable)}


def _refuse(what, remedy):
    def refused(self, *args, **kwargs):
        raise HostAccess(f"{what} of {self!r} would pass through the host; {remedy}")
    return refused


def _refuse_host_access():
    """Every road by which Python or numpy would fetch the values."""
    for name in ("__float__", "__int__", "__bool__", "__index__", "__complex__", "item", "tolist"):
        setattr(DeviceArray, name, _refuse(name, "compute on the device, or fetch with asnumpy"))
    for name in ("__iter__", "__contains__"):
        setattr(DeviceArray, name, _refuse(name, "use whole-array functions"))
    for name in ("__array__", "__array_ufunc__", "__array_function__"):
        setattr(DeviceArray, name, _refuse(f"numpy's use ({name})",
                                           "call the function of module_of(array) with device arrays only"))


def _operand(value, what):
    """The numpy form of a value to compute with: a device array or a Python scalar, nothing else."""
    if isinstance(value, DeviceArray):
        return value._values
    if isinstance(value, _SCALARS) and not isinstance(value, np.generic):
        return value
    raise HostAccess(f"{what}: expected device arrays and Python scalars, got {type(value).__name__}; "
                     f"move host values with asarray, or turn a numpy scalar into a Python one")


def _argument(value, what, arrays_allowed=True):
    """The numpy form of any argument: shapes, axes, dtypes and names stay as they are."""
    if isinstance(value, DeviceArray):
        if not arrays_allowed:
            raise HostAccess(f"{what}: expected Python numbers where a shape or count belongs, got "
                             f"{value!r}; cupy would have to fetch it")
        return value._values
    if isinstance(value, (np.ndarray, np.generic)):
        return _operand(value, what)
    if isinstance(value, (list, tuple)):
        return type(value)(_element(element, what, arrays_allowed) for element in value)
    return value


def _element(value, what, arrays_allowed):
    # Shapes often come from numpy as integers; as metadata they cost nothing on a device.
    if isinstance(value, np.integer):
        return int(value)
    return _argument(value, what, arrays_allowed)


def _wrapped(result):
    """The device form of what numpy returned; scalars become arrays without axes, as in cupy."""
    if isinstance(result, (np.ndarray, np.generic, bool, int)):
        return DeviceArray(np.asarray(result))
    if isinstance(result, (list, tuple)):
        return type(result)(_wrapped(part) for part in result)
    return result


def _index(key):
    if isinstance(key, tuple):
        return tuple(_index(part) for part in key)
    if isinstance(key, DeviceArray):
        if key.dtype.kind not in "iub":
            raise HostAccess(f"index: expected integers or bools, got {key!r}")
        return key._values
    if key is None or key is Ellipsis or isinstance(key, slice):
        return key
    if isinstance(key, (list, np.ndarray)):
        raise HostAccess(f"index: expected a device array, got {type(key).__name__}; "
                         f"move host indices with asarray")
    return operator.index(key)


def _view_key(key):
    """The key, such that a single element is a view without axes (as in cupy), not a numpy scalar."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(part is Ellipsis or isinstance(part, np.ndarray) for part in parts):
        return key
    return (*parts, Ellipsis)


def _check_operands(name, args):
    """Values to compute with are no lists, not even where numpy would make arrays of them."""
    if name in _TAKE_SEQUENCES:
        values = args[0]
    elif name in _TAKE_ANY_NUMBER:
        values = [value for value in args if not isinstance(value, str)]
    else:
        values = args[:_OPERANDS.get(name, 1)]
    for value in values:
        if value is not None:
            _operand(value, name)


def _call(name, function, args, keywords, arrays_until=None):
    """Call a numpy function with device arguments; ``out`` is returned as the object it is."""
    _check_operands(name, args)
    streams.current_stream().catch_up()
    function = _AS_CUPY.get(name, function)
    out = keywords.pop("out", None)
    plain = [_argument(value, name, arrays_until is None or position < arrays_until)
             for position, value in enumerate(args)]
    named = {key: _argument(value, name, arrays_until is None) for key, value in keywords.items()}
    if out is None:
        result = _wrapped(function(*plain, **named))
        return result if _is_view(result, args) else _noted(result, args)
    if not isinstance(out, DeviceArray):
        raise HostAccess(f"{name}: expected a device array as out, got {type(out).__name__}")
    function(*plain, out=out._values, **named)
    return _noted(out, args)


def _is_view(result, args):
    """Whether a function has computed nothing: its result lies in the memory of its first argument."""
    return (isinstance(result, DeviceArray) and bool(args) and isinstance(args[0], DeviceArray)
            and np.may_share_memory(result._values, args[0]._values))


def _noted(result, args):
    """What was computed, entered in the stream: the result or, of functions that return nothing, the first argument."""
    for one in (args[:1] if result is None else result if isinstance(result, (list, tuple)) else (result,)):
        if isinstance(one, DeviceArray):
            streams.current_stream().note(one._values)
    return result


class Ufunc:
    """One elementwise function of ``device``: callable, and ``at`` where cupy has it."""

    # What cupy can add, or compare, atomically in device memory: its scatter functions refuse the rest
    # (int64 above all). Newer versions may take more; what runs here runs on older ones too.
    _ADDED = "int32 uint32 uint64 float16 float32 float64".split()
    _COMPARED = "int32 uint32 uint64 float32 float64".split()
    _AT = {"add": (_ADDED, indexing.add_at), "maximum": (_COMPARED, indexing.maximum_at),
           "minimum": (_COMPARED, indexing.minimum_at)}
    KEYWORDS = ("out", "dtype", "casting")

    def __init__(self, name):
        self.__name__ = name
        self._function = getattr(np, name)

    def __call__(self, *args, **keywords):
        _check_keywords(self.__name__, keywords, keywords.keys() - self.KEYWORDS)
        if len(args) > self._function.nin and keywords.get("out") is None:
            if self.__name__ == "matmul":
                raise UnknownName("cupy's matmul takes two arrays, and out by its name only: out=...")
            args, keywords["out"] = args[:self._function.nin], args[self._function.nin]
        return _call(self.__name__, self._function, args, keywords)

    def at(self, array, indices, values):
        """Unbuffered in-place operation on the elements at ``indices``, which may repeat."""
        allowed, run = self._AT.get(self.__name__, (None, None))
        if allowed is None:
            raise UnknownName(f"cupy has no {self.__name__}.at; it has at for: {', '.join(self._AT)}")
        target = _operand(array, self.__name__ + ".at")
        if target.dtype.name not in allowed:
            raise UnknownName(f"cupy's {self.__name__}.at works on {', '.join(allowed)}, "
                              f"not on {target.dtype}")
        streams.current_stream().catch_up()
        key = indexing.wrapped(target.shape, _index(indices))
        run(target, key, _operand(values, self.__name__ + ".at"))
        _noted(None, (array,))

    def __getattr__(self, name):
        raise UnknownName(f"the elementwise functions of device have no {name!r}, only at; "
                          f"use sum, prod, max, min, cumsum")


def _check_keywords(name, keywords, refused):
    wrong = [keyword for keyword in keywords if keyword in refused]
    if wrong:
        raise UnknownName(f"cupy's {name} takes no argument {wrong[0]!r}")


def _function(name, arrays_until=None):
    """The function of ``device`` that numpy calls ``name``."""
    original, refused = getattr(np, name), _REFUSED_KEYWORDS.get(name, _REFUSED_ANYWHERE)

    def call(*args, **keywords):
        _check_keywords(name, keywords, refused)
        return _call(name, original, args, keywords, arrays_until)

    call.__name__ = name
    call.__doc__ = f"numpy's {name}, on device arrays."
    return call


def _method(name):
    original = getattr(np.ndarray, name)

    def call(self, *args, **keywords):
        _check_keywords(name, keywords, _REFUSED_KEYWORDS.get(name, _REFUSED_ANYWHERE))
        return _call(name, original, (self, *args), keywords, _LEADING_ARRAYS.get(name))

    return call


def _asarray(a, dtype=None):
    """The array itself, or a copy of host values on the device."""
    if isinstance(a, DeviceArray):
        return a if dtype is None or a.dtype == np.dtype(dtype) else a.astype(dtype)
    return DeviceArray(np.array(a, dtype))


def _array(a, dtype=None, copy=True):
    """A new array; of a device array only if ``copy``."""
    found = _asarray(a, dtype)
    return found.copy() if copy and found is a else found


def _asnumpy(a):
    """A copy on the host."""
    return a.get()


def _dtypes(function):
    """Functions that ask for dtypes only take arrays too, as cupy's do."""
    return lambda *args: function(*(a.dtype if isinstance(a, DeviceArray) else a for a in args))


_AS_CUPY = {name: getattr(indexing, name) for name in ("take", "put", "take_along_axis", "put_along_axis")}

_REFUSED_ANYWHERE = ("initial", "where", "subok", "like", "order", "device")
# What numpy has and cupy has not, or under another name; see tests/unit/testing/cupy_table.py.
_ONLY_NUMPY = {
    **dict.fromkeys("sort argsort".split(), ("stable",)),
    **dict.fromkeys("partition argpartition isin".split(), ("kind",)),
    **dict.fromkeys("var std nanvar nanstd".split(), ("mean", "correction")),
    **dict.fromkeys("percentile quantile".split(), ("weights",)),
    **dict.fromkeys("intersect1d union1d".split(), ("ar2",)),
    "unique": ("sorted",), "lexsort": ("axis",), "count_nonzero": ("keepdims",), "clip": ("min", "max"),
    "indices": ("sparse",), "delete": ("obj",), "extract": ("arr",), "unravel_index": ("shape",),
}
_REFUSED_KEYWORDS = {
    **{name: (*_REFUSED_ANYWHERE, *keywords) for name, keywords in _ONLY_NUMPY.items()},
    "einsum": ("out", "order", "casting"),
    "take": ("mode",),
    "copyto": (),
    "astype": ("subok",),
    "ravel": (), "reshape": ("shape",), "copy": ("subok",), "flatten": (),
    **dict.fromkeys("empty zeros ones full".split(), ("like", "device")),
}

_UFUNCS = """
    add subtract multiply divide true_divide floor_divide power float_power remainder mod fmod negative
    positive absolute abs fabs sign heaviside exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2
    sqrt square cbrt reciprocal sin cos tan arcsin arccos arctan arctan2 hypot sinh cosh tanh arcsinh
    arccosh arctanh deg2rad rad2deg degrees radians maximum minimum fmax fmin floor ceil trunc rint
    copysign signbit nextafter ldexp gcd lcm conj conjugate bitwise_and bitwise_or bitwise_xor
    bitwise_not invert left_shift right_shift equal not_equal less less_equal greater greater_equal
    logical_and logical_or logical_xor logical_not isfinite isinf isnan matmul divmod modf frexp
""".split()

_FUNCTIONS = """
    empty_like zeros_like ones_like full_like copy ascontiguousarray asfortranarray diag diagflat tril
    triu meshgrid copyto ravel reshape transpose moveaxis rollaxis swapaxes atleast_1d atleast_2d
    atleast_3d broadcast_arrays broadcast_to expand_dims squeeze concatenate stack vstack hstack dstack
    column_stack split array_split hsplit vsplit dsplit tile repeat append resize delete unique flip
    fliplr flipud roll rot90 pad take take_along_axis put_along_axis choose compress diagonal extract
    select place put putmask fill_diagonal where nonzero flatnonzero argwhere unravel_index
    ravel_multi_index sort argsort lexsort partition argpartition searchsorted count_nonzero bincount
    digitize histogram sum prod mean var std max min amax amin ptp any all argmax argmin cumsum cumprod
    nansum nanprod nanmax nanmin nanmean nanvar nanstd nanargmax nanargmin nancumsum nancumprod median
    nanmedian average percentile quantile diff ediff1d gradient dot vdot inner outer tensordot einsum
    kron cross trace clip around round fix nan_to_num real imag angle isclose allclose array_equal isin
    isneginf isposinf intersect1d union1d setdiff1d setxor1d
""".split()

_CREATORS = """
    empty zeros ones full arange linspace logspace eye identity tri indices tril_indices triu_indices
""".split()

# How many leading arguments may be arrays; the others are shapes, counts or axes, which the host knows.
_LEADING_ARRAYS = {**dict.fromkeys(_CREATORS, 0), **dict.fromkeys("""
    reshape broadcast_to transpose repeat tile split array_split hsplit vsplit dsplit pad expand_dims
    moveaxis swapaxes resize roll sum mean max min prod astype
""".split(), 1)}

# How many leading arguments are values, where it is not one.
_OPERANDS = {
    **dict.fromkeys(_CREATORS, 0), **{name: getattr(np, name).nin for name in _UFUNCS},
    **dict.fromkeys("""
        copyto append take take_along_axis compress extract searchsorted digitize dot vdot inner outer
        tensordot kron cross isclose allclose array_equal isin intersect1d union1d setdiff1d setxor1d fill
    """.split(), 2),
    **dict.fromkeys("where clip put_along_axis put putmask place".split(), 3),
}
_TAKE_SEQUENCES = "concatenate stack vstack hstack dstack column_stack lexsort".split()
_TAKE_ANY_NUMBER = "einsum meshgrid broadcast_arrays".split()

_METHODS = """
    astype copy fill reshape ravel flatten transpose squeeze swapaxes view sum prod mean var std max min
    argmax argmin any all cumsum cumprod clip dot take repeat sort argsort partition diagonal trace
    nonzero round conj compress choose put searchsorted
""".split()

_SAME_AS_NUMPY = """
    bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp float16 float32 float64 complex64
    complex128 dtype finfo iinfo issubdtype promote_types broadcast_shapes newaxis inf nan pi e generic
    number integer signedinteger unsignedinteger inexact floating complexfloating
""".split()

_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "pow": "power",
    "floordiv": "floor_divide", "mod": "remainder", "matmul": "matmul", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}
_COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
                "ge": "greater_equal"}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}


def _fill_class(functions):
    """Give DeviceArray its operators and methods, all of which go through the functions of ``device``."""
    for name, ufunc in {**_OPERATORS, **_COMPARISONS}.items():
        setattr(DeviceArray, f"__{name}__", lambda self, other, run=functions[ufunc]: run(self, other))
    for name, ufunc in _OPERATORS.items():
        setattr(DeviceArray, f"__r{name}__", lambda self, other, run=functions[ufunc]: run(other, self))
        setattr(DeviceArray, f"__i{name}__",
                lambda self, other, run=functions[ufunc]: run(self, other, out=self))
    for name, ufunc in _UNARY.items():
        setattr(DeviceArray, f"__{name}__", lambda self, run=functions[ufunc]: run(self))
    for name in _METHODS:
        setattr(DeviceArray, name, _method(name))


def _submodule(name, **functions):
    made = types.ModuleType(f"{__name__}.{name}", f"The part of cupy's {name} that ops may use.")
    made.__dict__.update(functions)
    return made


def _build_device():
    """The module object that stands for cupy."""
    made = types.ModuleType(f"{__name__}.device", "Stands for the module cupy, without a GPU.")
    content = {name: _function(name, _LEADING_ARRAYS.get(name)) for name in _FUNCTIONS + _CREATORS}
    content.update((name, Ufunc(name)) for name in _UFUNCS)
    content.update((name, getattr(np, name)) for name in _SAME_AS_NUMPY)
    content.update(ndarray=DeviceArray, asarray=_asarray, array=_array, asnumpy=_asnumpy,
                   result_type=_dtypes(np.result_type), can_cast=_dtypes(np.can_cast),
                   shares_memory=lambda a, b: np.shares_memory(a._values, b._values),
                   may_share_memory=lambda a, b: np.may_share_memory(a._values, b._values))
    windows = np.lib.stride_tricks
    content["lib"] = _submodule("device.lib", stride_tricks=_submodule(
        "device.lib.stride_tricks",
        as_strided=lambda a, *args, **named: _call("as_strided", windows.as_strided, (a, *args), named, 1),
        sliding_window_view=lambda a, *args, **named: _call(
            "sliding_window_view", windows.sliding_window_view, (a, *args), named, 1)))
    content["linalg"] = _submodule("device.linalg", **{name: lambda a, *args, run=name, **named: _call(
        run, getattr(np.linalg, run), (a, *args), named) for name in ("norm", "inv", "cholesky")})

    content["cuda"] = _submodule(
        "device.cuda", Stream=streams.Stream, Event=streams.Event, Device=streams.Device,
        get_current_stream=streams.current_stream,
        alloc_pinned_memory=lambda size: bytearray(b"\xa5" * size))

    def missing(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownName(f"device, the stand-in for cupy, has no {name!r}: cupy has none, or ops must not "
                          f"use it; {nearest(name, content)}")

    made.__dict__.update(content, __getattr__=missing)
    return made


device = _build_device()
_fill_class(device.__dict__)
_refuse_host_access()
arrays.register(DeviceArray, device)
