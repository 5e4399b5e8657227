"""``fluid.incubate.data_generator``: scripts that turn lines into multi-slot samples."""

from fleet_mpi.data.multislot import DataGenerator, MultiSlotDataGenerator, MultiSlotStringDataGenerator
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.incubate.data_generator", globals())
