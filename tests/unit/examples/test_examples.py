"""Every example trains: short runs, the loss falls, the exit code says so."""

import re
import subprocess
import sys

import numpy as np
import pytest

from fleet_mpi import fluid, settings
from fleet_mpi.errors import UnknownName, UsageError
from fleet_mpi.examples import fit_a_line, recognize_digits, resnet, training, wide_and_deep, word2vec

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def seeded():
    """The same numbers in every run, and no data but what the package makes up."""
    with settings.override(FLEET_MPI_SEED=7, DATA_HOME="/nonexistent"):
        yield


def numbers_after(word, text):
    """All numbers that follow a word in a text."""
    return [float(found) for found in re.findall(rf"{word} ([0-9.]+)", text)]


def test_fit_a_line_converges_and_tells_what_was_reached_and_what_it_took(capsys):
    assert fit_a_line.main([]) == 0
    *_, converged, test, took = capsys.readouterr().out.splitlines()
    assert numbers_after("loss", converged)[-1] < 10.0 and converged.endswith(" in the pass before: converged")
    error, guessed = map(float, re.search(r"are missed by (\S+) .*by (\S+) if the mean were the guess", test).groups())
    assert test.startswith("test: 102 prices it never saw") and 0.5 < error < 0.7 * guessed
    assert re.fullmatch(r"took: [\d,]+ samples in \S+ s, [\d,]+ samples/s, after \S+ s for the first step; one "
                        r"process, nothing "
                        r"moved", took)


def test_fit_a_line_says_when_it_was_not_reached(capsys):
    assert fit_a_line.main(["--passes", "1"]) == 1
    said = capsys.readouterr().out
    assert "not converged in 1 passes: mean loss " in said and "test:" not in said


def test_digits_are_recognised(capsys):
    options = ["--samples", "1500", "--passes", "2", "--good-accuracy", "0.8"]
    assert recognize_digits.main(options) == 0
    assert numbers_after("test accuracy", capsys.readouterr().out)[-1] >= 0.8


def test_word2vec_lowers_its_loss(capsys):
    assert word2vec.main(["--passes", "1", "--batches", "60", "--learning-rate", "0.01"]) == 0
    first, = numbers_after("of the first 30 batches", said := capsys.readouterr().out)
    last, = numbers_after("of the last", said)
    assert last < 0.95 * first


def test_word2vec_learns_the_same_from_rows_as_from_the_whole_table():
    fed = {name: np.arange(6).reshape(6, 1) % 3 for name in word2vec.WORDS}

    def losses(is_sparse):
        program, startup = fluid.Program(), fluid.Program()
        program.random_seed = startup.random_seed = 3
        with fluid.program_guard(program, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            _, _, loss = word2vec.network(5, 4, 8, is_sparse)
            fluid.optimizer.SGD(0.5).minimize(loss)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup)
            return [float(exe.run(program, feed=fed, fetch_list=[loss])[0]) for _ in range(4)]

    rows, whole = losses(True), losses(False)
    assert whole[-1] < whole[0]
    np.testing.assert_allclose(rows, whole, rtol=1e-5)


def test_wide_and_deep_tells_clicks_from_the_rest(capsys):
    assert wide_and_deep.main([]) == 0
    assert numbers_after("test: auc", capsys.readouterr().out)[0] > 0.7


def test_wide_and_deeps_metrics_share_one_count_of_samples():
    model = wide_and_deep.network(table_rows=50)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.default_rng(0)
    feed = {"dense_input": rng.random((10, 13), np.float32), "label": np.array([[0]] * 7 + [[1]] * 3),
            **{f"C{i}": rng.integers(0, 50, (10, 1)) for i in range(1, 27)}}
    p, *values = exe.run(feed=feed, fetch_list=[model.prediction, *model.metrics.values()])
    told = dict(zip(model.metrics, map(float, values)))
    error = p - feed["label"]
    # 10 samples counted in each of three groups, one after the other; a single column's top class is 0.
    assert told["acc"] == pytest.approx(7 / 10)
    assert told["mae"] == pytest.approx(np.abs(error).sum() / 20, rel=1e-5)
    assert told["mse"] == pytest.approx((error ** 2).sum() / 30, rel=1e-5)
    assert told["rmse"] == pytest.approx(np.sqrt((error ** 2).sum() / 30), rel=1e-5)
    assert fluid.global_scope().find_var("total_cnt").get_tensor()[0] == 30


def test_the_first_wide_and_deep_runs_on_ids_far_beyond_its_nominal_table(capsys):
    assert wide_and_deep.main(["--variant", "first", "--samples", "200"]) == 0
    assert 0.3 < numbers_after("loss", capsys.readouterr().out)[-1] < 2.0


