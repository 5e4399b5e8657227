"""``paddle.distributed.fleet.base.private_helper_function``: waiting for servers, which MPI does."""

from fleet_mpi.errors import missing_name as _missing_name


def wait_server_ready(endpoints):
    """Nothing: no port is waited for; ranks meet when they join the job."""


__getattr__ = _missing_name("paddle.distributed.fleet.base.private_helper_function", globals())
