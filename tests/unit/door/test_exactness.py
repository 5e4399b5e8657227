"""Synchronous training through the door gives the bits of a plain numpy loop: every rule, any number of servers."""

import numpy as np
import pytest

from tests.unit.door.loopback_job import run
from tests.unit.door.plain_loop import ALL_RULES, ELEMENTWISE, bounded_together, by_numpy, digest, train


@pytest.mark.parametrize("rules", (ELEMENTWISE, ALL_RULES), ids=("element by element", "with norms"))
@pytest.mark.parametrize("servers", (0, 1, 2, 3, 4))
def test_every_rule_has_the_bits_of_a_plain_loop(servers, rules):
    expected = digest(by_numpy(2, rules))
    assert [digest(found) for found in run(lambda job: train(job, rules), 2, servers)] == [expected] * 2


@pytest.mark.parametrize("split", ("hash_name", "balanced", "whole"))
def test_bits_do_not_depend_on_the_split(split):
    assert digest(run(lambda job: train(job, ELEMENTWISE, split=split), 2, 3)[0]) == digest(by_numpy(2, ELEMENTWISE))


def decayed(grads, params):
    """Clipped to a range, then decayed."""
    for name, grad in grads.items():
        np.clip(grad, -0.5, 0.7, out=grad)
        grad += np.sign(params[name]) * grad.dtype.type(0.02)
        grad += params[name] * grad.dtype.type(0.01)


RULES = ("momentum", "adam", "sgd")


@pytest.mark.parametrize("said, prepare", (
    ({"clip_value": (-0.5, 0.7), "l1": 0.02, "l2": 0.01}, decayed),
    ({"clip_global_norm": 1.5}, bounded_together(1.5)),
), ids=("range and decay", "norm of all"))
def test_clipping_and_decay(said, prepare):
    expected = digest(by_numpy(2, RULES, prepare))
    for servers in (0, 1, 3):
        assert digest(run(lambda job: train(job, RULES, **said), 2, servers)[0]) == expected, servers


def test_every_parameter_may_have_a_norm_of_its_own():
    def bounded_each(grads, params):
        for grad in grads.values():
            bounded_together(2.0)({"one": grad}, params)
    expected = digest(by_numpy(2, RULES, bounded_each))
    assert digest(run(lambda job: train(job, RULES, clip_norm=2.0), 2, 2)[0]) == expected
