"""``fluid.framework``: programs, their parts, and the functions around them."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid import core
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.block import Block
from fleet_mpi.program.engine.flags import get_flags, set_flags
from fleet_mpi.program.graph.operator import Operator
from fleet_mpi.program.engine.places import cpu_places, cuda_places, is_compiled_with_cuda
from fleet_mpi.program.graph.program import (
    Program,
    default_main_program,
    default_startup_program,
    device_guard,
    program_guard,
    switch_main_program,
    switch_startup_program,
)
from fleet_mpi.program.graph.registry import grad_name as grad_var_name
from fleet_mpi.program.graph.types import var_type as convert_np_dtype_to_dtype_
from fleet_mpi.program.graph.unique_name import name_scope
from fleet_mpi.program.graph.variable import Parameter, Variable
from fleet_mpi.program.graph.version import require_version


def in_dygraph_mode():
    """False: programs are static."""
    return False


def _get_var(name, program=None):
    """The variable of this name in block 0 of a program."""
    return (program or default_main_program()).global_block().var(name)


__getattr__ = _missing_name("paddle.fluid.framework", globals(), {
    "cuda_pinned_places": "fleet_mpi.program.engine.places:cuda_pinned_places",
    "OpProtoHolder": "fleet_mpi.program.graph.op_protos",
    "CPUPlace": "fleet_mpi.program.engine.places:CPUPlace", "CUDAPlace": "fleet_mpi.program.engine.places:CUDAPlace"},
                            dict.fromkeys(
        ("load_op_library", "dygraph_only", "_dygraph_tracer", "_dygraph_guard", "IrGraph"),
        "there is neither eager mode nor a C++ library of ops; build a program, with a py_func where ops are missing"))
