"""Sums that the metrics of click models are made of, kept over all batches."""

from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.layers.activation import abs as absolute, sigmoid, square
from fleet_mpi.program.layers.math import elementwise_sub
from fleet_mpi.program.layers.reduction import reduce_sum
from fleet_mpi.program.layers.tensor import fill_constant_batch_size_like


def ctr_metric_bundle(input, label):
    """(squared error, absolute error, prediction, sigmoid of it, positives, instances): sums over all batches so far.

    ``input`` and ``label`` are float32 [rows, 1]. Divided by the instances they are the metrics; ``fleet.metrics`` adds
    them up over workers first.
    """
    difference = elementwise_sub(input, label)
    ones = fill_constant_batch_size_like(label, [-1, 1], "float32", 1.0)
    batch = [square(difference), absolute(difference), input, sigmoid(input), label, ones]
    return tuple(_added(reduce_sum(one)) for one in batch)


def _added(value):
    """A persistable sum to which this is added at every run."""
    helper = LayerHelper("ctr_metric_bundle")
    total = helper.create_global_variable(persistable=True, name=unique_name.generate("ctr_metric_bundle.sum"),
                                          dtype="float32", shape=[1], stop_gradient=True)
    helper.set_variable_initializer(total, Constant(0.0))
    helper.append_op("elementwise_add", {"X": [value], "Y": [total]}, {"Out": [total]})
    return total
