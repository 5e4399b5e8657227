"""An optimizer's state as a dictionary: taken, restored while training, and as first values of another run."""

import numpy as np
import pytest

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, scope_guard
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import Program, program_guard
from fleet_mpi.program.layers.classes import Linear, MSELoss
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.optimizers.lr import ReduceOnPlateau, StepDecay
from fleet_mpi.program.optimizers.paddle2 import Adam, Momentum

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
Y = X.sum(1, keepdims=True)


class Training:
    """A regression with programs and a scope of its own, and the names that a new process would give."""

    def __init__(self, make, state=None):
        self.main, self.startup, self.scope, self.executor = Program(), Program(), Scope(), Executor()
        self.startup.random_seed = 3
        with unique_name.guard(), program_guard(self.main, self.startup):
            self.layer, self.optimizer = Linear(3, 1), make()
            if state is not None:
                self.optimizer.set_state_dict(state)
            self.loss = MSELoss()(self.layer(static_data("x", [None, 3])), static_data("y", [None, 1]))
            self.optimizer.minimize(self.loss)
        self.executor.run(self.startup, scope=self.scope)

    def steps(self, count):
        return [float(self.executor.run(self.main, {"x": X, "y": Y}, [self.loss], scope=self.scope)[0])
                for _ in range(count)]

    def states(self):
        with scope_guard(self.scope):
            return [{name: value if isinstance(value, dict) else np.array(value) for name, value in one.items()}
                    for one in (self.layer.state_dict(), self.optimizer.state_dict())]


def adam():
    return Adam(StepDecay(0.1, step_size=2, gamma=0.5))


def test_the_state_has_every_accumulator_and_the_scheduler():
    training = Training(adam)
    training.steps(1)
    training.optimizer._learning_rate.step()
    state = training.states()[1]
    assert sorted(state) == ["LR_Scheduler"] + sorted(
        f"linear_0.{part}_{kind}_0" for part in ("w_0", "b_0")
        for kind in ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"))
    assert state["LR_Scheduler"] == {"last_epoch": 1, "last_lr": 0.1} and state["linear_0.w_0_moment1_0"].any()


@pytest.mark.parametrize("before_minimize", (False, True))
def test_training_goes_on_with_the_same_bits(before_minimize):
    first = Training(adam)
    first.steps(3)
    layer, optimizer = first.states()
    second = Training(adam, optimizer if before_minimize else None)
    with scope_guard(second.scope):
        second.layer.set_state_dict(layer)
        if not before_minimize:
            second.optimizer.set_state_dict(optimizer)
    assert second.steps(3) == first.steps(3)


def test_what_a_state_lacks_stays_with_a_warning(capsys):
    training = Training(lambda: Momentum(0.1))
    training.steps(1)
    before = training.states()[1]
    with scope_guard(training.scope):
        training.optimizer.set_dict({"linear_0.w_0_velocity_0": np.full((3, 1), 2.0)})
    after = training.states()[1]
    assert (after["linear_0.w_0_velocity_0"] == 2).all() and after["linear_0.w_0_velocity_0"].dtype == np.float32
    assert after["linear_0.b_0_velocity_0"] == before["linear_0.b_0_velocity_0"]
    assert "Momentum: the state given has no 'linear_0.b_0_velocity_0'" in capsys.readouterr().err


def test_a_scheduler_without_a_best_value_yet_can_be_kept():
    training = Training(lambda: Momentum(ReduceOnPlateau(0.5)))
    kept = training.states()[1]["LR_Scheduler"]
    assert None not in kept.values() and kept["last_lr"] == 0.5
    with scope_guard(training.scope):
        training.optimizer.set_state_dict({"LR_Scheduler": {"last_lr": np.array(0.25)}})
    assert training.optimizer.get_lr() == 0.25
