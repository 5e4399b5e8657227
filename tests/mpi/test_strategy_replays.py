"""Strategies of the 2.x fleet on two ranks against plain numpy: gradients of a line by hand, and each rule in float64.

Nothing of the package computes what is expected. All strategies train in one job, one after the other, as a script
would.
"""

import json

import numpy as np
import pytest

from tests.mpi.jobs import run_job

SCRIPT = """
import json
import numpy as np
import paddle
from paddle.distributed import fleet

paddle.enable_static()
fleet.init(is_collective=True)
worker = fleet.worker_index()


def optimizer(name, rate):
    if name == "momentum":
        return paddle.optimizer.Momentum(rate, 0.9)
    return (paddle.optimizer.Adam if name == "adam" else paddle.optimizer.SGD)(rate)


def trained(name, rate, switches):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        x, y = paddle.static.data("x", [None, 4]), paddle.static.data("y", [None, 1])
        first = paddle.nn.initializer.Assign(np.array(START, "float32").reshape(4, 1))
        half = paddle.nn.initializer.Constant(0.5)
        guess = paddle.static.nn.fc(x, 1, weight_attr=paddle.ParamAttr(name="w", initializer=first),
                                    bias_attr=paddle.ParamAttr(name="b", initializer=half))
        loss = paddle.mean(paddle.nn.functional.square_error_cost(guess, y))
        strategy = fleet.DistributedStrategy()
        for key, value in switches.items():
            setattr(strategy, key, value)
        fleet.distributed_optimizer(optimizer(name, rate), strategy).minimize(loss, startup)
    exe, values = paddle.static.Executor(paddle.CPUPlace()), []
    with paddle.static.scope_guard(paddle.static.Scope()):
        exe.run(startup)
        for step in range(STEPS):
            data = np.random.RandomState(10 * step + worker).normal(size=(6, 5)).astype("float32")
            exe.run(main, feed={"x": data[:, :4], "y": data[:, 4:]})
            scope = paddle.static.global_scope()
            values.append([np.array(scope.find_var(one).get_tensor()).reshape(-1).tolist() for one in ("w", "b")])
    return values


found = {case: trained(*arguments) for case, arguments in CASES.items()}
print("values", json.dumps({"worker": worker, "found": found}), flush=True)
"""

STEPS, WORKERS, RATE, START = 7, 2, 0.05, [0.3, -0.2, 0.1, 0.4]
# What the script trains: the optimizer, its rate, the strategy's switches.
CASES = {
    "plain": ["momentum", RATE, {}],
    "gradient_merge": ["sgd", RATE, {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 3, "avg": True}}],
    "gradient_merge, summed": ["momentum", RATE, {"gradient_merge": True,
                                                  "gradient_merge_configs": {"k_steps": 2, "avg": False}}],
    "lars": ["momentum", 2.0, {"lars": True, "lars_configs": {"lars_coeff": 0.01, "lars_weight_decay": 0.001}}],
    "lamb": ["adam", RATE, {"lamb": True, "lamb_configs": {"lamb_weight_decay": 0.02}}],
    "localsgd": ["momentum", RATE, {"localsgd": True, "localsgd_configs": {"k_steps": 3, "begin_step": 2}}],
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """{case: values[worker][step]} of one job that trains all."""
    path = tmp_path_factory.mktemp("replays") / "train.py"
    path.write_text(f"START, STEPS, CASES = {START!r}, {STEPS!r}, {CASES!r}\n{SCRIPT}")
    ended = run_job(WORKERS, ["-m", "fleet_mpi", path], timeout=100)
    assert ended.code == 0, ended.story()
    said = sorted((json.loads(line.split(" ", 1)[1]) for line in ended.out.splitlines() if line.startswith("values")),
                  key=lambda one: one["worker"])
    assert len(said) == WORKERS, ended.story()
    return {case: [one["found"][case] for one in said] for case in CASES}


