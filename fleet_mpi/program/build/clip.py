"""Clipping of gradients: by value, by the norm of each, by the norm of all together.

A clip is given to an optimizer (``grad_clip``), to parameters (``set_gradient_clip``, ParamAttr's
``gradient_clip``), or to a variable whose gradient on the way back shall be clipped (``ErrorClipByValue``).
It adds ops and returns new pairs; the unclipped gradient keeps its variable. Row gradients are merged by
id first, so that the norm is that of the gradient and not of its pieces.
"""

import copy
from contextlib import contextmanager

from fleet_mpi import notices
from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.graph.unique_name import name_scope
from fleet_mpi.program.graph.variable import Variable

CLIPPED, MERGED = "@CLIP", "@MERGED"


class GradientClip:
    """Base: calling it with pairs adds the ops and returns pairs with clipped gradients.

    ``need_clip(param)`` tells which parameters are clipped; by default those whose ``need_clip`` is not False.
    """

    def __init__(self, need_clip=None):
        if need_clip is not None and not callable(need_clip):
            raise UsageError(f"{type(self).__name__}: need_clip must be a function of a parameter that returns "
                             f"True or False, got {type(need_clip).__name__}")
        self._need_clip = need_clip

    def __call__(self, params_grads):
        """Clip; the pairs come back in the same order."""
        wanted = [(param, grad) for param, grad in params_grads if grad is not None and self.is_wanted(param)]
        done = {param.name: grad for param, grad in self.clip(wanted)} if wanted else {}
        return [(param, done.get(param.name, grad)) for param, grad in params_grads]

    def is_wanted(self, param):
        """Whether this parameter's gradient is clipped."""
        return self._need_clip(param) if self._need_clip is not None else getattr(param, "need_clip", True)

    def clip(self, pairs):
        """Add the ops; by default one op per gradient."""
        return [(param, self._clip_one(param, grad)) for param, grad in pairs]

    def _clip_one(self, param, grad):
        with marked(param, grad) as block:
            merged = merged_rows(block, grad)
            type, attrs = self.op_for(merged)
            return append_like(block, type, merged, grad.name + CLIPPED, attrs)

    def op_for(self, grad):
        """The op type and its attributes that clip one gradient."""
        raise NotImplementedError(type(self).__name__)


class ClipByValue(GradientClip):
    """Every element into [min, max]; ``min`` is -max where it is not given."""

    def __init__(self, max, min=None, need_clip=None):
        super().__init__(need_clip)
        self.max, self.min = bounds(type(self).__name__, max, min)

    def op_for(self, grad):
        """clip; over the touched rows for a row gradient."""
        return "clip_rows" if is_rows(grad) else "clip", {"min": self.min, "max": self.max}

    def __str__(self):
        return f"clip by value, from {self.min} to {self.max}"


class ClipByNorm(GradientClip):
    """Every gradient whose norm is above ``clip_norm`` is scaled down to it."""

    def __init__(self, clip_norm, need_clip=None):
        super().__init__(need_clip)
        self.clip_norm = positive(type(self).__name__, clip_norm)

    def op_for(self, grad):
        """clip_by_norm."""
        return "clip_by_norm", {"max_norm": self.clip_norm}

    def __str__(self):
        return f"clip by norm {self.clip_norm}"


class ClipByGlobalNorm(GradientClip):
    """All gradients are scaled by one factor where the norm of all together is above ``clip_norm``.

    Squares are summed per gradient in float64, over a tree that does not depend on how a variable is cut,
    then over the gradients in the order of the parameters' names.
    """

    def __init__(self, clip_norm, group_name="default_group", need_clip=None):
        super().__init__(need_clip)
        self.clip_norm = positive(type(self).__name__, clip_norm)
        self.group_name = group_name

    def clip(self, pairs):
        """Add squared_l2_norm per gradient, their sum, the factor, and one product per gradient."""
        pairs = sorted(pairs, key=lambda pair: pair[0].name)
        merged, squares = {}, []
        for param, grad in pairs:
            with marked(param, grad) as block:
                merged[param.name] = merged_rows(block, grad)
                squares.append(append_number(block, "squared_l2_norm", [merged[param.name]], grad.name + "@SQUARES"))
        program = pairs[0][0].block.program
        with program._optimized_guard([]), name_scope("gradient_clip"):
            block = program.current_block()
            total = append_number(block, "sum", squares, squares[0].name + "@SUM")
            factor = append_number(block, "global_norm_scale", [total], total.name + "@SCALE",
                                   {"clip_norm": self.clip_norm})
        return [(param, self._scaled(param, grad, merged[param.name], factor)) for param, grad in pairs]

    @staticmethod
    def _scaled(param, grad, merged, factor):
        with marked(param, grad) as block:
            return append_like(block, "multiply_by_scale", merged, grad.name + CLIPPED, {}, {"Scale": [factor]})

    def __str__(self):
        return f"clip by global norm {self.clip_norm}"


