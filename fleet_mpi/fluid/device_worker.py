"""``fluid.device_worker``: threads of C++ trainers, known by name only."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.device_worker", globals(), refused=dict.fromkeys(
    ("DeviceWorker", "DeviceWorkerFactory", "DownpourSGD", "DownpourSGDOPT", "Hogwild", "Section"),
    "a worker is a rank here, not a thread that is described; exe.train_from_dataset trains, and fleet says with which "
    "mode"))
