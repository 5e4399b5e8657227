"""``paddle.distributed.fleet.metrics.metric``: metrics of a whole job."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.metrics import acc, auc, mae, max, min, mse, rmse, sum

__getattr__ = _missing_name("paddle.distributed.fleet.metrics.metric", globals())
