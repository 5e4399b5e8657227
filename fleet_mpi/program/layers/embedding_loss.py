"""Losses that shape what a network makes of its inputs: near their class, far from others, near a teacher's score."""

from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.activation import square
from fleet_mpi.program.layers.comparison import equal
from fleet_mpi.program.layers.loss import softmax_with_cross_entropy
from fleet_mpi.program.layers.manipulation import reshape, transpose
from fleet_mpi.program.layers.math import cast, elementwise_add, elementwise_div, elementwise_mul, matmul
from fleet_mpi.program.layers.reduction import reduce_mean, reduce_sum
from fleet_mpi.program.layers.single_op import single_op
from fleet_mpi.program.layers.tensor import zeros_like

SHARE = 0.25  # of the penalty on lengths in npair_loss, as in the original


def center_loss(input, label, num_classes, alpha, param_attr, update_center=True):
    """Half the squared distance of each row from its class's center, [rows, 1]; centers follow at the rate
    ``alpha``."""
    helper = LayerHelper("center_loss", input=input, param_attr=param_attr)
    centers = helper.create_parameter(helper.param_attr, [num_classes, input.shape[1]], input.dtype)
    centers.stop_gradient, centers.trainable = True, False
    diff = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    loss = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("center_loss", {"X": [helper.input()], "Label": [helper.require(label, "label")],
                                     "Centers": [centers], "CenterUpdateRate": [_rate(helper, alpha, input.dtype)]},
                     {"SampleCenterDiff": [diff], "Loss": [loss], "CentersOut": [centers]},
                     {"cluster_num": int(num_classes), "need_update": update_center})
    return loss


def _rate(helper, alpha, dtype):
    """The rate as a variable: the one given, or a kept constant."""
    if isinstance(alpha, Variable):
        return alpha
    rate = helper.create_global_variable(persistable=True, dtype=dtype, shape=[1], stop_gradient=True)
    helper.set_variable_initializer(rate, Constant(float(alpha)))
    return rate


def npair_loss(anchor, positive, labels, l2_reg=0.002):
    """Each anchor against the positives of all rows, right being those of its label, plus a penalty on lengths."""
    similarity = matmul(anchor, positive, transpose_y=True)
    column = reshape(cast(labels, "float64"), [-1, 1])
    rows = elementwise_add(cast(zeros_like(similarity), "float64"), column, axis=0)
    same = cast(equal(rows, transpose(rows, [1, 0])), "float32")
    shares = elementwise_div(same, reduce_sum(same, dim=1, keep_dim=True), axis=0)
    shares.stop_gradient = True
    lengths = [reduce_mean(reduce_sum(square(one), 1)) for one in (anchor, positive)]
    entropy = softmax_with_cross_entropy(similarity, shares, soft_label=True)
    crossed = reduce_mean(reduce_sum(elementwise_mul(shares, entropy, axis=0), 0))
    return elementwise_add((lengths[0] + lengths[1]) * (SHARE * l2_reg), crossed)


def teacher_student_sigmoid_loss(input, label, soft_max_up_bound=15.0, soft_max_lower_bound=-15.0):
    """The cross entropy of sigmoid(input) with a click and with a teacher's score, both told by the label, [rows, 1].

    -2: no click, -1: a click; from 0 on the score or, with a click, 1 + score.
    """
    return single_op("teacher_student_sigmoid_loss", {"X": input, "Label": label}, {
        "soft_max_up_bound": soft_max_up_bound, "soft_max_lower_bound": soft_max_lower_bound}, out="Y")
