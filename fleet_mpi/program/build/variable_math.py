"""Operators of variables: ``2 * a + b``, ``a < b``, ``a @ b``, ``a[0, ::2]``, ``a.astype("int64")`` add ops.

Importing this module gives them to Variable. Numbers become attributes of ``scale`` and ``pow`` where
that serves, else a constant of shape [1]. ``==`` adds an op too; but between two variables its result,
asked for its truth, says whether they are the same, so that ``variable in list`` works.
"""

import numbers

from fleet_mpi import notices
from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.variable_arguments import numbers_given
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.types import as_dtype, is_float
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.ops.elementwise import stretched

# Ends of slices that are left open; as large as the original's attributes can hold.
FAR = 2 ** 31 - 1


def append(var, type, inputs, attrs=None):
    """Add an op with one output to the block that is being built; returns its output."""
    block = var.block.program.current_block()
    out = block.create_var(name=unique_name.generate("tmp"), dtype=None)
    block.append_op(type, inputs, {"Out": [out]}, attrs)
    return out


def astype(self, dtype):
    """The variable in another element type."""
    attrs = {"in_dtype": self._dtype.name, "out_dtype": as_dtype(dtype).name}
    return append(self, "cast", {"X": [self]}, attrs)


def constant(var, value, dtype):
    """A variable of shape [1], beside ``var``."""
    return append(var, "fill_constant", {}, {"shape": [1], "value": value, "dtype": as_dtype(dtype).name})


def is_number(value):
    """Whether a Python or numpy number."""
    return isinstance(value, numbers.Real)


