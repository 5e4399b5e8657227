"""Ops of program/ops/difference_loss.py."""

import math

import numpy as np

from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(1)


def numbers(*shape):
    return rng.normal(0, 2, shape)


def each(function, *arrays):
    return np.reshape([function(*values) for values in zip(*(one.flat for one in arrays))], arrays[0].shape)


def huber(inputs, attrs):
    delta = attrs["delta"]
    residual = inputs["Y"] - inputs["X"]
    return {"Out": each(lambda r: r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2), residual),
            "Residual": residual}


def smooth_l1(inputs, attrs):
    square = attrs["sigma"] ** 2
    ones = np.ones_like(inputs["X"])
    diff = (inputs["X"] - inputs["Y"]) * inputs.get("InsideWeight", ones)
    loss = each(lambda d: square * d * d / 2 if abs(d) < 1 / square else abs(d) - 0.5 / square, diff)
    loss = loss * inputs.get("OutsideWeight", ones)
    return {"Out": loss.reshape(len(loss), -1).sum(1, keepdims=True), "Diff": diff}


def rank(inputs, attrs):
    return {"Out": each(lambda y, left, right: math.log(1 + math.exp(left - right)) - y * (left - right),
                        inputs["Label"], inputs["Left"], inputs["Right"])}


def margin_rank(inputs, attrs):
    made = each(lambda a, b, y: max(0.0, -y * (a - b) + attrs["margin"]), inputs["X1"], inputs["X2"], inputs["Label"])
    return {"Out": made, "Activated": (made > 0).astype(float)}


def kldiv(inputs, attrs):
    made = each(lambda x, t: t * (math.log(t) - x) if t > 0 else 0.0, inputs["X"], inputs["Target"])
    reduce = {"none": lambda a: a, "mean": lambda a: a.mean().reshape(1), "sum": lambda a: a.sum().reshape(1),
              "batchmean": lambda a: (a.sum() / len(a)).reshape(1)}
    return {"Loss": reduce[attrs["reduction"]](made)}


def smoothed(inputs, attrs):
    x, epsilon = inputs["X"], attrs["epsilon"]
    prior = inputs.get("PriorDist", np.full((1, x.shape[-1]), 1 / x.shape[-1]))
    return {"Out": (1 - epsilon) * x + epsilon * prior.reshape(-1)}


def bpr(inputs, attrs):
    rows = [sum(math.log(1 + math.exp(row[j] - row[label])) for j in range(len(row)) if j != label) / (len(row) - 1)
            for row, label in zip(inputs["X"], inputs["Label"].flat)]
    return {"Y": np.reshape(rows, (-1, 1))}


CASES = [Case("huber_loss", {"X": numbers(*shape), "Y": numbers(*shape)}, {"delta": delta}, huber, "X Y",
              note=f"{shape}{delta}") for shape, delta in (((4, 1), 1.0), ((2, 3), 0.3), ((5,), 4.0))]
CASES += [Case("smooth_l1_loss", {"X": numbers(*shape), "Y": numbers(*shape)}, {"sigma": sigma}, smooth_l1, "X Y",
               "Out", note=f"{shape}{sigma}") for shape, sigma in (((3, 2), 1.0), ((2, 3, 2), 2.0), ((4, 1), 0.5))]
CASES += [
    Case("smooth_l1_loss", {"X": numbers(3, 2), "Y": numbers(3, 2), "InsideWeight": numbers(3, 2),
                            "OutsideWeight": numbers(3, 2)}, {"sigma": 1.0}, smooth_l1, "X Y", note="weights"),
    Case("smooth_l1_loss", {"X": numbers(3, 2), "Y": numbers(3, 2)}, {"sigma": 1.0}, smooth_l1, "Y", note="Y only"),
    Case("rank_loss", {"Label": np.array([[1.], [0.], [0.5]]), "Left": numbers(3, 1), "Right": numbers(3, 1)}, {},
         rank, "Left Right"),
    Case("margin_rank_loss", {"X1": numbers(5, 1), "X2": numbers(5, 1),
                              "Label": np.array([[1.], [-1.], [1.], [-1.], [1.]])}, {"margin": 0.1},
         margin_rank, "X1 X2"),
    Case("margin_rank_loss", {"X1": numbers(2, 2), "X2": numbers(2, 2), "Label": np.ones((2, 2))}, {"margin": 2.0},
         margin_rank, "X1", note="X1 only"),
    Case("label_smooth", {"X": np.eye(4)[[1, 3, 0]]}, {"epsilon": 0.1}, smoothed, "X"),
    Case("label_smooth", {"X": numbers(2, 2, 3), "PriorDist": np.array([[0.5, 0.2, 0.3]])}, {"epsilon": 0.3},
         smoothed, "X", note="prior"),
    Case("bpr_loss", {"X": numbers(3, 4), "Label": np.array([[1], [3], [0]])}, {}, bpr, "X", "Y"),
]
CASES += [Case("kldiv_loss", {"X": np.log(rng.uniform(0.1, 0.9, (3, 2))),
                             "Target": np.array([[0.2, 0], [0.5, 1], [0, 0.7]])},
               {"reduction": way}, kldiv, "X", "Loss", note=way) for way in ("mean", "none", "sum", "batchmean")]

test_forward, test_gradient, test_device = checks(CASES)
