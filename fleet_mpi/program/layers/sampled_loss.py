"""Losses over many classes that look at a few of them: drawn ones (nce, sampled softmax), or a path of a tree."""

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import NumpyArray
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.layers.loss import softmax_with_cross_entropy
from fleet_mpi.program.layers.manipulation import one_hot
from fleet_mpi.program.layers.single_op import single_op
from fleet_mpi.program.ops.class_sampling import CUSTOM, LOG_UNIFORM, UNIFORM, alias_table

SAMPLERS = {"uniform": UNIFORM, "log_uniform": LOG_UNIFORM, "custom_dist": CUSTOM}


def nce(input, label, num_total_classes, sample_weight=None, param_attr=None, bias_attr=None, num_neg_samples=None,
        name=None, sampler="uniform", custom_dist=None, seed=0, is_sparse=False):
    """Noise contrastive estimation against ``num_neg_samples`` (10) drawn classes, divided by these plus one; [rows,
    1].

    With ``is_sparse`` the weight's gradient has the rows of labels and drawn classes only; servers send no others.
    """
    helper = LayerHelper("nce", input=input, param_attr=param_attr, bias_attr=bias_attr, name=name)
    if sampler not in SAMPLERS:
        raise UsageError(f"nce: sampler: expected one of {', '.join(SAMPLERS)}, got {sampler!r}")
    count = 10 if num_neg_samples is None else int(num_neg_samples)
    inputs = {"Input": [helper.input()], "Label": [helper.require(label, "label")],
              **_weights(helper, num_total_classes, input)}
    if sample_weight is not None:
        inputs["SampleWeight"] = [helper.require(sample_weight, "sample_weight")]
    if sampler == "custom_dist":
        inputs.update(_distribution(helper, custom_dist, num_total_classes))
    cost, shares = (helper.create_variable_for_type_inference(input.dtype) for _ in range(2))
    labels = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    shares.stop_gradient = True
    helper.append_op("nce", inputs, {"Cost": [cost], "SampleLogits": [shares], "SampleLabels": [labels]}, {
        "num_total_classes": int(num_total_classes), "num_neg_samples": count, "sampler": SAMPLERS[sampler],
        "seed": seed, "is_sparse": is_sparse, "remote_prefetch": bool(is_sparse)})
    return cost / (count + 1)


def _weights(helper, rows, input, names=("Weight", "Bias")):
    """A row for each class or node, and a bias unless bias_attr is False."""
    made = {names[0]: [helper.create_parameter(helper.param_attr, [rows, input.shape[1]], input.dtype)]}
    if helper.bias_attr is not False:
        made[names[1]] = [helper.create_parameter(helper.bias_attr, [rows, 1], input.dtype, is_bias=True)]
    return made


def _distribution(helper, given, classes):
    """Probabilities by class, and the table by which they are drawn, as parameters that are never trained."""
    if given is None or len(given) != classes:
        raise UsageError(f"nce: sampler='custom_dist' needs custom_dist, a probability for each of {classes} classes, "
                         f"got {None if given is None else len(given)}")
    alias, kept = alias_table(given)
    held = {"CustomDistProbs": np.array(given, np.float32), "CustomDistAlias": np.array(alias, np.int32),
            "CustomDistAliasProbs": np.array(kept, np.float32)}
    made = {}
    for slot, values in held.items():
        attr = ParamAttr(initializer=NumpyArray(values), trainable=False)
        made[slot] = [helper.create_parameter(attr, values.shape, values.dtype)]
        made[slot][0].stop_gradient = True
    return made


def hsigmoid(input, label, num_classes, param_attr=None, bias_attr=None, name=None, path_table=None, path_code=None,
             is_custom=False, is_sparse=False):
    """The cost of the decisions on the way to the label in a binary tree of classes, [rows, 1].

    The tree is complete unless ``is_custom``: then each row's ``path_table`` names the nodes from the root to its
    label (less than ``num_classes``, -1 behind the end) and ``path_code`` the decisions, 0 or 1.
    """
    helper = LayerHelper("hierarchical_sigmoid", input=input, param_attr=param_attr, bias_attr=bias_attr, name=name)
    if is_custom and (path_table is None or path_code is None):
        raise UsageError("hsigmoid: is_custom=True needs path_table and path_code")
    if not is_custom and (num_classes is None or num_classes < 2):
        raise UsageError(f"hsigmoid: expected num_classes from 2 up, got {num_classes!r}")
    inputs = {"X": [helper.input()], "Label": [helper.require(label, "label")],
              **_weights(helper, num_classes if is_custom else num_classes - 1, input, ("W", "Bias"))}
    if is_custom:
        inputs.update({"PathTable": [path_table], "PathCode": [path_code]})
    out, costs = (helper.create_variable_for_type_inference(input.dtype) for _ in range(2))
    costs.stop_gradient = True
    helper.append_op("hierarchical_sigmoid", inputs, {"Out": [out], "PreOut": [costs]}, {
        "num_classes": int(num_classes), "is_sparse": is_sparse, "remote_prefetch": bool(is_sparse)})
    return out


def sampled_softmax_with_cross_entropy(logits, label, num_samples, num_true=1, remove_accidental_hits=True,
                                       use_customized_samples=False, customized_samples=None,
                                       customized_probabilities=None, seed=0):
    """The cross entropy over the labels and ``num_samples`` drawn classes, logits being corrected by their chances."""
    helper = LayerHelper("sample_logits")
    if use_customized_samples and (customized_samples is None or customized_probabilities is None):
        raise UsageError("sampled_softmax_with_cross_entropy: use_customized_samples=True needs customized_samples "
                         "and customized_probabilities")
    inputs = {"Logits": [helper.require(logits, "logits")], "Labels": [helper.require(label, "label")]}
    if use_customized_samples:
        inputs.update({"CustomizedSamples": [customized_samples],
                       "CustomizedProbabilities": [customized_probabilities]})
    made = {slot: [helper.create_variable_for_type_inference(dtype, stop_gradient=slot != "SampledLogits")]
            for slot, dtype in (("Samples", "int64"), ("Probabilities", logits.dtype),
                                ("SampledLogits", logits.dtype), ("SampledLabels", "int64"))}
    helper.append_op("sample_logits", inputs, made, {
        "num_samples": int(num_samples), "use_customized_samples": use_customized_samples,
        "remove_accidental_hits": remove_accidental_hits, "uniq": True, "seed": seed})
    targets = one_hot(made["SampledLabels"][0], num_samples + 1)
    loss = softmax_with_cross_entropy(made["SampledLogits"][0], targets, soft_label=True)
    return loss / num_true


def sampling_id(x, min=0.0, max=1.0, seed=0, dtype="float32"):
    """For each row of probabilities a column, drawn by them; int64 [rows]."""
    out = single_op("sampling_id", {"X": x}, {"min": min, "max": max, "seed": seed}, dtype="int64")
    out.stop_gradient = True
    return out
