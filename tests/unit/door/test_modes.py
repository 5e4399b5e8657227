"""All modes through the door learn; workers may have more or less data than others."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.modes import MODES
from tests.unit.door.loopback_job import run

OPTIONS = {"half_async": {"max_merge_var_num": 2}, "async": {"max_merge_var_num": 2, "is_sgd_optimizer": False},
           "bounded_staleness": {"bound": 2}, "delay_compensated": {"lambda_": 0.5, "adaptive": True},
           "geo": {"k_steps": 3}}
TRUTH = np.linspace(-1, 1, 12).astype("float32")


def fit(job, mode, rule="sgd", steps=40, **said):
    """A line through points of each worker's own; returns (first loss, last loss, last parameters)."""
    draw = np.random.default_rng(job.worker)
    params = {"w": np.zeros(12, "float32")}
    server = job.parameter_server(params, rule, 0.05, mode=mode, **OPTIONS.get(mode, {}), **said)
    losses = []
    for _ in range(steps - 15 * job.worker):
        x = draw.normal(size=(16, 12)).astype("float32")
        wrong = x @ params["w"] - x @ TRUTH
        losses.append(float((wrong ** 2).mean()))
        server.push_pull({"w": x.T @ wrong * np.float32(2 / 16)})
    job.leave()
    return losses[0], losses[-1], params["w"].copy()


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_learns_with_uneven_data(mode):
    for first, last, _ in run(lambda job: fit(job, mode), 2, 2):
        assert last < first / 4, (first, last)


@pytest.mark.parametrize("rule", ("adam", "lamb"))
def test_geo_has_the_rule_in_the_workers(rule):
    for first, last, _ in run(lambda job: fit(job, "geo", rule, clip_global_norm=5.0), 2, 1):
        assert last < first


def test_alone_geo_is_the_rule():
    _, _, plain = run(lambda job: fit(job, "sync"), 1, 1)[0]
    _, _, geo = run(lambda job: fit(job, "geo"), 1, 1)[0]
    assert np.allclose(plain, geo, atol=1e-6)


@pytest.mark.parametrize("said, sentence", (
    ({"mode": "asink"}, "no mode is called 'asink'; did you mean 'async'"),
    ({"mode": "geo", "k_step": 3}, "neither update rule 'sgd' nor mode 'geo' has 'k_step'; did you mean 'k_steps'"),
    ({"mode": "bounded_staleness", "bound": -1}, "bound: expected a number from 0"),
    ({"mode_options": {"bound": 1}}, "mode 'sync' has no option 'bound'"),
))
def test_a_mode_that_cannot_be_is_a_sentence(said, sentence):
    with pytest.raises(UsageError, match=sentence):
        run(lambda job: job.parameter_server({"w": np.zeros(3)}, **said), 1, 1)


def test_modes_besides_sync_need_servers():
    with pytest.raises(UsageError, match="mode 'async' needs servers, and this job has none"):
        run(lambda job: job.parameter_server({"w": np.zeros(3)}, mode="async"), 2, 0)


def test_a_keyword_of_both_is_the_rules_and_mode_options_are_the_modes():
    def work(job):
        job.parameter_server({"w": np.zeros(3)}, "adagrad", mode="delay_compensated", epsilon=0.25,
                             mode_options={"epsilon": 0.5})
        return job._declaring.declared
    declared = run(work, 1, 1)[0]
    assert declared.options == {"epsilon": 0.5} and dict(declared.parameters[0].recipe.hypers) == {"epsilon": 0.25}
