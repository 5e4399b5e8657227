"""Regularizers: weight decay, added to a parameter's gradient before the optimizer sees it."""


class Regularizer:
    """Base: ``append(block, param, grad)`` adds the ops and returns the new gradient."""

    def __init__(self, regularization_coeff=0.0):
        self.regularization_coeff = regularization_coeff

    def __repr__(self):
        return f"{type(self).__name__}({self.regularization_coeff})"
