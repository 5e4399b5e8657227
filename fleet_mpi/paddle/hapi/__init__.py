"""``paddle.hapi``: the names of ``fleet_mpi.hapi``, where ``paddle.Model`` is."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.hapi", globals(), {
    "Model": "fleet_mpi.hapi.model", "summary": "fleet_mpi.hapi.model_summary:summary",
    "callbacks": "fleet_mpi.paddle.hapi.callbacks:", "model": "fleet_mpi.paddle.hapi.model:",
    "progressbar": "fleet_mpi.paddle.hapi.progressbar:"}, {
    "flops": "it is not built; paddle.summary(network, input_size) counts the parameters"})
