"""Updates that need norms stay in step, whoever has something to ask."""

import numpy as np

from fleet_mpi.parameter_server import norms
from fleet_mpi.parameter_server.recipes import Bound, BoundNorm, Decay, recipe

GROUP = BoundNorm(1.0, "all")
RECIPES = {"b": recipe("sgd", steps=(Bound(-1, 1), GROUP)), "a": recipe("sgd", steps=(Decay(0.1), GROUP)),
           "c": recipe("sgd", steps=(Bound(-1, 1), Decay(0.1), BoundNorm(2.0))), "d": recipe("sgd")}


def test_every_server_asks_where_any_variable_of_the_job_has_a_norm():
    assert [norms.asks_at(RECIPES, position) for position in range(norms.most_steps(RECIPES))] == [False, True, True]
    assert not norms.asks_at_the_end(RECIPES) and norms.asks_at_the_end({**RECIPES, "e": recipe("lamb")})
    assert norms.most_steps({}) == 0


def test_the_sum_of_a_group_is_added_up_in_order_of_names():
    sums = {("a", "gradient"): np.array([1e16]), ("b", "gradient"): np.array([1.0]), ("c", "gradient"): np.array([4.0])}
    assert norms.sum_for(GROUP, "b", RECIPES, sums) == np.array([1e16]) + 1.0
    assert norms.sum_for(BoundNorm(2.0), "c", RECIPES, sums) == 4.0


def asking(log, *questions):
    """An update that asks and notes what it is told."""
    for question in questions:
        log.append((yield question))


def test_updates_together_ask_at_once_and_are_told_the_same():
    first, second = [], []
    both = norms.together([asking(first, {"x": 1}, {}), asking(second, {}, {"y": 2})])
    assert next(both) == {"x": 1}
    assert both.send("sums of x") == {"y": 2}
    assert next(both, "over") == "over"
    assert first == second == ["sums of x", None]


def test_nothing_together_asks_nothing():
    assert list(norms.together([])) == []
