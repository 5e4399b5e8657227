"""The benchmarks that start ranks run, and tell what they measured. Quick sizes: for breakage, not for numbers."""

import json

import pytest

from benchmarks import allreduce, allreduce_ranks, push_pull

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
