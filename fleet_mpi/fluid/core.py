"""``fluid.core``: what the original's compiled half offers to scripts, and nothing more of it."""

from fleet_mpi.errors import EndOfData as EOFException
from fleet_mpi.errors import FleetError as EnforceNotMet
from fleet_mpi.errors import NotBuilt as _NotBuilt
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.engine.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, is_compiled_with_cuda
from fleet_mpi.program.engine.places import cuda_device_count as get_cuda_device_count
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.engine.scope import Tensor as LoDTensor
from fleet_mpi.program.engine.scope import Tensor
from fleet_mpi.program.graph.types import Role as _Role
from fleet_mpi.program.graph.types import VarType as _VarType

LoDTensorArray = list


class VarDesc:
    """Holds ``VarType``, the kinds of element and variable."""

    VarType = _VarType


class op_proto_and_checker_maker:
    """Holds ``OpRole`` and the names of the attributes that carry it."""

    OpRole = _Role

    @staticmethod
    def kOpRoleAttrName():
        """The attribute with an op's role."""
        return "op_role"

    @staticmethod
    def kOpRoleVarAttrName():
        """The attribute with the parameter and gradient an op is for."""
        return "op_role_var"

    @staticmethod
    def kOpNameScopeAttrName():
        """The attribute with an op's name scope."""
        return "op_namescope"


class PSGPU:
    """Tables in the memory of GPUs: known by name only."""

    def set_slot_vector(self, slots):
        """Refuse: not built."""
        raise _NotBuilt("core.PSGPU: tables in GPU memory are not built; leave use_ps_gpu at 0")

    init_gpu_ps = set_slot_vector


def is_compiled_with_xpu():
    """False: no such devices or number types here."""
    return False


is_compiled_with_rocm = is_compiled_with_npu = is_compiled_with_brpc = supports_bfloat16 = is_compiled_with_xpu


def is_compiled_with_mkldnn():
    """False: products come from numpy's BLAS."""
    return False


def is_compiled_with_dist():
    """True: this package is made for it."""
    return True


__getattr__ = _missing_name("paddle.fluid.core", globals(), {
    "VarBase": "fleet_mpi.paddle.modes:Tensor",  # by name only: paddle lies above fluid
    "globals": "fleet_mpi.program.engine.flags:all_flags",
    **{name: f"fleet_mpi.checkpoint.models.predictor:{name}" for name in (
        "NativeConfig", "PaddleBuf", "PaddleDType", "PaddleTensor", "create_paddle_predictor")}}, {
    "AnalysisConfig": "take NativeConfig, or load_inference_model and an Executor",
    "Gloo": "ranks meet over MPI; role makers have _all_reduce, _all_gather and _barrier",
    **dict.fromkeys(("XPUPlace", "NPUPlace"), "such devices are not built; take CPUPlace or CUDAPlace")})
