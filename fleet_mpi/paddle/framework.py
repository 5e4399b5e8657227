"""``paddle.framework``: places, seeds, dtypes and files under their 2.x address."""

from fleet_mpi.checkpoint.objects import load, save
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid import core
from fleet_mpi.fluid.core import CPUPlace, CUDAPinnedPlace, CUDAPlace
from fleet_mpi.fluid.framework import (Parameter, Program, Variable, get_flags, is_compiled_with_cuda,
                                       program_guard, set_flags)
from fleet_mpi.fluid.layer_helper import LayerHelper
from fleet_mpi.paddle.modes import (get_default_dtype, get_device, in_dynamic_mode, seed, set_default_dtype,
                                    set_device)
from fleet_mpi.paddle.of_1x import FRAMEWORK as _OF_1X
from fleet_mpi.paddle.param_attr import ParamAttr
from fleet_mpi.program.layers.tensor import create_parameter

__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE
in_dynamic_or_pir_mode = in_dygraph_mode = in_dynamic_mode

__getattr__ = _missing_name("paddle.framework", globals(), {
    **_OF_1X,
    "VarBase": "fleet_mpi.paddle.modes:Tensor",
    "XPUPlace": "fleet_mpi.fluid.core:XPUPlace", "no_grad": "fleet_mpi.fluid.dygraph:no_grad",
    "append_backward": "fleet_mpi.program.build.backward:append_backward"}, dict.fromkeys(
        ("grad", "DataParallel", "set_grad_enabled"),
        "there is no eager mode; build a program and run it with an Executor"))
