"""``fluid.reader``: loaders over Python generators."""

from fleet_mpi.data.loader import GeneratorLoader, PyReader
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.reader", globals(), {
    "DataLoader": "fleet_mpi.data.data_loader:FluidDataLoader"})