class Replay:
    """Both workers' parameters (w and b in one array of 5), and their gradients by hand."""

    def __init__(self):
        self.values = [np.array([*START, 0.5]) for _ in range(WORKERS)]

    def gradients(self, step):
        """The gradient of each worker's own batch at its own parameters."""
        return [self._gradient(step, worker) for worker in range(WORKERS)]

    def _gradient(self, step, worker):
        data = np.random.RandomState(10 * step + worker).normal(size=(6, 5)).astype("float32").astype(float)
        rows, y = np.c_[data[:, :4], np.ones(6)], data[:, 4]
        return 2 * rows.T @ (rows @ self.values[worker] - y) / 6


def together(rule):
    """The replay of a rule ``rule(parameters, mean gradient)`` -> parameters, applied to w and b one by one."""
    replay, found = Replay(), []
    for step in range(STEPS):
        mean, now = sum(replay.gradients(step)) / WORKERS, replay.values[0]
        new = np.r_[rule("w", now[:4], mean[:4]), rule("b", now[4:], mean[4:])]
        replay.values = [new] * WORKERS
        found.append(replay.values)
    return found


def momentum():
    velocity = {}

    def rule(name, p, g):
        velocity[name] = 0.9 * velocity.get(name, 0.0) + g
        return p - RATE * velocity[name]
    return together(rule)


def lars():
    velocity = {}

    def rule(name, p, g):
        p_norm, g_norm = np.linalg.norm(p), np.linalg.norm(g)
        local = 2.0 * 0.01 * p_norm / (g_norm + 0.001 * p_norm)
        velocity[name] = 0.9 * velocity.get(name, 0.0) + local * (g + 0.001 * p)
        return p - velocity[name]
    return together(rule)


def lamb():
    states, times = {}, {}

    def rule(name, p, g):
        first, second = states.get(name, (0.0, 0.0))
        times[name] = times.get(name, 0) + 1
        states[name] = first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        direction = (first / (1 - 0.9 ** times[name])) / (np.sqrt(second / (1 - 0.999 ** times[name]))
                                                          + EPSILON) + 0.02 * p
        return p - RATE * np.linalg.norm(p) / np.linalg.norm(direction) * direction
    return together(rule)


EPSILON = 1e-8  # Adam's, which the switch lamb hands on


def merged(every, average, mu):
    """Each worker adds up its gradients; at every k-th step their mean over the workers is applied."""
    replay, found, sums, velocity = Replay(), [], [np.zeros(5)] * WORKERS, np.zeros(5)
    for step in range(STEPS):
        sums = [total + one for total, one in zip(sums, replay.gradients(step))]
        if (step + 1) % every == 0:
            velocity = mu * velocity + sum(sums) / WORKERS / (every if average else 1)
            replay.values = [replay.values[0] - RATE * velocity] * WORKERS
            sums = [np.zeros(5)] * WORKERS
        found.append(replay.values)
    return found


def local_sgd(every, begin):
    """Each worker by itself; the ways gone since the last averaging are averaged when it is due."""
    replay, found = Replay(), []
    snapshot, velocity, last = replay.values[0], [np.zeros(5)] * WORKERS, begin
    for step in range(1, STEPS + 1):
        velocity = [0.9 * old + one for old, one in zip(velocity, replay.gradients(step - 1))]
        replay.values = [p - RATE * one for p, one in zip(replay.values, velocity)]
        if step <= begin or step - last == every:
            snapshot, last = snapshot - sum(snapshot - p for p in replay.values) / WORKERS, step
            replay.values = [snapshot] * WORKERS
        found.append(replay.values)
    return found


REPLAYS = {"plain": momentum, "gradient_merge": lambda: merged(3, True, 0.0),
           "gradient_merge, summed": lambda: merged(2, False, 0.9), "lars": lars, "lamb": lamb,
           "localsgd": lambda: local_sgd(3, 2)}


@pytest.mark.parametrize("case", CASES)
def test_a_strategy_on_two_ranks_follows_its_rule_step_by_step(case, found):
    expected = REPLAYS[case]()
    for worker in range(WORKERS):
        for step, (w, b) in enumerate(found[case][worker]):
            np.testing.assert_allclose([*w, *b], expected[step][worker], rtol=2e-5, atol=2e-6, err_msg=f"step {step}")
    apart = any(one != other for one, other in zip(*found[case]))
    assert apart == (case == "localsgd")
