"""``paddle.metric``: the accuracy as an op of a program, and metrics kept by the script."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers import metric as _metric


def accuracy(input, label, k=1, correct=None, total=None, name=None):
    """The share of rows whose label is among the ``k`` best."""
    return _metric.accuracy(input, label, k, correct, total)


__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE

__getattr__ = _missing_name("paddle.metric", globals(), dict.fromkeys(
    ("Metric", "Accuracy", "Precision", "Recall", "Auc"), "fleet_mpi.metrics.paddle2"))
