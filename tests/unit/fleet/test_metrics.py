"""Metrics of a job: formulas over arrays, variables and names, combined over the workers."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.fleet import metrics
from fleet_mpi.fleet.paddle2 import Fleet2
from fleet_mpi.program.engine.scope import Scope, global_scope
from fleet_mpi.program.graph.program import default_main_program


class TwoWorkers:
    """A ``fleet.util`` with a second worker that has the same arrays."""

    def all_reduce(self, input, mode="sum", comm_world="worker"):
        return np.asarray(input) * 2 if mode == "sum" else np.asarray(input)


@pytest.fixture
def util():
    return Fleet2().init().util


def counted_pairs(positives, negatives):
    """The share of (positive, negative) pairs in the right order, ties half."""
    right = total = 0
    for i, many in enumerate(positives):
        for j, others in enumerate(negatives):
            right += many * others * (1 if i > j else 0.5 if i == j else 0)
            total += many * others
    return right / total


@pytest.mark.parametrize("mode", ("sum", "max", "min"))
def test_one_worker_keeps_its_values(mode, util):
    assert getattr(metrics, mode)(np.array([[1, 2]]), util=util).tolist() == [[1, 2]]


def test_values_of_all_workers_are_combined():
    assert metrics.sum([1, 2], util=TwoWorkers()).tolist() == [2, 4]
    assert metrics.mae([3.0], [4.0], util=TwoWorkers()) == 0.75


@pytest.mark.parametrize("workers", (1, 2))
def test_auc_is_the_share_of_pairs_in_order(util, workers):
    rng = np.random.default_rng(0)
    positives, negatives = rng.integers(0, 9, 12), rng.integers(0, 9, 12)
    found = metrics.auc(positives[None], negatives[None], util=util if workers == 1 else TwoWorkers())
    assert found == pytest.approx(counted_pairs(positives, negatives))


@pytest.mark.parametrize("positives, negatives", (([0, 0], [1, 2]), ([1, 2], [0, 0]), ([0, 0], [0, 0])))
def test_auc_without_one_of_the_classes_is_a_half(util, positives, negatives):
    assert metrics.auc(np.array([positives]), np.array([negatives]), util=util) == 0.5


def test_auc_takes_as_many_buckets_of_both_kinds(util):
    with pytest.raises(UsageError, match="as many buckets of positives as of negatives, got 2 and 3"):
        metrics.auc(np.ones((1, 2)), np.ones((1, 3)), util=util)


def test_means_of_errors(util):
    assert metrics.mse([8.0], [4], util=util) == 2.0
    assert metrics.rmse([36.0], [4], util=util) == 3.0
    assert metrics.acc(np.array([3]), np.array([4]), util=util) == 0.75
    with pytest.raises(UsageError, match="no sample was counted"):
        metrics.mae([1.0], [0], util=util)


def test_a_variable_or_its_name_stands_for_its_value(util):
    var = default_main_program().global_block().create_var(name="right", shape=[1], dtype="float32")
    global_scope().var("right").get_tensor().set(np.array([3.0], "float32"))
    other = Scope()
    other.var("right").get_tensor().set(np.array([5.0], "float32"))
    assert metrics.acc(var, [4], util=util) == 0.75
    assert metrics.acc("right", [4], scope=other, util=util) == 1.25
    with pytest.raises(UsageError, match="the scope has no variable 'wrong'"):
        metrics.sum("wrong", util=util)
