"""``paddle.callbacks`` and ``paddle.hapi.callbacks``."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.hapi.callbacks", globals(), {
    "Callback": "fleet_mpi.hapi.callback", "CallbackList": "fleet_mpi.hapi.callback",
    "ProgBarLogger": "fleet_mpi.hapi.progress",
    **dict.fromkeys(("EarlyStopping", "LRScheduler", "ModelCheckpoint", "ReduceLROnPlateau", "config_callbacks"),
                    "fleet_mpi.hapi.callbacks")}, {
    "VisualDL": "curves are not drawn by VisualDL; write a Callback that keeps the logs, or take paddle.utils.Ploter"})
