"""LSTM over sequences whose hidden state is projected to fewer columns."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.layers.recurrent import _given, _require_multiple


def dynamic_lstmp(input, size, proj_size, param_attr=None, bias_attr=None, use_peepholes=True, is_reverse=False,
                  gate_activation="sigmoid", cell_activation="tanh", candidate_activation="tanh",
                  proj_activation="tanh",
                  dtype="float32", name=None, h_0=None, c_0=None, cell_clip=None, proj_clip=None):
    """(projection [rows, proj_size], cell [rows, size / 4]) of sequences projected to ``size`` columns before.

    As in the original ``param_attr`` is for both weights, whose shapes differ: it cannot have a name.
    """
    _require_multiple("dynamic_lstmp", size, 4)
    if bias_attr is False:
        raise UsageError("dynamic_lstmp: bias_attr=False: expected an attribute or None, this layer always has a bias")
    helper, hidden_size = LayerHelper("lstmp", param_attr=param_attr, bias_attr=bias_attr, name=name), size // 4
    weight = helper.create_parameter(helper.param_attr, [proj_size, size], dtype)
    projecting = helper.create_parameter(helper.param_attr, [hidden_size, proj_size], dtype)
    biases = (7 if use_peepholes else 4) * hidden_size
    bias = helper.create_parameter(helper.bias_attr, [1, biases], dtype, is_bias=True)
    projection, cell, gates, hidden = (helper.create_variable_for_type_inference(dtype) for _ in range(4))
    helper.append_op("lstmp", _given(Input=input, Weight=weight, ProjWeight=projecting, Bias=bias, H0=h_0, C0=c_0),
                     {"Projection": [projection], "Cell": [cell], "BatchGate": [gates], "BatchHidden": [hidden]},
                     {"use_peepholes": use_peepholes, "is_reverse": is_reverse, "gate_activation": gate_activation,
                      "cell_activation": cell_activation, "candidate_activation": candidate_activation,
                      "proj_activation": proj_activation, "cell_clip": float(cell_clip or 0.0),
                      "proj_clip": float(proj_clip or 0.0)})
    return projection, cell
