"""Where the graph meets the servers: transpiled programs run by an executor, with servers inside the process."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.engine.scope import Scope, global_scope
from fleet_mpi.program.graph.program import Program
from fleet_mpi.runtime import sessions


@pytest.fixture
def loss():
    """A regression with Momentum, minimised."""
    x, y = fluid.layers.data("x", [13]), fluid.layers.data("y", [1])
    hidden = fluid.layers.fc(x, 1300, act="tanh", param_attr=fluid.ParamAttr(name="w"))
    made = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    fluid.optimizer.Momentum(0.01, 0.9).minimize(made)
    return made


def transpile(servers=2, workers=1, **options):
    """Transpile the default programs for servers in this process; returns the transpiler."""
    config = fluid.DistributeTranspilerConfig()
    for name, value in options.items():
        setattr(config, name, value)
    transpiler = fluid.DistributeTranspiler(config)
    transpiler.transpile(0, pservers=",".join(f"a:{server}" for server in range(servers)), trainers=workers)
    return transpiler


def feed(step=0):
    """A batch."""
    x = np.random.default_rng(step).normal(size=(5, 13)).astype("float32")
    return {"x": x, "y": x.sum(1, keepdims=True)}


def losses(loss, program=None, scope=None, steps=4):
    """Train, from the startup program on."""
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program(), scope=scope)
    return [float(executor.run(program, feed=feed(step), fetch_list=[loss], scope=scope)[0]) for step in range(steps)]


@pytest.mark.parametrize("servers", (1, 3))
def test_servers_within_the_process_train_as_the_process_alone(loss, servers):
    main, startup = fluid.default_main_program().clone(), fluid.default_startup_program().clone()
    transpile(servers)
    spread = losses(loss)
    with fluid.program_guard(main, startup):
        assert losses(loss, scope=Scope()) == spread
    assert spread[-1] < spread[0]


def test_a_variable_of_several_blocks_is_whole_for_the_script_and_its_blocks_are_parts_of_it(loss):
    transpile()
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    whole, part = executor.run(feed=feed(), fetch_list=["w", "w@GRAD"])
    assert whole.shape == part.shape == (13, 1300)
    assert np.shares_memory(global_scope().array("w"), sessions.session_of(global_scope()).client.params)


def test_a_program_for_testing_changes_nothing(loss):
    transpile()
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    executor.run(feed=feed())
    for_test = fluid.default_main_program().clone(for_test=True)
    before = global_scope().array("w").copy()
    first, again = (executor.run(for_test, feed=feed(), fetch_list=[loss])[0] for _ in range(2))
    assert first == again and (global_scope().array("w") == before).all()
    assert sessions.session_of(global_scope()).client.pushes == 1


def test_each_scope_has_a_connection_of_its_own(loss):
    transpile()
    one, other = Scope(), Scope()
    assert losses(loss, scope=one) == losses(loss, scope=other)
    assert sessions.session_of(one) is not sessions.session_of(other) and sessions.session_of(global_scope()) is None


def test_closing_the_executor_is_the_goodbye(loss):
    transpile()
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    executor.run(feed=feed())
    executor.close()
    assert sessions.session_of(global_scope()).is_over
    with pytest.raises(UsageError, match="has said goodbye"):
        executor.run(feed=feed())


def test_training_needs_the_startup_program_first(loss):
    transpile()
    with pytest.raises(UsageError, match="the learning rate 'learning_rate_0' has no value: run the startup program"):
        fluid.Executor().run(feed=feed())


def test_a_server_program_that_was_read_back_says_what_it_lacks(loss):
    program = transpile().get_pserver_program("a:0")
    again = Program.parse_from_string(program.serialize_to_string())
    assert str(again) == str(program)
    with pytest.raises(ProgramError, match="not made by a transpiler in this process; call get_pserver_program again"):
        fluid.Executor().run(again)


def test_a_worker_program_that_was_read_back_says_that_it_is_not_connected(loss):
    transpile()
    again = Program.parse_from_string(fluid.default_main_program().serialize_to_string())
    executor, scope = fluid.Executor(), Scope()
    startup = Program.parse_from_string(fluid.default_startup_program().serialize_to_string())
    executor.run(startup, scope=scope)
    with pytest.raises(ProgramError, match="this scope is not connected to servers"):
        executor.run(again, feed=feed(), scope=scope)
