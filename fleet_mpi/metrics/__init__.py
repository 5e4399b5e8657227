"""Metrics kept by the script, outside of any program: plain accumulators over the values it fetched."""

from fleet_mpi.metrics.accumulators import Accuracy, ChunkEvaluator, CompositeMetric, EditDistance, MetricBase
from fleet_mpi.metrics.binary import Auc, Precision, Recall

__all__ = ["Accuracy", "Auc", "ChunkEvaluator", "CompositeMetric", "EditDistance", "MetricBase", "Precision",
           "Recall"]
