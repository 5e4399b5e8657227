"""``fluid.metrics``: metrics kept by the script."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.metrics import (Accuracy, Auc, ChunkEvaluator, CompositeMetric, EditDistance, MetricBase, Precision,
                               Recall)

__getattr__ = _missing_name("paddle.fluid.metrics", globals())
