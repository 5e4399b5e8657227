"""Groups of sequence layers."""

import numpy as np

from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Tensor
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.sequence_nets import sequence_conv_pool


def test_convolution_and_pool_as_one_layer_train_end_to_end(programs):
    main, startup = programs
    executor = Executor()
    out = sequence_conv_pool(data("x", [3], lod_level=1), num_filters=4, filter_size=3, act="tanh")
    helper = LayerHelper("mean")
    loss = helper.create_variable_for_type_inference()
    helper.append_op("mean", {"X": [out]}, {"Out": [loss]})
    pairs = append_backward(loss)
    assert [op.type for op in main.global_block().ops[:4]] == [
        "sequence_conv", "elementwise_add", "tanh", "sequence_pool"]
    assert main.global_block().ops[3].attr("pooltype") == "MAX"
    assert {param.name for param, _ in pairs} == {"sequence_conv_0.w_0", "sequence_conv_0.b_0"}
    executor.run(startup)
    rng = np.random.default_rng(0)
    for lengths in ([2, 3], [4, 1, 5], [1]):
        x = Tensor(rng.standard_normal((sum(lengths), 3)).astype(np.float32))
        x.set_recursive_sequence_lengths([lengths])
        pooled, *grads = executor.run(main, feed={"x": x}, fetch_list=[out] + [grad for _, grad in pairs])
        assert pooled.shape == (len(lengths), 4)
        assert all(np.isfinite(grad).all() and np.abs(grad).max() > 0 for grad in grads)
