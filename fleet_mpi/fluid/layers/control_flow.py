"""``fluid.layers.control_flow``: branches, loops and arrays of tensors."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.comparison import (equal, greater_equal, greater_than, is_empty, less_equal, less_than,
                                                 not_equal)
from fleet_mpi.program.layers.control_flow import (ConditionalBlock, ParallelDo, Switch, While, case, cond,
                                                   switch_case, while_loop)
from fleet_mpi.program.layers.host_calls import Assert, Print
from fleet_mpi.program.layers.math import increment
from fleet_mpi.program.layers.tensor_array import array_length, array_read, array_write, create_array

_HERE = "fleet_mpi.program.layers."
_LATE = {"DynamicRNN": _HERE + "dynamic_rnn", "StaticRNN": _HERE + "static_rnn",
         **dict.fromkeys(("IfElse", "split_lod_tensor", "merge_lod_tensor"), _HERE + "if_else"),
         **dict.fromkeys(("lod_rank_table", "max_sequence_len", "lod_tensor_to_array", "array_to_lod_tensor",
                          "shrink_memory", "reorder_lod_tensor_by_rank"), _HERE + "lod_rank")}

__getattr__ = _missing_name("paddle.fluid.layers.control_flow", globals(), _LATE)
