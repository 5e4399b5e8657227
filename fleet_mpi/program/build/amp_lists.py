"""Which ops are computed in float16: the lists, and the mark that they leave on every forward op of a program.

An op on the white list is computed in float16, one on the black list in float32, one on the gray list as the ops it
reads from: in float32 if one of them is black, else in float16 if one is white. An op on no list is black. The mark is
the attribute ``compute_dtype``; backward copies it to gradient ops. Parameters stay float32 variables, and plans for a
device insert the casts (``engine/precision``). On the host marks are without effect.
"""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.operator import COMPUTE_DTYPE, HALF, SINGLE
from fleet_mpi.program.graph.program import outside_names
from fleet_mpi.program.graph.registry import find
from fleet_mpi.program.graph.types import VarType

# As in the original.
WHITE = "conv2d matmul matmul_v2 mul"
BLACK = ("exp square log mean sum reduce_sum cos_sim softmax softmax_with_cross_entropy "
         "sigmoid_cross_entropy_with_logits cross_entropy cross_entropy2 lookup_table lookup_table_v2")
GRAY = ("elementwise_add elementwise_sub elementwise_mul elementwise_div elementwise_max elementwise_min "
        "elementwise_pow elementwise_mod elementwise_floordiv batch_norm layer_norm tanh sigmoid top_k pool2d pool3d "
        "dropout relu relu6 leaky_relu soft_relu flatten2 stack unstack uniform_random "
        "uniform_random_batch_size_like gaussian_random gaussian_random_batch_size_like slice rank scale transpose2 "
        "reshape2 gather fill_constant get_tensor_from_selected_rows sign cast concat split")


class AutoMixedPrecisionLists:
    """Which ops run in float16, which never, and which variables keep their ops from it."""

    def __init__(self, custom_white_list=None, custom_black_list=None, custom_black_varnames=None):
        white, black = set(custom_white_list or ()), set(custom_black_list or ())
        if white & black:
            raise UsageError(f"AutoMixedPrecisionLists: expected an op on one custom list at most, got "
                             f"{sorted(white & black)} on the white and on the black one; take it from one of them")
        self.white_list = set(WHITE.split()) - black | white
        self.black_list = set(BLACK.split()) - white | black
        self.gray_list = set(GRAY.split()) - white - black
        self.black_varnames = set(custom_black_varnames or ())

    def precision(self, op, sources):
        """In what an op is to be computed, its sources being so; None where a gray op has no source with a mark."""
        is_listed = op.type in self.white_list or op.type in self.gray_list
        if not is_listed or self.black_varnames.intersection([*op.input_arg_names, *op.output_arg_names]):
            return SINGLE
        if op.type in self.white_list:
            return HALF
        return SINGLE if SINGLE in sources else HALF if HALF in sources else None


def mark(block, lists):
    """Write into every forward op of a block in what it is to be computed on a device."""
    writers, fixed = {}, _read_by_bodies(block)
    for op in block.ops:
        if op.trains:
            continue
        sources = [writers[name].attrs.get(COMPUTE_DTYPE) for name in op.input_arg_names if name in writers]
        found = lists.precision(op, sources)
        if found is not None:
            op._set_attr(COMPUTE_DTYPE, found if found == SINGLE or _may_be_half(op, fixed) else SINGLE)
        writers.update(dict.fromkeys(op.output_arg_names, op))


def _read_by_bodies(block):
    """The variables that loops and branches read: their bodies are computed as they are written, in float32."""
    bodies = [op for op in block.ops if "sub_block" in op.attrs]
    return {name for op in bodies for name in {*op.input_arg_names, *op.output_arg_names,
                                               *outside_names(block.program, op)}}


def _may_be_half(op, fixed):
    """Whether an op's numbers can be float16: dense float32 ones that nobody needs as such after the step.

    An op that names its result's type, as ``cast`` does, keeps to it.
    """
    if op.attrs.get("out_dtype") or op.attrs.get("dtype") or "sub_block" in op.attrs:
        return False
    half_slots = find(op.type).traits.get("half_slots")
    for slots in (op.inputs, op.outputs):
        for slot, names in slots.items():
            for var in (op.block.find_var(name) for name in names if name):
                if var is None or var.type != VarType.LOD_TENSOR or var.dtype == "float64":
                    return False
                becomes_half = slots is op.outputs and (half_slots is None or slot in half_slots.split())
                if becomes_half and (var.persistable or var.name in fixed):
                    return False
    return True
