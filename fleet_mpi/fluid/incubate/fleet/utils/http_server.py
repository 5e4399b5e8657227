"""``fluid.incubate.fleet.utils.http_server``: keys and values by HTTP, on this machine only."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.key_value_server import KVHandler, KVHTTPServer, KVServer

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.utils.http_server", globals())
