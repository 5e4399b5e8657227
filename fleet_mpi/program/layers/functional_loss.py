"""Losses under their 2.x names and signatures (``paddle.nn.functional``): reduced to one number unless told not to."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.layers import loss as plain
from fleet_mpi.program.layers.manipulation import squeeze
from fleet_mpi.program.layers.sequence_labels import warpctc
from fleet_mpi.program.layers.single_op import single_op


def cross_entropy(input, label, weight=None, ignore_index=-100, reduction="mean", soft_label=False, axis=-1,
                  use_softmax=True, name=None):
    """The cross entropy of softmax(input), or of ``input`` itself without ``use_softmax``.

    A mean leaves out labels equal to ``ignore_index`` and weighs rows by the ``weight`` of their class.
    """
    _check(reduction, "cross_entropy")
    if use_softmax:
        loss = plain.softmax_with_cross_entropy(input, label, soft_label, ignore_index, axis=axis)
    else:
        loss = plain.cross_entropy(input, label, soft_label, ignore_index)
    if weight is not None:
        if soft_label:
            raise UsageError("cross_entropy: class weights need class numbers as labels, not soft_label=True")
        shares = _class_weights(weight, label, loss, ignore_index)
        loss = _product(loss, shares)
        return _mean_by(loss, shares) if reduction == "mean" else _reduced(loss, reduction)
    if reduction == "mean" and ignore_index != -100 and not soft_label:
        return _mean_by(loss, _counted(label, loss, ignore_index))
    return _reduced(loss, reduction)


def l1_loss(input, label, reduction="mean", name=None):
    """|input - label|."""
    _check(reduction, "l1_loss")
    return _reduced(single_op("abs", {"X": _difference(input, label)}), reduction)


def mse_loss(input, label, reduction="mean", name=None):
    """(input - label)^2."""
    _check(reduction, "mse_loss")
    return _reduced(single_op("square", {"X": _difference(input, label)}), reduction)


def smooth_l1_loss(input, label, reduction="mean", delta=1.0, name=None):
    """Huber's loss."""
    _check(reduction, "smooth_l1_loss")
    return _reduced(plain.huber_loss(input, label, delta), reduction)


def kl_div(input, label, reduction="mean", name=None):
    """The Kullback-Leibler divergence; also reduces by ``batchmean``."""
    return plain.kldiv_loss(input, label, reduction)


def binary_cross_entropy_with_logits(logit, label, weight=None, reduction="mean", pos_weight=None, name=None):
    """The cross entropy of sigmoid(logit) with labels in [0, 1]; ``pos_weight`` multiplies that of positives."""
    _check(reduction, "binary_cross_entropy_with_logits")
    loss = plain.sigmoid_cross_entropy_with_logits(logit, label)
    if pos_weight is not None:
        # 1 + label (pos_weight - 1): 1 for negatives, pos_weight for positives.
        extra = single_op("scale", {"X": pos_weight}, {"bias": -1.0})
        loss = _product(loss, single_op("scale", {"X": _product(label, extra)}, {"bias": 1.0}))
    return _reduced(loss if weight is None else _product(loss, weight), reduction)


def binary_cross_entropy(input, label, weight=None, reduction="mean", name=None):
    """The cross entropy of probabilities with labels in [0, 1]."""
    _check(reduction, "binary_cross_entropy")
    loss = plain.log_loss(input, label, epsilon=1e-12)
    return _reduced(loss if weight is None else _product(loss, weight), reduction)


def margin_ranking_loss(input, other, label, margin=0.0, reduction="mean", name=None):
    """max(0, margin - label (input - other)), the label being 1 or -1."""
    _check(reduction, "margin_ranking_loss")
    return _reduced(plain.margin_rank_loss(label, input, other, float(margin)), reduction)


def ctc_loss(log_probs, labels, input_lengths, label_lengths, blank=0, reduction="mean", norm_by_times=False):
    """The CTC cost of padded sequences from logits [rows, sequences, classes]; a mean is one over costs per label."""
    _check(reduction, "ctc_loss")
    costs = squeeze(warpctc(log_probs, labels, blank, norm_by_times, input_lengths, label_lengths), [-1])
    if reduction == "mean":
        counts = single_op("cast", {"X": label_lengths}, {"out_dtype": costs.dtype.value}, dtype=costs.dtype)
        costs = single_op("elementwise_div", {"X": costs, "Y": counts})
    return _reduced(costs, reduction)


