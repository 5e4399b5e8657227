"""Variable and Parameter: the descriptions of what ops read and write. They hold no values."""

from fleet_mpi.errors import NotBuilt, ProgramError, UsageError
from fleet_mpi.program.graph.types import VarType, as_dtype, var_type


class Variable:
    """A name in a block with a shape (-1: known only when it runs), an element type and a LoD level.

    Arithmetic operators are added by ``program/build/variable_math.py``.
    """

    def __init__(self, block, name, shape=None, dtype="float32", lod_level=0, persistable=False,
                 stop_gradient=False, type=VarType.LOD_TENSOR, is_data=False, need_check_feed=False,
                 error_clip=None):
        self.block = block
        self.name = name
        self._shape = None if shape is None else as_shape(shape, name)
        self._dtype = None if dtype is None else as_dtype(dtype)
        self.lod_level = lod_level or 0
        self._persistable = persistable
        self.stop_gradient = stop_gradient
        self.type = VarType(type)
        self.is_data = is_data
        self.need_check_feed = need_check_feed
        self.error_clip = error_clip

    @property
    def desc(self):
        """The variable itself: scripts ask for ``var.desc.set_need_check_feed(False)``."""
        return self

    def set_need_check_feed(self, need_check_feed):
        """Note whether feeds are compared with the shape; what ops need is checked in any case."""
        self.need_check_feed = bool(need_check_feed)

    @property
    def shape(self):
        """The dimensions as a tuple; -1 where they are known only at run time."""
        return self._shape if self._shape is not None else ()

    @shape.setter
    def shape(self, shape):
        self._shape = as_shape(shape, self.name)
        self.block.program.touch()

    @property
    def dtype(self):
        """The element type as a VarType, which equals its numpy name."""
        return var_type(self._dtype) if self._dtype is not None else None

    @dtype.setter
    def dtype(self, dtype):
        self._dtype = as_dtype(dtype)
        self.block.program.touch()

    @property
    def persistable(self):
        """Whether the value stays in the scope from run to run."""
        return self._persistable

    @persistable.setter
    def persistable(self, persistable):
        self._persistable = persistable
        self.block.program.touch()

    @property
    def program(self):
        """The program this variable belongs to."""
        return self.block.program

    @property
    def op(self):
        """The op of this block that last writes the variable, or None."""
        for op in reversed(self.block.ops):
            if self.name in op.output_arg_names:
                return op
        return None

    def fields(self):
        """Everything needed to make an equal variable in another block."""
        return dict(shape=self._shape, dtype=self._dtype, lod_level=self.lod_level,
                    persistable=self.persistable, stop_gradient=self.stop_gradient, type=self.type,
                    is_data=self.is_data, need_check_feed=self.need_check_feed)

    def copy_to(self, block):
        """Enter an equal variable in another block and return it."""
        return block.create_var(name=self.name, **self.fields())

    def to_string(self, throw_on_error=True, with_details=False):
        """One line that describes the variable."""
        kind = "param" if isinstance(self, Parameter) else "var"
        words = [kind, self.name, ":", self.type.name, f"shape{tuple(self.shape)}",
                 str(self._dtype)]
        if self.lod_level:
            words.append(f"lod_level={self.lod_level}")
        words += [flag for flag in ("persistable", "stop_gradient", "is_data") if getattr(self, flag)]
        return " ".join(words)

    def __repr__(self):
        return self.to_string()

    __str__ = __repr__

    def set_error_clip(self, error_clip):
        """Clip the gradient that flows back through this variable (an ErrorClipByValue)."""
        self.error_clip = error_clip

    def backward(self, retain_graph=False):
        """Refuse: gradients are ops of the program."""
        raise NotBuilt(f"{self.name}.backward(): there is no eager mode; optimizer.minimize(loss) adds the backward "
                       f"ops to a program")

    def numpy(self):
        """Refuse: a variable holds no value."""
        raise NotBuilt(f"{self.name}.numpy(): there is no eager mode; fetch the variable: "
                       f"exe.run(program, fetch_list=[variable])")

    def __bool__(self):
        """True, as in the original: scripts ask whether a variable is given. It has no value yet."""
        return True

    def __int__(self):
        """Refuse, so that a variable in the place of a number is named."""
        raise UsageError(f"expected a number that is known when the program is built, got the variable {self.name!r}, "
                         f"which has a value only when it runs")

    __float__ = __index__ = __int__

    def __len__(self):
        if self.shape and self.shape[0] >= 0:
            return self.shape[0]
        raise ProgramError(f"the length of variable {self.name!r} {self.shape} is known only at run time")

    def __iter__(self):
        return (self[i] for i in range(len(self)))


class Parameter(Variable):
    """A persistable variable that optimizers update."""

    def __init__(self, block, shape=None, dtype="float32", type=VarType.LOD_TENSOR, name=None,
                 trainable=True, optimize_attr=None, regularizer=None, do_model_average=None,
                 need_clip=True, gradient_clip_attr=None, lod_level=0, stop_gradient=None,
                 error_clip=None, persistable=True, is_distributed=False):
        if shape is None or any(size <= 0 for size in shape):
            raise ProgramError(f"parameter {name!r}: expected a shape of positive sizes, got {shape!r}")
        super().__init__(block, name, shape, dtype, lod_level, persistable=True, type=type,
                         stop_gradient=not trainable if stop_gradient is None else stop_gradient,
                         error_clip=error_clip)
        self.trainable = trainable
        self.optimize_attr = dict(optimize_attr or {"learning_rate": 1.0})
        self.regularizer = regularizer
        self.do_model_average = do_model_average
        self.need_clip = need_clip
        self.gradient_clip_attr = gradient_clip_attr
        self.is_distributed = is_distributed

    def copy_to(self, block):
        """Enter an equal parameter in another block and return it."""
        return block.create_parameter(
            name=self.name, shape=self.shape, dtype=self._dtype, trainable=self.trainable,
            optimize_attr=self.optimize_attr, regularizer=self.regularizer,
            do_model_average=self.do_model_average, need_clip=self.need_clip,
            gradient_clip_attr=self.gradient_clip_attr, stop_gradient=self.stop_gradient,
            is_distributed=self.is_distributed)


def as_shape(shape, name):
    """A tuple of ints; None and -1 stand for a size known at run time."""
    if isinstance(shape, int):
        shape = [shape]
    try:
        return tuple(-1 if size is None else int(size) for size in shape)
    except (TypeError, ValueError):
        raise ProgramError(f"variable {name!r}: expected a shape of integers, got {shape!r}") from None