def as_python(value):
    """An int or a float, whatever kind of number was given."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def is_whole(number):
    """Whether an integer variable can take this number without loss."""
    return isinstance(number, int) or number.is_integer()


def scaled(var, scale=1, bias=0):
    """var * scale + bias as one op; integers beside integers, so that large ones keep their last digits."""
    kind = float if is_float(var._dtype) else int
    return append(var, "scale", {"X": [var]}, {"scale": kind(scale), "bias": kind(bias), "bias_after_scale": True})


def raised(var, factor):
    """var to a power as one op."""
    return append(var, "pow", {"X": [var]}, {"factor": float(factor)})


# What a number on the right, and on the left, of an operator becomes without a constant.
NUMBER_ON_THE_RIGHT = {
    "add": lambda var, number: scaled(var, bias=number),
    "sub": lambda var, number: scaled(var, bias=-number),
    "mul": lambda var, number: scaled(var, number),
    "div": lambda var, number: scaled(var, 1.0 / number) if number else None,
    "pow": raised,
}
NUMBER_ON_THE_LEFT = {
    "add": lambda var, number: scaled(var, bias=number),
    "sub": lambda var, number: scaled(var, -1, number),
    "mul": lambda var, number: scaled(var, number),
}


def arithmetic(name, is_reversed):
    """The method for one arithmetic operator, ``elementwise_<name>``."""
    def method(self, other):
        if is_number(other):
            return with_number(self, as_python(other))
        if not isinstance(other, Variable):
            return NotImplemented
        left, right = (other, self) if is_reversed else (self, other)
        return combined(f"elementwise_{name}", *in_one_type(left, right))

    def with_number(var, number):
        if not is_float(var._dtype) and (name == "div" or isinstance(number, float)):
            var = astype(var, "float32")
        elif var._dtype.kind == "b":
            var = astype(var, "int64")
        direct = (NUMBER_ON_THE_LEFT if is_reversed else NUMBER_ON_THE_RIGHT).get(name)
        made = direct(var, number) if direct else None
        if made is None:
            other = constant(var, number, var._dtype)
            made = combined(f"elementwise_{name}", *((other, var) if is_reversed else (var, other)))
        return made
    return method


def in_one_type(left, right):
    """Both in the type of the left one, as in the original; a truth value, though, becomes what stands beside it."""
    if left._dtype == right._dtype:
        return left, right
    return (astype(left, right._dtype), right) if left._dtype.kind == "b" else (left, astype(right, left._dtype))


def combined(type, left, right):
    """The op on two variables.

    A shorter right side of unknown length lies along the rows of the left one: in 1.x
    ``x / reduce_sum(x, dim=1)`` divides every row by its sum.
    """
    along_rows = 0 < len(right.shape) < len(left.shape) and right.shape[0] == -1
    return append(left, type, {"X": [left], "Y": [right]}, {"axis": 0 if along_rows else -1})


def comparison(type):
    """The method for one comparing operator."""
    def method(self, other):
        if is_number(other):
            number = as_python(other)
            fits = is_float(self._dtype) or is_whole(number)
            return compared(self, constant(self, number, self._dtype if fits else "float32"))
        if not isinstance(other, Variable) or is_equality and not can_be_compared(self, other):
            return NotImplemented
        return compared(*in_one_type(self, other), (self is other) == (type == "equal") if is_equality else None)

    def compared(one, other, truth=None):
        made = combined(type, one, other)
        made.__dict__["_truth"] = truth
        return made
    is_equality = type in ("equal", "not_equal")
    return method


def can_be_compared(one, other):
    """Whether the shapes stretch to each other."""
    try:
        stretched(one.shape, other.shape)
    except ValueError:
        return False
    return True


def truth(self):
    """Of ``a == b`` whether a is b; else True. Of ``a < b`` that is said once: it has no value yet."""
    known = self.__dict__.get("_truth", True)
    if known is None:
        notices.once("truth of a comparison",
                     f"the comparison {self.name!r} has no value while the program is built, so "
                     f"a Python `if` or `while` takes it for True: use layers.cond, layers.Switch or layers.While")
    return known is not False


def logic(type):
    """The method for one operator on bool variables."""
    return lambda self, other: (append(self, type, {"X": [self], "Y": [other]})
                                if isinstance(other, Variable) else NotImplemented)


def matrix_product(self, other):
    """The product of matrices."""
    return append(self, "matmul_v2", {"X": [self], "Y": [other]}) if isinstance(other, Variable) else NotImplemented


def item(self, key):
    """A part of the variable: integers, slices, ``...``, None, and variables that hold positions."""
    keys = full_key(self, key)
    found, slices, dropped, axis = self, [], [], 0
    for one in keys:
        if one is None:
            continue
        if isinstance(one, Variable):
            found = append(found, "gather", {"X": [found], "Index": [one]}, {"axis": axis})
            if one.shape == (1,):
                slices.append((axis, 0, 1, 1))
                dropped.append(axis)
        elif isinstance(one, slice):
            if one != slice(None):
                slices.append((axis, *limits(one)))
        else:
            slices.append((axis, one, one + 1 if one != -1 else FAR, 1))
            dropped.append(axis)
        axis += 1
    return with_new_axes(sliced(found, slices, dropped), keys)


def full_key(var, key):
    """The key as a list with one entry per dimension, besides None for each new one."""
    keys = list(key) if isinstance(key, tuple) else [key]
    for one in keys:
        if not (one is None or one is Ellipsis or isinstance(one, (slice, Variable, numbers.Integral))) \
                or isinstance(one, bool):
            raise UsageError(f"variable {var.name!r}: an index must be an integer, a slice, ..., None or a variable "
                             f"of integers, got {one!r}; layers.gather_nd and layers.where pick by other means")
    keys = [int(one) if isinstance(one, numbers.Integral) else one for one in keys]
    missing = len(var.shape) - sum(one is not None and one is not Ellipsis for one in keys)
    if missing < 0:
        raise UsageError(f"variable {var.name!r} {var.shape} has {len(var.shape)} dimension(s), but is indexed by "
                         f"{len(var.shape) - missing}")
    places = [i for i, one in enumerate(keys) if one is Ellipsis]
    if len(places) > 1:
        raise UsageError(f"variable {var.name!r}: an index can hold one '...', got {len(places)}")
    at = places[0] if places else len(keys)
    return keys[:at] + [slice(None)] * missing + keys[at + 1:]


def limits(part):
    """start, end and step of a slice, numbers or variables; a step of unknown sign is taken for a positive one."""
    step = 1 if part.step is None else part.step
    open_start, open_end = (0, FAR) if isinstance(step, Variable) or step > 0 else (FAR, -FAR)
    return open_start if part.start is None else part.start, open_end if part.stop is None else part.stop, step


def sliced(var, slices, dropped):
    """The slice ops: first those with steps, then the others, which also drop dimensions."""
    stepped = [one for one in slices if isinstance(one[3], Variable) or one[3] != 1]
    plain = [one for one in slices if not isinstance(one[3], Variable) and one[3] == 1]
    if stepped:
        axes, starts, ends, strides = map(list, zip(*stepped))
        var = one_slice(var, "strided_slice", {"axes": axes}, starts=starts, ends=ends, strides=strides)
    if plain:
        axes, starts, ends, _ = map(list, zip(*plain))
        var = one_slice(var, "slice", {"axes": axes, "decrease_axis": dropped}, starts=starts, ends=ends)
    return var


def one_slice(var, type, attrs, **limits):
    """One slice op, its limits numbers or variables."""
    inputs = {"Input": [var]}
    for name, given in limits.items():
        more, attrs[name] = numbers_given(type, given, "", f"{name.capitalize()}TensorList")
        inputs.update(more)
    return append(var, type, inputs, attrs)


def with_new_axes(var, keys):
    """Dimensions of 1 where the key says None."""
    kept = [one for one in keys if not (isinstance(one, int) or isinstance(one, Variable) and one.shape == (1,))]
    new = [i for i, one in enumerate(kept) if one is None]
    if new and len(new) == len(kept):
        new = new[1:]  # what is left when all dimensions are dropped has shape [1] already
    return append(var, "unsqueeze", {"X": [var]}, {"axes": new}) if new else var


def transposed(self):
    """The variable with its dimensions in the opposite order."""
    return append(self, "transpose", {"X": [self]}, {"axis": list(range(len(self.shape)))[::-1]})


def _give_operators():
    names = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "mod": "mod",
             "floordiv": "floordiv"}
    for python, ours in names.items():
        setattr(Variable, f"__{python}__", arithmetic(ours, False))
        setattr(Variable, f"__r{python}__", arithmetic(ours, True))
    for python, ours in {"eq": "equal", "ne": "not_equal", "lt": "less_than", "le": "less_equal",
                         "gt": "greater_than", "ge": "greater_equal"}.items():
        setattr(Variable, f"__{python}__", comparison(ours))
    for python, ours in {"and": "logical_and", "or": "logical_or", "xor": "logical_xor"}.items():
        setattr(Variable, f"__{python}__", logic(ours))
    Variable.__invert__ = lambda self: append(self, "logical_not", {"X": [self]})
    Variable.__neg__ = lambda self: scaled(self, -1)
    Variable.__abs__ = lambda self: append(self, "abs", {"X": [self]})
    Variable.__matmul__ = matrix_product
    Variable.__getitem__ = item
    Variable.__hash__ = object.__hash__
    Variable.__bool__ = truth
    # numpy scalars on the left leave the operation to us instead of iterating over the variable.
    Variable.__array_ufunc__ = None
    Variable.astype = astype
    Variable.T = property(transposed)


_give_operators()
