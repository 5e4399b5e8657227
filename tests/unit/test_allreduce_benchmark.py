"""The benchmarks that start ranks run, and tell what they measured. Quick sizes: for breakage, not for numbers."""

import json

import pytest

from benchmarks import allreduce, allreduce_ranks, push_pull, sparse, wide_and_deep

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("benchmark", [allreduce, push_pull])
def test_one_size_is_one_line_of_json(benchmark, capsys):
    assert benchmark.main(["--quick", "--json", "--size", "3000"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["benchmark"] == benchmark.__name__.rpartition(".")[2]
    assert told["mpi"] in ("Open MPI", "MPICH")
    figure, = told["figures"]
    assert all(rate > 0 for rate in figure["rates"].values())


def test_gradients_have_the_shapes_of_their_models():
    resnet, deep = allreduce_ranks.gradients("resnet"), allreduce_ranks.gradients("wide_and_deep")
    assert len(resnet) == 161 and sum(one.nbytes for one in resnet) == pytest.approx(95e6, rel=0.01)
    assert resnet[-1].shape == (64, 3, 7, 7)  # the first layer's is made last
    assert (429, 400) in [one.shape for one in deep]


def test_a_peer_that_is_not_there_is_said_so(capsys):
    assert allreduce.main(["--quick", "--size", "3000", "--peer", "torch", "--peer-python", "/bin/false"]) == 0
    assert "/bin/false has no torch" in capsys.readouterr().out


@pytest.mark.parametrize("bytes_, exact, told", [(30e6, 0.96, "0.95 x raw: exact met, fast NOT met"),
                                                 (42e6, 1.9, "2 x raw: exact NOT met, fast NOT met")])
def test_aims_depend_on_the_size(bytes_, exact, told):
    figure = {"ranks": 2, "bytes": bytes_, "rates": {"exact": exact, "fast": 0.5, "raw": 1.0}}
    assert allreduce._aims(figure) == told


def test_rows_are_pulled_and_pushed_over_mpi_beside_the_same_bytes(capsys):
    assert sparse.main(["--quick", "--json", "--only", "mpi"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [row["ids"] for row in told["mpi"]] == ["uniform", "Zipf 1.05"]
    for row in told["mpi"]:
        assert sorted(row["rates"]) == ["pull", "push", "raw pull", "raw push"]
        assert all(rate > 0 for rate in row["rates"].values())
        assert {len(ranks) for ranks in row["cpu_us"].values()} == {2}
    # The kernel counts in ticks, of which one way of a quick run may take none.
    assert sum(sum(ranks) for row in told["mpi"] for ranks in row["cpu_us"].values()) > 0


def test_wide_and_deep_trains_in_every_mode_beside_workers_that_exchange_nothing(capsys):
    assert wide_and_deep.main(["--quick", "--json"]) == 0
    said = capsys.readouterr().out
    told = json.loads(said.splitlines()[-1])
    assert [row["mode"] for row in told["figures"]] == ["sync", "async", "geo"]
    for row in told["figures"]:
        if "refused" not in row:
            assert {way: len(seconds) for way, seconds in row["seconds"].items()} == {"by server": 2, "alone": 2}
            assert all(len(ranks) == 3 for ranks in row["cpu_s"]["by server"])
    assert "refused" not in told["figures"][0] and "do not compute the same" not in said


def test_what_wide_and_deep_reaches_is_compared_with_its_aim():
    figure = {"mode": "sync", "batch": 512, "seconds": {"by server": [0.04, 0.02], "alone": [0.03, 0.018]},
              "cpu_s": {"by server": [[0.01, 0.02, 0.02]], "alone": [[0.001, 0.02, 0.02]]},
              "first_loss": {"by server": 0.7, "alone": 0.7}}
    assert wide_and_deep.ratios_of(figure["seconds"]) == pytest.approx([0.75, 0.9])
    assert wide_and_deep.cpu_ratio(figure["cpu_s"]) == pytest.approx(0.8)
    assert wide_and_deep.line_of(figure).endswith("0.825 (0.75..0.90)    0.800  0.8: met")
    assert wide_and_deep.line_of({**figure, "mode": "async"}).endswith("0.800  ")
    assert wide_and_deep.line_of({"mode": "geo", "batch": 512, "refused": "why"}).endswith("refused: why")
    figure["first_loss"]["alone"] = 0.71
    assert "do not compute the same" in wide_and_deep.line_of(figure)
