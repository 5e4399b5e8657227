"""``paddle.device``: the device to run on, and which kinds there are."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.core import XPUPlace, is_compiled_with_npu, is_compiled_with_rocm, is_compiled_with_xpu
from fleet_mpi.paddle.modes import get_cudnn_version
from fleet_mpi.program.engine.places import get_device, is_compiled_with_cuda, set_device

__getattr__ = _missing_name("paddle.device", globals())
