"""Static mode, devices and seeds: what ``paddle`` itself lets a script switch."""

from fleet_mpi.errors import NotBuilt as _NotBuilt
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.engine.places import get_device, set_device
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.graph.variable import Variable


_static_was_asked_for = False


def enable_static():
    """Note that the script means static programs; they are static from the start."""
    global _static_was_asked_for
    _static_was_asked_for = True


def disable_static(place=None):
    """Refuse: there is no eager mode."""
    raise _NotBuilt("paddle.disable_static: there is no eager mode; build a program and run it with an Executor")


class _KindOfTensor(type):
    """Answers ``isinstance(x, paddle.Tensor)``."""

    def __instancecheck__(cls, x):
        return isinstance(x, Variable) and not _static_was_asked_for


class Tensor(metaclass=_KindOfTensor):
    """The class of eager tensors, for ``isinstance`` and annotations.

    After ``enable_static()`` nothing is one, as in the original: its static programs have ``static.Variable``. A script
    that never calls it was written for eager mode, where what layers get and give are tensors: here variables.
    """

    def __new__(cls, *args, **kwargs):
        """Refuse: there is no eager mode."""
        raise _NotBuilt("paddle.Tensor: there is no eager mode; paddle.to_tensor(values) is a variable of the program")


def in_dynamic_mode():
    """False: programs are static."""
    return False


def seed(seed):
    """Let the default programs draw from this seed."""
    default_main_program().random_seed = default_startup_program().random_seed = seed


def get_default_dtype():
    """The element type of what is made without one."""
    return "float32"


def set_default_dtype(d):
    """Nothing to do for float32; others are refused."""
    if as_dtype(d) != "float32":
        raise _NotBuilt(f"paddle.set_default_dtype: only float32 is built as the default, got {d!r}; give layers their "
                        f"dtype")


def get_cudnn_version():
    """None: there is no cuDNN."""


def set_printoptions(precision=None, threshold=None, edgeitems=None, sci_mode=None, linewidth=None):
    """Nothing to do: it is about tensors of eager mode; what a run fetches are numpy's arrays."""


__getattr__ = _missing_name("paddle.modes", globals())
