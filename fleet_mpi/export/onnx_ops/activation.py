"""Functions of one variable: by ONNX's own op where there is one, else by the formula that the op itself computes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fleet_mpi.program.engine.formula import Term
from fleet_mpi.program.graph.types import is_float
from fleet_mpi.program.ops.activation import FORMULAS

if TYPE_CHECKING:
    from fleet_mpi.export.onnx_graph import Step

# {type: ONNX's op, {its attribute: ours}}
DIRECT: dict[str, tuple[str, dict[str, str]]] = {
    "relu": ("Relu", {}), "sigmoid": ("Sigmoid", {}), "tanh": ("Tanh", {}), "log": ("Log", {}), "sqrt": ("Sqrt", {}),
    "abs": ("Abs", {}), "sign": ("Sign", {}), "floor": ("Floor", {}), "ceil": ("Ceil", {}), "sin": ("Sin", {}),
    "cos": ("Cos", {}), "tan": ("Tan", {}), "asin": ("Asin", {}), "acos": ("Acos", {}), "atan": ("Atan", {}),
    "sinh": ("Sinh", {}), "cosh": ("Cosh", {}), "erf": ("Erf", {}), "softsign": ("Softsign", {}),
    "reciprocal": ("Reciprocal", {}), "leaky_relu": ("LeakyRelu", {"alpha": "alpha"}),
    "elu": ("Elu", {"alpha": "alpha"}),
    "selu": ("Selu", {"gamma": "scale", "alpha": "alpha"}),
    "hard_sigmoid": ("HardSigmoid", {"alpha": "slope", "beta": "offset"}),
    "thresholded_relu": ("ThresholdedRelu", {"alpha": "threshold"}),
    "softshrink": ("Shrink", {"bias": "lambda", "lambd": "lambda"}), "hard_shrink": ("Shrink", {"lambd": "threshold"}),
}

# The functions of formulas. Comparisons give 1 or 0, to multiply with.
FUNCTIONS = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow", "negative": "Neg",
             "absolute": "Abs", "exp": "Exp", "sqrt": "Sqrt", "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan",
             "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan",
             "floor": "Floor", "ceil": "Ceil", "sign": "Sign", "reciprocal": "Reciprocal", "maximum": "Max",
             "minimum": "Min", "erf": "Erf", "sigmoid": "Sigmoid"}
COMPARISONS = {"less": "Less", "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual"}


def direct(k: Step) -> None:
    """ONNX's own op."""
    type, names = DIRECT[k.op.type]
    defaults = FORMULAS[k.op.type][1] if names else {}
    k.put("Out", k.node(type, k["X"], **{name: float(k.attr(ours, defaults[ours])) for name, ours in names.items()}))


def by_formula(k: Step) -> None:
    """The op's formula, node by node."""
    forward, attrs = FORMULAS[k.op.type]
    given = [default.__class__(k.attr(name, default)) for name, default in attrs.items()]
    x = Term()
    result = forward(x, *given)
    if not isinstance(result, Term):   # the same number for any x
        k.put("Out", k.node("Expand", k.constant(result, k.dtype("X")), k.node("Shape", k["X"])))
        return
    k.put("Out", FormulaNodes(k, x, k["X"]).value(result))


class FormulaNodes:
    """The values of the terms of one formula; a term that is used twice is one node."""

    def __init__(self, k: Step, x: Term, value: str) -> None:
        self.k, self.dtype, self.values = k, k.dtype("X"), {id(x): value}

    def value(self, term: object) -> str:
        """The value of a term or number."""
        if not isinstance(term, Term):
            return self.k.constant(term, self.dtype)
        if id(term) not in self.values:
            self.values[id(term)] = self.node(term.function, [self.value(one) for one in term.operands])
        return self.values[id(term)]

    def node(self, function: str, operands: list[str]) -> str:
        """The value of one function."""
        k, x = self.k, operands[0]
        if function in FUNCTIONS:
            return k.node(FUNCTIONS[function], *operands)
        if function in COMPARISONS:
            return k.cast(k.node(COMPARISONS[function], *operands), self.dtype)
        if function == "square":
            return k.node("Mul", x, x)
        if function == "trunc":
            return k.node("Mul", k.node("Sign", x), k.node("Floor", k.node("Abs", x)))
        if function == "expm1":
            return k.node("Sub", k.node("Exp", x), self.value(1))
        if function == "log1p":
            return k.node("Log", k.node("Add", x, self.value(1)))
        if function in ("log2", "log10"):
            return k.node("Mul", k.node("Log", x), self.value(1 / math.log(int(function[3:]))))
        k.refuse(f"its formula has {function}")


def exponential(k: Step) -> None:
    """Of whole numbers the whole part."""
    if is_float(k.dtype("X")):
        k.put("Out", k.node("Exp", k["X"]))
    else:
        k.put("Out", k.cast(k.node("Exp", k.cast(k["X"], "float64")), k.dtype("X")))


def softplus(k: Step) -> None:
    """ONNX's has neither beta nor threshold; from there on both are straight lines to the last bit but few."""
    if float(k.attr("beta", 1.0)) == 1.0 and float(k.attr("threshold", 20.0)) >= 20.0:
        k.put("Out", k.node("Softplus", k["X"]))
    else:
        by_formula(k)


def prelu(k: Step) -> None:
    """Alpha stretched from the right: one, one per channel, one per element of a sample."""
    rank, mode = len(k.shape("X")), k.attr("mode", "all")
    sizes = {"all": [1], "channel": [-1] + [1] * (rank - 2), "element": [1, *k.shape("X")[1:]]}[mode]
    k.put("Out", k.node("PRelu", k["X"], k.reshape(k["Alpha"], sizes)))


CONVERTERS = {**dict.fromkeys(FORMULAS, by_formula), **dict.fromkeys(DIRECT, direct), "exp": exponential,
              "softplus": softplus, "prelu": prelu}
