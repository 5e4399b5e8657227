"""WeightNormParamAttr: a weight as a length times a direction, w = g v / ||v||, so that both are trained apart.

``<name>_v`` has the weight's shape and initializer, ``<name>_g`` the norms over all dimensions but one; the weight
itself is computed by the program.
"""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import default_for
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.graph import unique_name


class WeightNormParamAttr(ParamAttr):
    """A ParamAttr whose weight is normalised over all dimensions but ``dim`` (None: over all)."""

    params_with_weight_norm = []  # the weights made, as scripts of the original look for them

    def __init__(self, dim=None, name=None, initializer=None, learning_rate=1.0, regularizer=None, trainable=True,
                 gradient_clip=None, do_model_average=False, need_clip=True):
        super().__init__(name, initializer, learning_rate, regularizer, trainable, gradient_clip, do_model_average,
                         need_clip)
        self.dim = dim

    def make(self, helper, shape, dtype, is_bias, default_initializer):
        """The weight, as a variable of the main program; its two parameters in both programs."""
        if self.dim is not None and not -len(shape) <= self.dim < len(shape):
            raise UsageError(f"WeightNormParamAttr: dim {self.dim} is none of the {len(shape)} dimensions of "
                             f"{self.name!r}")
        kept = None if self.dim is None else self.dim % len(shape)
        lengths = [size if number == kept else 1 for number, size in enumerate(shape)]
        startup, main = helper.startup_program.global_block(), helper.main_program.global_block()
        if self.name + "_v" not in startup.vars:
            first = self._enter(startup, "_v", shape, dtype,
                                self.initializer or default_for(is_bias, default_initializer))
            _norm(startup, first, kept, out=self._enter(startup, "_g", lengths, dtype))
        v, g = self._enter(main, "_v", shape, dtype), self._enter(main, "_g", lengths, dtype)
        scale = _op(helper.block, "elementwise_div", {"X": [g], "Y": [_norm(helper.block, v, kept)]}, {"axis": -1})
        weight = _op(helper.block, "elementwise_mul", {"X": [v], "Y": [scale]}, {"axis": -1})
        self.params_with_weight_norm.append(weight)
        return weight

    def _enter(self, block, suffix, shape, dtype, initializer=None):
        return block.create_parameter(name=self.name + suffix, shape=list(shape), dtype=dtype, initializer=initializer,
                                      **self.fields())


def _norm(block, x, kept, out=None):
    """The Euclidean norm over all dimensions but one, which stay as ones."""
    dims = [number for number in range(len(x.shape)) if number != kept]
    squares = _op(block, "square", {"X": [x]})
    total = _op(block, "reduce_sum", {"X": [squares]}, {"dim": dims, "keep_dim": True, "reduce_all": kept is None})
    return _op(block, "sqrt", {"X": [total]}, out=out)


def _op(block, type, inputs, attrs=None, out=None):
    if out is None:
        out = block.create_var(name=unique_name.generate("weight_norm.tmp"), dtype=inputs["X"][0].dtype)
    block.append_op(type, inputs, {"Out": [out]}, attrs or {})
    return out
