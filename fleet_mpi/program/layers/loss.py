"""Losses under their 1.x names: one loss per row or element; the script takes the mean."""

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.layers.single_op import single_op


def cross_entropy(input, label, soft_label=False, ignore_index=-100):
    """Minus the log of the labelled class's probability, [rows, 1]; ``input`` holds probabilities, not logits."""
    if soft_label:
        return single_op("cross_entropy", {"X": input, "Label": label}, out="Y",
                         attrs={"soft_label": True, "ignore_index": ignore_index})
    return single_op("cross_entropy2", {"X": input, "Label": label}, {"ignore_index": ignore_index}, out="Y",
                     also=("MatchX",), layer="cross_entropy")


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True,
                               return_softmax=False, axis=-1):
    """The cross entropy of softmax(logits); with ``return_softmax`` also the softmax."""
    helper = LayerHelper("softmax_with_cross_entropy")
    softmax, loss = (helper.create_variable_for_type_inference(logits.dtype) for _ in range(2))
    helper.append_op("softmax_with_cross_entropy", {"Logits": [logits], "Label": [label]},
                     {"Softmax": [softmax], "Loss": [loss]},
                     {"soft_label": soft_label, "ignore_index": ignore_index, "axis": axis,
                      "numeric_stable_mode": numeric_stable_mode})
    return (loss, softmax) if return_softmax else loss


def sigmoid_cross_entropy_with_logits(x, label, ignore_index=-100, name=None, normalize=False):
    """The cross entropy of sigmoid(x) with a label in [0, 1], for every element."""
    return single_op("sigmoid_cross_entropy_with_logits", {"X": x, "Label": label}, name=name,
                     attrs={"ignore_index": ignore_index, "normalize": normalize})


def log_loss(input, label, epsilon=1e-4, name=None):
    """The cross entropy of a probability with a label in [0, 1], for every element."""
    return single_op("log_loss", {"Predicted": input, "Labels": label}, {"epsilon": epsilon}, out="Loss", name=name)


def smooth_l1(x, y, inside_weight=None, outside_weight=None, sigma=None):
    """The smooth L1 distance of each row, [rows, 1]."""
    return single_op("smooth_l1_loss", {"X": x, "Y": y, "InsideWeight": inside_weight,
                                        "OutsideWeight": outside_weight},
                     {"sigma": 1.0 if sigma is None else sigma}, also=("Diff",))


def huber_loss(input, label, delta):
    """Squared for differences up to ``delta``, linear beyond."""
    return single_op("huber_loss", {"X": input, "Y": label}, {"delta": delta}, also=("Residual",))


def kldiv_loss(x, target, reduction="mean", name=None):
    """The Kullback-Leibler divergence of e^x from the target; reduction: mean, batchmean, sum or none."""
    return single_op("kldiv_loss", {"X": x, "Target": target}, {"reduction": reduction}, out="Loss", name=name)


def rank_loss(label, left, right, name=None):
    """RankNet's loss of two scores; the label says whether the left one should win."""
    return single_op("rank_loss", {"Label": label, "Left": left, "Right": right}, name=name, dtype=left.dtype)


def margin_rank_loss(label, left, right, margin=0.1, name=None):
    """max(0, margin - label (left - right)), the label being 1 or -1."""
    return single_op("margin_rank_loss", {"X1": left, "X2": right, "Label": label}, {"margin": margin},
                     also=("Activated",), name=name)


def bpr_loss(input, label, name=None):
    """Bayesian personalised ranking of the labelled item against all others, [rows, 1]."""
    return single_op("bpr_loss", {"X": input, "Label": label}, out="Y", name=name)


def label_smooth(label, prior_dist=None, epsilon=0.1, dtype="float32", name=None):
    """Labels per class that give the share ``epsilon`` to a prior (default: all classes alike)."""
    smooth = single_op("label_smooth", {"X": label, "PriorDist": prior_dist}, {"epsilon": float(epsilon)}, name=name)
    smooth.stop_gradient = True
    return smooth


def mse_loss(input, label):
    """The mean of squared differences."""
    return single_op("mean", {"X": _squared_difference(input, label)}, layer="mse_loss")


def dice_loss(input, label, epsilon=0.00001, name=None):
    """1 - 2 |overlap| / (|input| + |label|) per sample, averaged; ``label`` holds class numbers, [..., 1]."""
    depth = input.shape[-1]
    hot = single_op("one_hot", {"X": label}, {"depth": depth}, dtype="float32")
    axes = list(range(1, len(input.shape)))
    both = single_op("elementwise_mul", {"X": input, "Y": hot})
    overlap, one, other = (single_op("reduce_sum", {"X": part}, {"dim": axes}) for part in (both, input, hot))
    whole = single_op("elementwise_add", {"X": one, "Y": other})
    above = single_op("scale", {"X": overlap}, {"scale": 2.0})
    below = single_op("scale", {"X": whole}, {"bias": float(epsilon)})
    share = single_op("elementwise_div", {"X": above, "Y": below})
    return single_op("mean", {"X": single_op("scale", {"X": share}, {"scale": -1.0, "bias": 1.0})}, name=name)


def _squared_difference(input, label):
    return single_op("square", {"X": single_op("elementwise_sub", {"X": input, "Y": label})})