@contextmanager
def marked(param, grad):
    """Within the block ops are the optimizer's, for this pair; gives the block they go into."""
    program = param.block.program
    with program._optimized_guard([param, grad]), name_scope("gradient_clip"):
        yield program.current_block()


def is_rows(grad):
    """Whether a gradient is a row gradient."""
    return grad.type == VarType.SELECTED_ROWS


def merged_rows(block, grad):
    """The gradient itself, or, of a row gradient, the variable with its rows merged by id."""
    return append_like(block, "merge_selected_rows", grad, grad.name + MERGED, {}) if is_rows(grad) else grad


def append_like(block, type, grad, name, attrs, more=None):
    """Add an op that makes a new gradient like this one; returns its variable."""
    out = block.create_var(name=name, shape=grad.shape, dtype=grad.dtype, type=grad.type, stop_gradient=True)
    block.append_op(type, {"X": [grad], **(more or {})}, {"Out": [out]}, attrs)
    return out


def append_number(block, type, inputs, name, attrs=None):
    """Add an op that makes one number from some variables; returns its variable."""
    out = block.create_var(name=name, shape=[1], dtype="float64", stop_gradient=True)
    block.append_op(type, {"X": inputs}, {"Out": [out]}, attrs)
    return out


class ErrorClipByValue:
    """Clips the gradient that flows back through one variable, for ``var.set_error_clip``."""

    def __init__(self, max, min=None):
        self.max, self.min = bounds("ErrorClipByValue", max, min)

    def _append_clip_op(self, block, grad_name):
        """In place, so that all ops further back read the clipped one."""
        block.append_op("clip", {"X": [grad_name]}, {"Out": [grad_name]}, {"min": self.min, "max": self.max})

    def __str__(self):
        return f"clip the error by value, from {self.min} to {self.max}"


def set_gradient_clip(clip, param_list=None, program=None):
    """Clip the gradients of these parameters (all that the program has by now), unless the optimizer has a clip."""
    if not isinstance(clip, GradientClip):
        raise UsageError(f"set_gradient_clip: expected a GradientClipByValue, ByNorm or ByGlobalNorm, got "
                         f"{type(clip).__name__}")
    program = program or default_main_program()
    block = program.global_block()
    if any("/optimizer/" in op.attrs.get("op_namescope", "") for op in block.ops):
        notices.log().warning("set_gradient_clip: minimize was called before, so this has no effect on it: "
                    "set the clip first, or give it to the optimizer as grad_clip")
    chosen = param_list if param_list is not None else block.all_parameters()
    for one in chosen:
        param = one if isinstance(one, Variable) else block.var(one)
        param.gradient_clip_attr = copy.copy(clip)


def append_gradient_clip_ops(params_grads):
    """Clip every gradient as its parameter asks; parameters of one global-norm group are clipped together."""
    groups = {}
    for param, grad in params_grads:
        clip = getattr(param, "gradient_clip_attr", None)
        if clip is not None and grad is not None:
            groups.setdefault(_group_key(clip, param), (clip, []))[1].append((param, grad))
    _refuse_mixed_norms([clip for clip, _ in groups.values()])
    done = {param.name: grad for clip, pairs in groups.values() for param, grad in clip(pairs)}
    return [(param, done.get(param.name, grad)) for param, grad in params_grads]


def _group_key(clip, param):
    if isinstance(clip, ClipByGlobalNorm):
        return clip.group_name, clip.clip_norm
    return param.name


def _refuse_mixed_norms(clips):
    norms = {}
    for clip in clips:
        if isinstance(clip, ClipByGlobalNorm) and norms.setdefault(clip.group_name, clip.clip_norm) != clip.clip_norm:
            raise UsageError(f"gradient clip: the parameters of group {clip.group_name!r} ask for different norms, "
                             f"{norms[clip.group_name]} and {clip.clip_norm}: give one, or another group_name")


def bounds(owner, max, min):
    """(max, min) as numbers, ``min`` defaulting to -max."""
    if min is None:
        return positive(owner, max), -float(max)
    if float(min) > float(max):
        raise UsageError(f"{owner}: min {min} is above max {max}")
    return float(max), float(min)


def positive(owner, value):
    """A number above 0."""
    if not float(value) > 0:
        raise UsageError(f"{owner}: expected a bound above 0, got {value!r}")
    return float(value)


GradientClipByValue = ClipGradByValue = ClipByValue
GradientClipByNorm = ClipGradByNorm = ClipByNorm
GradientClipByGlobalNorm = ClipGradByGlobalNorm = ClipByGlobalNorm
GradientClipBase = ClipGradBase = GradientClip
