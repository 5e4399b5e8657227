"""Metrics as part of a program: they keep their state in persistable variables and are updated at every step."""

from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.types import VarType


def accuracy(input, label, k=1, correct=None, total=None):
    """The share of rows whose label is among the ``k`` best classes, float32 [1].

    ``correct`` and ``total``, where given, take the counts of this step (int32).
    """
    best = LayerHelper("top_k")
    values = best.create_variable_for_type_inference(input.dtype)
    indices = best.create_variable_for_type_inference("int64", stop_gradient=True)
    best.append_op("top_k", {"X": [input]}, {"Out": [values], "Indices": [indices]}, {"k": k})
    helper = LayerHelper("accuracy")
    share = helper.create_variable_for_type_inference("float32", stop_gradient=True)
    correct = correct if correct is not None else helper.create_variable_for_type_inference("int32")
    total = total if total is not None else helper.create_variable_for_type_inference("int32")
    helper.append_op("accuracy", {"Out": [values], "Indices": [indices], "Label": [label]},
                     {"Accuracy": [share], "Correct": [correct], "Total": [total]})
    return share


def auc(input, label, curve="ROC", num_thresholds=2 ** 12 - 1, topk=1, slide_steps=1):
    """The area under the ROC curve: over all steps, and over the last ``slide_steps``.

    Returns (auc, batch auc, [batch positives, batch negatives, positives, negatives]); the areas are
    float64 [1], the states int64 histograms over the last column of ``input``.
    """
    helper = LayerHelper("auc")
    bins = num_thresholds + 1
    whole, batch = (helper.create_variable_for_type_inference("float64", stop_gradient=True) for _ in range(2))
    shapes = [[(1 + slide_steps) * bins + 1]] * 2 + [[1, bins]] * 2
    states = [_state(helper, shape) for shape in shapes]
    for area, (positive, negative), steps in ((batch, states[:2], slide_steps), (whole, states[2:], 0)):
        helper.append_op("auc", {"Predict": [input], "Label": [label], "StatPos": [positive], "StatNeg": [negative]},
                         {"AUC": [area], "StatPosOut": [positive], "StatNegOut": [negative]},
                         {"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps})
    return whole, batch, states


def _state(helper, shape):
    # The original's name: tools that read the state ask for _generated_var_2 and _generated_var_3.
    var = helper.create_global_variable(name=unique_name.generate("_generated_var"), persistable=True,
                                        dtype=VarType.INT64, shape=shape, stop_gradient=True)
    helper.set_variable_initializer(var, Constant(0))
    return var


def mean_iou(input, label, num_classes):
    """(mean over classes of intersection over union, how often each class was wrong, and right)."""
    helper = LayerHelper("mean_iou")
    mean = helper.create_variable_for_type_inference("float32", stop_gradient=True)
    wrong, correct = (helper.create_variable_for_type_inference("int32", stop_gradient=True) for _ in range(2))
    helper.append_op("mean_iou", {"Predictions": [input], "Labels": [label]},
                     {"OutMeanIou": [mean], "OutWrong": [wrong], "OutCorrect": [correct]},
                     {"num_classes": int(num_classes)})
    return mean, wrong, correct