def test_resnet_learns_one_batch_by_heart(capsys):
    assert resnet.main(["--steps", "25", "--batch-size", "8"]) == 0
    *lines, end = capsys.readouterr().out.splitlines()
    assert len(lines) == 25
    assert re.fullmatch(r"\[Epoch 24, batch 0\] loss: \d\.\d{5}, acc1: \d\.\d{5}, acc5: \d\.\d{5}", lines[-1])
    first, = numbers_after("loss", end)
    assert numbers_after(r"in the first pass,", end)[0] < 0.2 * first


@pytest.mark.parametrize("api", list(training.APIS))
def test_resnet_trains_alike_in_one_process_whatever_the_way(api, capsys):
    assert resnet.main(["--passes", "1", "--batches", "6", "--batch-size", "2", "--api", api]) == 0
    assert [line[:18] for line in capsys.readouterr().out.splitlines()[:-1]] == ["[Epoch 0, batch 0]",
                                                                                 "[Epoch 0, batch 5]"]


def test_resnet_takes_switches_of_the_strategy():
    switches = ["--strategy", "recompute", "--strategy", "gradient_merge", "--strategy",
                "gradient_merge_configs.k_steps=2"]
    assert resnet.main(["--passes", "8", "--batch-size", "4", "--learning-rate", "0.02", *switches]) == 0
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert types.count("conv2d") > 20  # of 18 layers with their shortcuts, computed again for backward
    with pytest.raises(UnknownName, match="has no option 'recomputing'"):
        resnet.main(["--strategy", "recomputing"])


def test_resnet_says_when_the_set_is_less_than_a_batch():
    with settings.override(FLEET_MPI_SYNTHETIC_SAMPLES=3), pytest.raises(UsageError,
                                                                         match="less than a batch of 4 for each"):
        resnet.main(["--batch-size", "4"])


@pytest.mark.parametrize("layers, tensors, numbers", [(18, 65, 11_233_062), (50, 161, 23_717_030)])
def test_a_resnet_has_the_parameters_of_the_original(layers, tensors, numbers):
    model = resnet.network(layers, 224)
    parameters = [one for one in fluid.default_main_program().all_parameters() if one.trainable]
    assert len(parameters) == tensors
    assert sum(int(np.prod(one.shape)) for one in parameters) == numbers
    names = {one.name for one in parameters}
    assert {"conv1_weights", "bn_conv1_scale", "res2a_branch1_weights", "bn5b_branch2b_offset", "fc_0.w_0"} <= names
    assert "res2a.add.output.5.tmp_0" in fluid.default_main_program().global_block().vars
    assert tuple(model.logits.shape) == (-1, 102)


@pytest.mark.parametrize("layers", [34, 101, 152])
def test_deeper_resnets_can_be_built(layers):
    resnet.network(layers, 64)
    names = {one.name for one in fluid.default_main_program().all_parameters()}
    assert ("res4b22_branch2c_weights" in names) == (layers >= 101)
    assert ("res4f_branch2b_weights" in names) == (layers == 34)


@pytest.mark.parametrize("name", ["fit_a_line", "recognize_digits", "word2vec", "wide_and_deep", "resnet"])
def test_an_example_tells_its_options(name):
    ended = subprocess.run([sys.executable, "-m", f"fleet_mpi.examples.{name}", "--help"], capture_output=True,
                           text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "--learning-rate" in ended.stdout


def test_wide_and_deep_learns_from_ids_up_to_ten_thousand_millions(capsys):
    assert wide_and_deep.main(["--table", "growing", "--samples", "6000", "--test-samples", "1000",
                               "--batch-size", "256"]) == 0
    assert float(re.search(r"test: auc (\S+) ", capsys.readouterr().out).group(1)) > 0.7
    keys = fluid.global_scope().array("SparseFeatFactors@KEYS")
    assert 1 << 32 < keys.max() < wide_and_deep.ANY_ID and len(keys) > 2000


def test_word2vec_tells_words_from_drawn_ones(capsys):
    assert word2vec.main(["--negatives", "5", "--batches", "80", "--passes", "1", "--learning-rate", "0.01"]) == 0
    assert fluid.global_scope().array("shared_w@INDEX")[-1] > 100 < fluid.global_scope().array("next_w@INDEX")[-1]


def test_negative_words_are_the_same_for_the_same_worker():
    one, other, third = (list(word2vec.with_negatives(lambda: [(1, 2), (3, 4)], 3, 50, seed)()) for seed in (0, 0, 1))
    assert [sample[:2] for sample in one] == [(1, 2), (3, 4)]
    assert all((a[2] == b[2]).all() for a, b in zip(one, other)) and (one[0][2] != third[0][2]).any()
