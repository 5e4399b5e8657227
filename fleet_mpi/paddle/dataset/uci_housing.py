"""``paddle.dataset.uci_housing``: prices of houses."""

from fleet_mpi.data.sets.uci_housing import feature_names, fetch, load_data, predict_reader, test, train
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.uci_housing", globals())
