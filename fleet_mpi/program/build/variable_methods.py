"""Methods of variables: ``x.reshape([0, -1])``, ``x.sum(axis=1)`` are the layers of 2.x with ``x`` as their first
argument.

Importing this module gives them to Variable; the layers are imported when one is called.
"""

import importlib

from fleet_mpi.program.graph.variable import Variable

# Module of program/layers: its functions that are methods, with the method's name where that differs.
METHODS = {
    "functional_tensor": "argmax argmin argsort broadcast_to cast chunk index_select nonzero reshape roll scatter "
                         "scatter_nd_add sort split squeeze t transpose unbind unique unsqueeze unstack",
    "functional_math": "add add_n all any clip cumsum divide equal floor_divide floor_mod greater_equal greater_than "
                       "is_empty less_equal less_than logsumexp max maximum mean min minimum mm mod multiply norm "
                       "not_equal pow prod remainder std subtract sum var",
    "manipulation": "expand_as_v2:expand_as expand_to:expand flatten_contiguous_range:flatten flip gather_axis:gather "
                    "gather_nd strided_slice tile topk_along:topk",
    "math": "bmm dot matmul_v2:matmul scale",
    "activation": "abs acos asin atan ceil cos cosh erf exp floor log log1p log2 log10 reciprocal round rsqrt sigmoid "
                  "sign sin sinh sqrt square stanh tan tanh",
    "comparison": "equal_all logical_and logical_not logical_or logical_xor each_isfinite:isfinite each_isinf:isinf "
                  "each_isnan:isnan",
    "linear_algebra": "cholesky cross dist inverse kron mv trace",
    "positions": "allclose index_sample masked_select multinomial rank tril triu",
    "statistics": "histogram median",
    "tensor": "assign:clone size:numel",
}


def layer_method(module, name, method):
    """The method that calls one layer."""
    def call(self, *args, **kwargs):
        layers = importlib.import_module(f"fleet_mpi.program.layers.{module}")
        return getattr(layers, name)(self, *args, **kwargs)
    call.__name__ = call.__qualname__ = method
    call.__doc__ = f"``layers.{module}.{name}`` of this variable."
    return call


def detach(self):
    """A copy through which no gradient flows."""
    made = self.clone()
    made.stop_gradient = True
    return made


def dim(self):
    """How many dimensions, as a number."""
    return len(self.shape)


def _give_methods():
    for module, names in METHODS.items():
        for pair in names.split():
            name, _, method = pair.partition(":")
            setattr(Variable, method or name, layer_method(module, name, method or name))
    Variable.detach, Variable.dim, Variable.ndimension = detach, dim, dim
    Variable.ndim = property(dim)


_give_methods()
