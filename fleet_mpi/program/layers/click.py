"""Layers of click models: running normalisation, counts, filters, hashes, parts of batches, attention by rank."""

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.layers.sequence import sequence_pool
from fleet_mpi.program.layers.single_op import single_op

FIRST_SUMS = {"batch_size": 1e4, "batch_sum": 0.0, "batch_square": 1e4, "scale_w": 1.0, "bias": 0.0}


def data_norm(input, act=None, epsilon=1e-05, param_attr=None, data_layout="NCHW", in_place=False, name=None,
              moving_mean_name=None, moving_variance_name=None, do_model_average_for_mean_and_var=True, slot_dim=-1,
              sync_stats=False, summary_decay_rate=0.9999999, enable_scale_and_shift=False):
    """act of each column minus its mean, over its spread, by sums over everything this worker has seen.

    ``param_attr`` may be a dictionary of where the sums start: batch_size, batch_sum, batch_square, scale_w, bias.
    """
    helper = LayerHelper("data_norm", input=input, act=act, name=name)
    if sync_stats:
        raise NotBuilt("data_norm: sync_stats=True: sums over all workers are not built; each has its own")
    starts = {**FIRST_SUMS, **(param_attr if isinstance(param_attr, dict) else {})}
    size, total, squares = (_sum(helper, key, suffix, starts) for key, suffix in (
        ("batch_size", "batch_size"), ("batch_sum", "batch_sum"), ("batch_square", "batch_square_sum")))
    inputs = {"X": [helper.input()], "BatchSize": [size], "BatchSum": [total], "BatchSquareSum": [squares]}
    if enable_scale_and_shift:
        inputs.update({key: [_sum(helper, key, key, starts, trainable=True)] for key in ("scale_w", "bias")})
    out = helper.create_variable_for_type_inference(input.dtype)
    means, scales = (helper.create_variable_for_type_inference(input.dtype, stop_gradient=True) for _ in range(2))
    helper.append_op("data_norm", inputs, {
        "Y": [out], "Means": [means], "Scales": [scales], "BatchSizeOut": [size], "BatchSumOut": [total],
        "BatchSquareSumOut": [squares]}, {
        "epsilon": epsilon, "data_layout": data_layout, "slot_dim": slot_dim, "summary_decay_rate": summary_decay_rate,
        "enable_scale_and_shift": enable_scale_and_shift})
    return helper.append_activation(out)


def _sum(helper, key, suffix, starts, trainable=False):
    """A number for each column, kept under the layer's name and this suffix."""
    attr = ParamAttr(name=f"{helper.name}.{suffix}", initializer=Constant(float(starts[key])), trainable=trainable)
    width = helper.input().shape[-1]
    return helper.create_parameter(attr, [width], helper.input().dtype)


def continuous_value_model(input, cvm, use_cvm=True):
    """Rows [show, click, ...] with the logs of both counts or, without ``use_cvm``, without them."""
    return single_op("cvm", {"X": input, "CVM": cvm}, {"use_cvm": use_cvm}, out="Y")


def filter_by_instag(ins, ins_tag, filter_tag, is_lod, out_val_if_empty=0):
    """[the instances that have one of the tags, their weights in the loss]; 0 where none has."""
    helper = LayerHelper("filter_by_instag")
    out = helper.create_variable_for_type_inference(ins.dtype)
    weight = helper.create_variable_for_type_inference("float32", stop_gradient=True)
    index = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    helper.append_op("filter_by_instag", {"Ins": [ins], "Ins_tag": [ins_tag], "Filter_tag": [filter_tag]},
                     {"Out": [out], "LossWeight": [weight], "IndexMap": [index]},
                     {"is_lod": is_lod, "out_val_if_empty": out_val_if_empty})
    return [out, weight]


def hash(input, hash_size, num_hash=1, name=None):
    """``num_hash`` hashes of each row of ids, each from 0 up to ``hash_size``: [..., num_hash, 1]."""
    out = single_op("hash", {"X": input}, {"mod_by": int(hash_size), "num_hash": int(num_hash)}, name=name)
    out.stop_gradient = True
    return out


def shuffle_batch(x, seed=None):
    """The rows in another order at every run; gradients find their way back."""
    return single_op("shuffle_batch", {"X": x}, {"seed": seed if isinstance(seed, int) else 0}, also=("ShuffleIdx",))


def partial_concat(input, start_index=0, length=-1):
    """``length`` columns from ``start_index`` on of each matrix, side by side; -1: all that follow."""
    return _of_parts("partial_concat", input, start_index, length)


def partial_sum(input, start_index=0, length=-1):
    """The sum of ``length`` columns from ``start_index`` on of each matrix; -1: all that follow."""
    return _of_parts("partial_sum", input, start_index, length)


def _of_parts(type, input, start_index, length):
    helper = LayerHelper(type, input=input)
    given = helper.multiple_input()
    out = helper.create_variable_for_type_inference(given[0].dtype)
    helper.append_op(type, {"X": given}, {"Out": [out]}, {"start_index": start_index, "length": length})
    return out


def fused_embedding_seq_pool(input, size, is_sparse=False, padding_idx=None, combiner="sum", param_attr=None,
                             dtype="float32"):
    """The sum of each sequence's rows of a table. What the original fuses is here a lookup and a pool."""
    rows = embedding(input, size, is_sparse, False, padding_idx, param_attr, dtype)
    return sequence_pool(rows, combiner)


def rank_attention(input, rank_offset, rank_param_shape, rank_param_attr, max_rank=3, max_size=0):
    """Each row's page view by rank, times a matrix for the row's own rank; 0 for rows without one.

    ``rank_offset`` is as a Dataset makes it (``set_rank_offset``), ``rank_param_shape`` [max_rank x max_rank x columns
    of input, columns of the result]. The input gets no gradient, as in the original.
    """
    helper = LayerHelper("rank_attention", input=input)
    x = helper.input()
    if len(rank_param_shape) != 2 or max_rank * max_rank * x.shape[1] != rank_param_shape[0]:
        raise UsageError(f"rank_attention: rank_param_shape: expected [{max_rank} x {max_rank} x {x.shape[1]} = "
                         f"{max_rank * max_rank * x.shape[1]}, any], got {list(rank_param_shape)}")
    weight = helper.create_parameter(rank_param_attr, rank_param_shape, x.dtype)
    weight.stop_gradient = False
    out, gathered, ranks = (helper.create_variable_for_type_inference(x.dtype, stop_gradient=i > 0) for i in range(3))
    helper.append_op("rank_attention", {
        "X": [x], "RankOffset": [helper.require(rank_offset, "rank_offset")], "RankParam": [weight]}, {
        "Out": [out], "InputHelp": [gathered], "InsRank": [ranks]}, {"MaxRank": max_rank, "MaxSize": max_size})
    return out
