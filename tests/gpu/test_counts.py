"""What a training step asks of a device: launches, products, copies and waits, counted by the emulation.

The bounds are what the engine needs today: a step that asks for more fails here, a change that needs fewer lowers them.
``counted_models`` prints the counts.
"""

import json
import os
from typing import NamedTuple

import numpy as np
import pytest

from fleet_mpi import paddle
from fleet_mpi.errors import ProgramError
from tests.gpu.counted_models import MODELS, counts_of
from tests.gpu.device_jobs import environment, run_on_devices
from tests.gpu_emulation import counters
from tests.mpi.jobs import run_job

if "FLEET_EMULATION" not in os.environ:
    pytest.skip("no emulated GPU to count on: build one (tests/gpu_emulation) and source its env.sh",
                allow_module_level=True)


class Most(NamedTuple):
    """Bounds of one step; the feeds are uploaded besides."""

    launches: int
    products: int
    device_copies: int = 1   # the fetched loss, to where the note of wrong ids lies
    downloads: int = 1       # the two together
    waits: int = 1           # for them
    uploads: int = 0


MOST = {
    "ResNet-18": Most(159, 65),
    "ResNet-50": Most(311, 161),
    # Besides: casts of all parameters, 5 others, and what has to do with the loss's scale.
    "ResNet-18, AMP": Most(169, 65),
    "ResNet-50, AMP": Most(321, 161),
    "wide_and_deep": Most(81, 14, device_copies=79),
    # The ids for the servers, the gradients, the fetch; rows and parameters come from the servers, in a copy each.
    "wide_and_deep, 2 servers": Most(25, 14, device_copies=79, downloads=6, waits=3, uploads=2),
}


# The aim for ResNet-50, of which the step takes less than half, the emulation's own part included.
MOST_MS = 10
MOST_CALLS = {"ResNet-50": 3600, "ResNet-50, AMP": 3740}   # 60 more than with Python 3.11: other versions count others


@pytest.fixture(scope="module", params=MOST)
def counted(request):
    """The bounds of a model, the counts of a step of it, and the number of its feeds."""
    step = MODELS[request.param]()
    return MOST[request.param], counts_of(step), step.feeds


def test_a_step_launches_no_more_than_it_needs(counted):
    most, counts, _ = counted
    assert counts.launches <= most.launches and counts.blas_calls <= most.products, vars(counts)
    assert counts.device_copies <= most.device_copies, vars(counts)


def test_a_step_copies_and_waits_no_more_than_it_needs(counted):
    most, counts, feeds = counted
    assert counts.uploads <= feeds + most.uploads and counts.downloads <= most.downloads, vars(counts)
    assert counts.waits <= most.waits and counts.allocations == 0, vars(counts)


@pytest.mark.parametrize("model", MOST_CALLS)
def test_a_step_of_resnet_50_takes_the_host_little(model):
    """No clock on the wall: CPU time of the one thread, where kernels do nothing, and how many functions it calls."""
    ended = run_job(None, ["-m", "tests.gpu.counted_models", model], via="command", timeout=300,
                    env=environment(1, FLEET_EMULATION_NOOP="1"))
    assert ended.code == 0, ended.story()
    found = json.loads(ended.out.splitlines()[-1])
    assert found["milliseconds"] < MOST_MS and found["calls"] <= MOST_CALLS[model], found


def test_a_wrong_label_is_found_by_the_copy_and_the_wait_of_the_fetch():
    paddle.enable_static()
    main, scope, executor = paddle.static.Program(), paddle.static.Scope(), paddle.static.Executor(paddle.CUDAPlace(0))
    with paddle.static.program_guard(main, paddle.static.Program()):
        x, y = paddle.static.data("x", [2, 3], "float32"), paddle.static.data("y", [2, 1], "int64")
        loss = paddle.nn.functional.cross_entropy(input=x, label=y)

    def run(label):
        return executor.run(main, feed={"x": np.ones((2, 3), "float32"), "y": np.array([[0], [label]])},
                            fetch_list=[loss], scope=scope)
    run(1)
    with counters.counted() as counts, pytest.raises(ProgramError, match="3"):
        run(3)
    assert (counts.downloads, counts.waits) == (1, 1), vars(counts)
    np.testing.assert_allclose(run(2)[0], np.log(3), rtol=1e-6)


WAYS = {
    "staged": {"FLEET_MPI_ALLREDUCE": "fast", "FLEET_MPI_CUDA_AWARE": "no"},
    "aware": {"FLEET_MPI_ALLREDUCE": "fast", "FLEET_MPI_CUDA_AWARE": "yes"},
    "exact, staged": {"FLEET_MPI_ALLREDUCE": "exact", "FLEET_MPI_CUDA_AWARE": "no"},
    "exact, aware": {"FLEET_MPI_ALLREDUCE": "exact", "FLEET_MPI_CUDA_AWARE": "yes"},
    "nccl": {"FLEET_MPI_ALLREDUCE": "nccl"},
}


@pytest.mark.parametrize("asynchronous", (False, True))
@pytest.mark.parametrize("way", WAYS)
def test_a_collective_step_waits_for_its_fetch_only(way, asynchronous):
    ended = run_on_devices(2, ["-m", "tests.gpu.collective_counts"], asynchronous=asynchronous, **WAYS[way])
    assert ended.code == 0, ended.story()
    for rank in ended.ranks:
        counts = json.loads(rank.out.splitlines()[-1])
        assert counts["waits"] == 1 and counts["waits_for_sums"] == 0, counts
        if way == "nccl":
            assert counts["polls_for_sums"] == 0, counts
