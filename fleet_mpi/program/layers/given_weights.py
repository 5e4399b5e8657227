"""Dense layers and embeddings on weights that exist already, under the names of ``paddle.nn.functional``."""

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.layers.embedding import lookup


def linear(x, weight, bias=None, name=None):
    """x weight + bias, over the last dimension."""
    helper = LayerHelper("linear", name=name)
    product = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    helper.append_op("matmul_v2", {"X": [x], "Y": [weight]}, {"Out": [product]})
    if bias is None:
        return product
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("elementwise_add", {"X": [product], "Y": [bias]}, {"Out": [out]}, {"axis": len(x.shape) - 1})
    return out


def embedding(x, weight, padding_idx=None, sparse=False, name=None):
    """The rows of ``weight`` named by ``x``; the row ``padding_idx`` gives zeros and learns nothing."""
    return lookup(x, weight, is_sparse=sparse, padding_idx=padding_idx)
