"""``paddle.static.nn``: the layers of static programs that make parameters, with the argument lists of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.static.nn import sequence_lod
from fleet_mpi.paddle.static.nn.sequence_lod import (sequence_concat, sequence_conv, sequence_enumerate,
                                                     sequence_expand, sequence_expand_as, sequence_first_step,
                                                     sequence_last_step, sequence_pad, sequence_pool, sequence_reshape,
                                                     sequence_reverse, sequence_scatter, sequence_slice,
                                                     sequence_softmax, sequence_unpad)
from fleet_mpi.program.layers import dense as _dense
from fleet_mpi.program.layers.activation import prelu
from fleet_mpi.program.layers.arguments import named_arguments as _named_arguments
from fleet_mpi.program.layers.control_flow import case, cond, switch_case, while_loop
from fleet_mpi.program.layers.embedding import embedding_v2 as embedding
from fleet_mpi.program.layers.embedding import sparse_embedding
from fleet_mpi.program.layers.host_calls import py_func
from fleet_mpi.program.layers.nn import (batch_norm, conv2d, conv2d_transpose, conv3d, conv3d_transpose, layer_norm)
from fleet_mpi.program.layers.normalization import group_norm, instance_norm, spectral_norm
from fleet_mpi.program.layers.tensor import create_parameter
from fleet_mpi.program.layers.tensor_products import bilinear_tensor_product


@_named_arguments(act="activation", param_attr="weight_attr", input="x")
def fc(x, size, num_flatten_dims=1, weight_attr=None, bias_attr=None, activation=None, name=None):
    """activation(x weight + bias), x folded after ``num_flatten_dims`` dimensions."""
    return _dense.fc(x, size, num_flatten_dims, weight_attr, bias_attr, activation, name)


__getattr__ = _missing_name("paddle.static.nn", globals(), {
    "deform_conv2d": "fleet_mpi.program.layers.images", "row_conv": "fleet_mpi.program.layers.sequence",
    "nce": "fleet_mpi.program.layers.sampled_loss", "crf_decoding": "fleet_mpi.program.layers.sequence_labels",
    **dict.fromkeys(("continuous_value_model", "data_norm"), "fleet_mpi.program.layers.click")},
    {"multi_box_head": "detection is not built"})
