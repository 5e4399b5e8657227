"""Regularizers: weight decay, added to a parameter's gradient before the optimizer sees it.

The gradient keeps its variable; what the optimizer reads is a new one, ``<gradient>@REGULARIZED``. A
row gradient becomes dense by it, as in the original: every row of a table decays, touched or not.
"""

from fleet_mpi.program.graph.unique_name import name_scope

DECAY, REGULARIZED = "@DECAY", "@REGULARIZED"


class Regularizer:
    """Base: ``append(block, param, grad)`` adds the ops and returns the new gradient."""

    def __init__(self, regularization_coeff=0.0):
        self.regularization_coeff = float(regularization_coeff)

    def __repr__(self):
        return f"{type(self).__name__}({self.regularization_coeff})"

    def __call__(self, param, grad, block):
        """Add the ops of the decay term alone; returns its variable."""
        decay = new_like(block, grad.name + DECAY, param)
        self.append_decay(block, param, decay)
        return decay

    def append_decay(self, block, param, decay):
        """Add the ops that fill ``decay``."""
        raise NotImplementedError(type(self).__name__)

    def append(self, block, param, grad):
        """Add decay term and sum; returns the gradient that the optimizer shall read."""
        decay = self(param, grad, block)
        total = new_like(block, grad.name + REGULARIZED, param)
        block.append_op("sum", {"X": [grad, decay]}, {"Out": [total]})
        return total


class L2Decay(Regularizer):
    """coefficient times the parameter."""

    def append_decay(self, block, param, decay):
        """One scale op."""
        block.append_op("scale", {"X": [param]}, {"Out": [decay]}, {"scale": self.regularization_coeff})


class L1Decay(Regularizer):
    """coefficient times the parameter's sign."""

    def append_decay(self, block, param, decay):
        """sign, then scale."""
        sign = new_like(block, decay.name + "@SIGN", param)
        block.append_op("sign", {"X": [param]}, {"Out": [sign]})
        block.append_op("scale", {"X": [sign]}, {"Out": [decay]}, {"scale": self.regularization_coeff})


def new_like(block, name, param):
    """A temporary of a parameter's shape and type, that no gradient flows to."""
    return block.create_var(name=name, shape=param.shape, dtype=param.dtype, stop_gradient=True)


def append_regularization_ops(parameters_and_grads, regularization=None, source_of=None):
    """Regularise every pair: by the parameter's own regularizer, else by the one given; returns the new pairs.

    ``source_of`` maps a gradient's name to the one that backward gave (they differ after clipping):
    ops are marked with that.
    """
    pairs = []
    for param, grad in parameters_and_grads:
        chosen = getattr(param, "regularizer", None) or regularization
        if grad is not None and chosen is not None:
            program = param.block.program
            source = (source_of or {}).get(grad.name, grad.name)
            with program._optimized_guard([param.name, source]), name_scope("regularization"):
                grad = chosen.append(program.current_block(), param, grad)
        pairs.append((param, grad))
    return pairs


L1DecayRegularizer, L2DecayRegularizer, WeightDecayRegularizer = L1Decay, L2Decay, Regularizer
