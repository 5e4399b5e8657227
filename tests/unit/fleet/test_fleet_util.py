"""FleetUtil: metrics over all workers' sums, words of worker 0, models by day and pass."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import NotBuilt, UnknownName, UsageError
from fleet_mpi.fleet import fleet_util
from fleet_mpi.fleet.click_metrics import bucket_error
from fleet_mpi.fleet.facade import TranspilerFleet
from fleet_mpi.fleet.fleet_util import FleetUtil, check_all_trainers_ready, expanded

SUMS = {"sqrerr": 2.5, "abserr": 5.0, "prob": 4.0, "q": 1.0, "pos": 6.0, "total": 10.0}


@pytest.fixture
def util(monkeypatch):
    fleet = TranspilerFleet()
    fleet.init()
    monkeypatch.setitem(fleet_util.FLEETS, "transpiler", fleet)
    return FleetUtil(mode="transpiler")


def put(scope, **values):
    for name, value in values.items():
        scope.var(name).get_tensor().set(np.asarray(value), None)


class Doubled:
    """A second worker that has the same sums."""

    def all_reduce(self, input, mode="sum", comm_world="worker"):
        return np.asarray(input) * 2


@pytest.fixture
def scope():
    made = fluid.Scope()
    put(made, pos_histogram=[[0, 1, 5]], neg_histogram=[[3, 1, 0]], **{name: [value] for name, value in SUMS.items()})
    return made


@pytest.mark.parametrize("workers", (1, 2))
def test_metrics_of_a_job_are_those_of_its_sums(util, scope, workers):
    if workers == 2:
        util._util = Doubled()
    auc, error, mae, rmse, actual, predicted, copc, q, total = util.get_global_metrics(
        scope, "pos_histogram", "neg_histogram")
    pairs = 1 * (3 + 0.5) + 5 * 4
    assert auc == pytest.approx(pairs / 24) == util.get_global_auc(scope, "pos_histogram", "neg_histogram")
    assert (mae, rmse, actual, predicted, q, total) == (0.5, 0.5, 0.6, 0.4, 0.1, 10 * workers)
    assert copc == pytest.approx(1.5) and error == 0.0


def test_worker_0_logs_what_was_computed(util, scope, capsys):
    util.print_global_auc(scope, "pos_histogram", "neg_histogram", "test:")
    util.print_global_metrics(scope, "pos_histogram", "neg_histogram", print_prefix="test:")
    util.rank0_error("wrong")
    said = capsys.readouterr().err
    assert "test: global auc = 0.979" in said and "actual_ctr=0.6" in said and "wrong" in said


def test_counting_begins_anew(util, scope):
    util.set_zero("pos_histogram", scope)
    assert scope.find_var("pos_histogram").get_tensor().numpy().tolist() == [[0, 0, 0]]
    assert util.get_global_auc(scope, "pos_histogram", "neg_histogram") == 0.5
    with pytest.raises(UsageError, match="the scope has no variable 'nothing'"):
        util.set_zero("nothing", scope)


def test_bucket_error_is_the_distance_of_rates_in_groups_known_well():
    positives, negatives = np.zeros(1000), np.zeros(1000)
    positives[500], negatives[500] = 4000, 6000    # predicted 0.5, actual 0.4: known within 1 %
    positives[100], negatives[100] = 3, 20         # too few samples to be judged
    assert bucket_error(positives, negatives) == pytest.approx(0.2)
    positives[800], negatives[800] = 16000, 4000   # predicted 0.8, actual 0.8: twice the samples
    assert bucket_error(positives, negatives) == pytest.approx(0.2 / 3)


def test_buckets_are_joined_until_their_rate_is_known():
    positives, negatives = np.zeros(1000), np.zeros(1000)
    positives[500:504], negatives[500:504] = 125, 125
    # Two buckets, 500 samples, make a group; there are two groups.
    expected = (abs(0.5 / 0.5005 - 1) + abs(0.5 / 0.5025 - 1)) / 2
    assert bucket_error(positives, negatives) == pytest.approx(expected)
    assert bucket_error(positives / 100, negatives / 100) == 0.0


def test_passes_of_a_day(util):
    found = util.get_online_pass_interval("{20190720..20190729}", "{0..2}", 30, 2, False)
    assert found == [["0000", "0030"], ["0100", "0130"], ["0200", "0230"]]
    assert util.get_online_pass_interval("20190720", "22 23", 60, 1, True) == [["22"], ["23"]]
    assert expanded("{3..5} 9") == [3, 4, 5, "9"]


def test_a_model_is_saved_by_day_and_pass(util, tmp_path):
    x = fluid.data("x", [None, 2])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr="w"))
    util._fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
    fluid.Executor().run(fluid.default_startup_program())
    weight = fluid.global_scope().find_var("w").get_tensor()
    before = weight.numpy().copy()
    util.save_model(str(tmp_path), 20190720, 3)
    weight.set(before + 1)
    util.load_model(str(tmp_path), 20190720, 3)
    assert (tmp_path / "20190720" / "3" / "w").exists() and (weight.numpy() == before).all()
    util.pull_all_dense_params(fluid.global_scope(), fluid.default_main_program())


def test_what_belongs_to_hdfs_is_refused_when_it_is_called(util):
    with pytest.raises(NotBuilt, match="FleetUtil.write_model_donefile: HDFS"):
        util.write_model_donefile("path", 1, 2, 3)
    with pytest.raises(UnknownName, match="did you mean 'get_global_auc'"):
        util.get_globl_auc
    with pytest.raises(UsageError, match="mode 'pslib' or 'transpiler', got 'other'"):
        FleetUtil(mode="other")


def test_workers_wait_for_each_other_without_files(util, monkeypatch):
    check_all_trainers_ready("some/path", 0)
    monkeypatch.setattr(fleet_util, "FLEETS", {})
    with pytest.raises(UsageError, match="call fleet.init"):
        check_all_trainers_ready("some/path", 0)
