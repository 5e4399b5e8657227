"""Small training programs to transpile, and their ops by name."""

import types

import pytest

from fleet_mpi import fluid
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig


@pytest.fixture
def network():
    """Build a regression into the default programs: a layer of ``width`` units, then one; returns the loss."""
    def network(width=20, **first):
        x, y = fluid.layers.data("x", [13]), fluid.layers.data("y", [1])
        hidden = fluid.layers.fc(x, width, act="tanh", param_attr=fluid.ParamAttr(name="w", **first), bias_attr="b")
        out = fluid.layers.fc(hidden, 1, param_attr=fluid.ParamAttr(name="v"), bias_attr=False)
        return fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    return network


@pytest.fixture
def transpiled():
    """Transpile the default programs: a namespace with the transpiler, its programs and their op types."""
    def transpiled(servers=1, workers=1, sync_mode=True, **options):
        config = DistributeTranspilerConfig()
        for name, value in options.items():
            setattr(config, name, value)
        endpoints = [f"10.0.0.{server}:6174" for server in range(servers)]
        transpiler = DistributeTranspiler(config)
        transpiler.transpile(0, pservers=",".join(endpoints), trainers=workers, sync_mode=sync_mode)
        programs = [transpiler.get_pserver_programs(endpoint) for endpoint in endpoints]
        return types.SimpleNamespace(
            transpiler=transpiler, distribution=transpiler.distribution, endpoints=endpoints,
            trainer=transpiler.get_trainer_program(), startup=fluid.default_startup_program(),
            servers=[main for main, _ in programs], server_startups=[startup for _, startup in programs])
    return transpiled


@pytest.fixture
def op_types():
    """The op types of a block, by default block 0."""
    return lambda program, block=0: [op.type for op in program.block(block).ops]
