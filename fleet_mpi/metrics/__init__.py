"""Metrics kept by the script, outside of any program: plain accumulators over the values it fetched.

    accumulators    the base of all; Accuracy, ChunkEvaluator, EditDistance, CompositeMetric
    binary          Precision, Recall and Auc of scores and labels 0 or 1
    average         WeightedAverage
    curves          curves of costs in a notebook
    paddle2         paddle.metric of 2.x
"""

from fleet_mpi.metrics.accumulators import Accuracy, ChunkEvaluator, CompositeMetric, EditDistance, MetricBase
from fleet_mpi.metrics.binary import Auc, Precision, Recall

__all__ = ["Accuracy", "Auc", "ChunkEvaluator", "CompositeMetric", "EditDistance", "MetricBase", "Precision",
           "Recall"]
