"""A worker's step of which nothing is fetched: the forward ops that nothing needs do not run, their parameters are
there."""

import numpy as np

from fleet_mpi import fluid


def test_a_gradient_needs_a_parameter_that_only_the_servers_answer_writes():
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [2]), 1, param_attr="w", bias_attr=False))
    fluid.optimizer.SGD(0.1).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="127.0.0.1:6174", trainers=1)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    before = fluid.global_scope().find_var("w").get_tensor().numpy().copy()
    exe.run(transpiler.get_trainer_program(), feed={"x": np.array([[1, 2], [3, 4]], "float32")})
    after = fluid.global_scope().find_var("w").get_tensor().numpy()
    assert np.allclose(after, before - 0.1 * np.array([[2], [3]]), atol=1e-6)
    exe.close()