def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean", name=None):
    """- ``input``, logarithms of probabilities [N, classes, ...], at the classes ``label`` [N, ...]."""
    return single_op("nll_loss", {"X": input, "Label": label, "Weight": weight},
                     {"ignore_index": int(ignore_index), "reduction": reduction}, also=("Total_weight",), name=name)


def hsigmoid_loss(input, label, num_classes, weight, bias=None, path_table=None, path_code=None, is_sparse=False,
                  name=None):
    """The cost of the decisions on the way to the label in a binary tree of classes, [rows, 1]; see fluid's
    hsigmoid."""
    return single_op("hierarchical_sigmoid", {"X": input, "W": weight, "Label": label, "PathTable": path_table,
                                              "PathCode": path_code, "Bias": bias},
                     {"num_classes": int(num_classes), "is_sparse": is_sparse, "remote_prefetch": bool(is_sparse)},
                     also=("PreOut",), name=name)


def sigmoid_focal_loss(logit, label, normalizer=None, alpha=0.25, gamma=2.0, reduction="sum", name=None):
    """The cross entropy of sigmoid(logit), less where it is nearly right: times alpha (1 - p)^gamma for positives."""
    _check(reduction, "sigmoid_focal_loss")
    entropy = plain.sigmoid_cross_entropy_with_logits(logit, label)
    guess = single_op("sigmoid", {"X": logit})
    # Where the label is l: p l + (1 - p)(1 - l) = 1 - l - p + 2 p l, and 1 minus that is l + p - 2 p l.
    wrong = _difference(single_op("elementwise_add", {"X": guess, "Y": label}),
                        single_op("scale", {"X": _product(guess, label)}, {"scale": 2.0}))
    share = single_op("scale", {"X": label}, {"scale": 2.0 * alpha - 1.0, "bias": 1.0 - alpha})
    loss = _product(_product(share, single_op("pow", {"X": wrong}, {"factor": float(gamma)})), entropy)
    return _reduced(loss if normalizer is None else single_op("elementwise_div", {"X": loss, "Y": normalizer}),
                    reduction)


def _check(reduction, layer):
    if reduction not in ("mean", "sum", "none"):
        raise UsageError(f"{layer}: expected reduction 'mean', 'sum' or 'none', got {reduction!r}")


def _reduced(loss, reduction):
    if reduction == "none":
        return loss
    if reduction == "sum":
        return single_op("reduce_sum", {"X": loss}, {"reduce_all": True})
    return single_op("mean", {"X": loss})


def _difference(input, label):
    return single_op("elementwise_sub", {"X": input, "Y": label})


def _product(one, other):
    return single_op("elementwise_mul", {"X": one, "Y": other})


def _mean_by(loss, shares):
    """The sum of losses over the sum of shares; 0 where no share is left."""
    total, whole = (single_op("reduce_sum", {"X": one}, {"reduce_all": True}) for one in (loss, shares))
    least = single_op("clip", {"X": whole}, {"min": 1e-12, "max": 3e38})
    return single_op("elementwise_div", {"X": total, "Y": least})


def _counted(label, loss, ignore_index):
    """1 for each row whose label counts, in the loss's type."""
    ignored = single_op("fill_any_like", {"X": label}, {"value": ignore_index})
    kept = single_op("not_equal", {"X": label, "Y": ignored}, dtype="bool")
    made = single_op("cast", {"X": kept}, {"out_dtype": loss.dtype.value}, dtype=loss.dtype)
    return _like(made, loss)


def _class_weights(weight, label, loss, ignore_index):
    """Each row's class weight; 0 where the label is ``ignore_index``."""
    counted = _counted(label, loss, ignore_index)
    number = single_op("cast", {"X": counted}, {"out_dtype": label.dtype.value}, dtype=label.dtype)
    known = single_op("elementwise_mul", {"X": _like(label, loss), "Y": number})  # an ignored label may name no class
    flat = single_op("reshape2", {"X": known}, {"shape": [-1]})
    shares = single_op("gather", {"X": weight, "Index": flat}, dtype=weight.dtype)
    return _product(_like(shares, loss), counted)


def _like(one, loss):
    """The same numbers in the shape of the loss."""
    if len(one.shape) == len(loss.shape):
        return one
    return single_op("reshape2", {"X": one}, {"shape": [-1] + list(loss.shape[1:])})
