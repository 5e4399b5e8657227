"""``paddle.distributed.fleet.runtime``: the original's inner parts of a job; here they are a job's own."""

from fleet_mpi.errors import missing_name as _missing_name

_RUNTIME = "jobs are not run by hand; call fleet.init_worker, init_server, run_server and stop_worker"

__getattr__ = _missing_name("paddle.distributed.fleet.runtime", globals(), {
    name: f"fleet_mpi.paddle.distributed.fleet.runtime.{name}" for name in ("runtime_base", "the_one_ps")},
                            dict.fromkeys(
        ("CollectiveRuntime", "ParameterServerRuntime", "TheOnePSRuntime", "RuntimeBase"), _RUNTIME))
