"""``paddle.hapi.model``."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.hapi.model", globals(), {
    "Model": "fleet_mpi.hapi.model", "InputSpec": "fleet_mpi.program.layers.input_spec",
    "Input": "fleet_mpi.program.layers.input_spec:InputSpec", "summary": "fleet_mpi.hapi.model_summary:summary"})
