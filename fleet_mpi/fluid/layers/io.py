"""``fluid.layers.io``: what a program is fed with."""

from fleet_mpi.checkpoint.models.load_op import load
from fleet_mpi.data.loader import create_py_reader_by_data, double_buffer, py_reader, read_file
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.data import data

__getattr__ = _missing_name("paddle.fluid.layers.io", globals(), refused=dict.fromkeys(
    ("ListenAndServ", "Send", "Recv"), "programs of servers and workers are not written by hand; "
    "fluid.DistributeTranspiler().transpile(...) gives each role its program"))
