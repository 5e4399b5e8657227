"""``fluid.incubate.fleet.parameter_server.ir.pserver_pass``: known by name only."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.parameter_server.ir.pserver_pass", globals(),
                            refused=dict.fromkeys(
    ("_get_optimizer_input_shape", "add_listen_and_serv_pass", "add_optimizer_pass"),
    "programs are not cut by passes; fluid.DistributeTranspiler().transpile(...) gives each role its program"))
