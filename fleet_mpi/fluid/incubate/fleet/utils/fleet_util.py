"""``fluid.incubate.fleet.utils.fleet_util``: metrics of a whole job, its models, and words of its first worker."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.fleet_util import FleetUtil

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.utils.fleet_util", globals(), refused={
    "GPUPSUtil": "tables in GPU memory are not built; take FleetUtil"})
