"""Embeddings whose rows live on servers: without an optimizer, without gradients, and compiled."""

import os
import shutil
import sysconfig

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from tests.unit.door.loopback_job import run

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import fleet_mpi.torch as fleet  # noqa: E402
from tests.unit.torch import trainings  # noqa: E402
from tests.unit.torch.trainings import digest  # noqa: E402


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", ("eager", "aot_eager"))
def test_compiled_is_equal_to_the_bit(backend):
    def work(job):
        model, _ = trainings.train_by_servers(job, backend=backend)
        return digest(model, model.rows(torch.arange(trainings.ROWS)))
    params, rows = trainings.by_numpy(1)
    assert run(work, 1, 1) == [digest(*params, rows)]


COMPILER = shutil.which(os.environ.get("CXX", "g++"))
HEADERS = os.path.join(sysconfig.get_path("include"), "Python.h")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(COMPILER is None or not os.path.exists(HEADERS),
                    reason="torch.compile's inductor needs a C++ compiler and Python.h, and they are not both here")
def test_compiled_by_a_compiler_it_learns_the_same():
    """To float32 accuracy: the compiler may fuse products and sums."""
    def work(job):
        model, _ = trainings.train_by_servers(job, backend="inductor")
        return [one.detach().numpy().copy() for one in (*model.parameters(), model.rows(torch.arange(trainings.ROWS)))]
    found, = run(work, 1, 1)
    params, rows = trainings.by_numpy(1)
    for one, expected in zip(found, (*params, rows), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("workers, servers", ((1, 1), (2, 1), (3, 2)))
def test_rows_on_servers_and_equal_workers_above_them_are_equal_to_the_bit(workers, servers):
    def work(job):
        model = trainings.train_beside_parallel(job)
        job.barrier()   # the others' last rows are there
        return digest(model, model.rows(torch.arange(trainings.ROWS)))
    with trainings.one_thread():
        found = run(work, workers, servers)
        assert found == [digest(*trainings.beside_by_one_process(workers))] * workers


def test_a_step_of_the_job_ends_a_step_without_an_optimizer():
    def work(job):
        rows = fleet.Embedding("a", 2, 10, rule="sgd", lr=1.0, init=0.0, job=job)
        rows(torch.tensor([[1, 2], [2, 3]])).sum().backward()
        job.step()
        return rows(torch.arange(5)).detach().numpy().tolist()
    found, = run(work, 1, 1)
    assert found == [[0, 0], [-1, -1], [-2, -2], [-1, -1], [0, 0]]


def test_in_geo_rows_are_the_workers_own_between_exchanges():
    def work(job):
        job.parameter_server({"w": np.zeros(1, "float32")}, mode="geo", k_steps=2)
        rows = fleet.Embedding("a", 2, rule="sgd", lr=1.0, init=0.0, job=job)
        far, seen = torch.tensor([-2 ** 63, 10 ** 10, 10 ** 10]), []
        for _ in range(3):
            rows(far).sum().backward()
            job.step()
            seen.append(rows(far[:2]).detach().numpy()[:, 0].tolist())
        return seen, rows.table.count
    found, = run(work, 1, 2)
    assert found == ([[-1, -2], [-2, -4], [-3, -6]], 2)


def test_it_has_no_parameters_and_takes_no_ids_too():
    def work(job):
        rows = fleet.Embedding("a", 2, 10, job=job)
        with torch.no_grad():
            assert not rows(torch.tensor([1])).requires_grad
        assert abs(rows(torch.arange(10)).detach().numpy()).max() <= 0.01
        return list(rows.parameters()), list(rows.state_dict()), rows(torch.zeros(0, dtype=torch.int64)).shape
    assert run(work, 1, 1) == [([], [], torch.Size([0, 2]))]


def test_rows_may_be_double():
    def work(job):
        rows = fleet.Embedding("a", 2, 10, dtype=torch.float64, init=1 / 3, job=job)
        return rows(torch.tensor([1])).detach().numpy()
    assert np.array_equal(run(work, 1, 1)[0], np.full((1, 2), 1 / 3))


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="ids are whole numbers"):
        run(lambda job: fleet.Embedding("a", 2, 10, job=job)(torch.ones(3)), 1, 1)
    with pytest.raises(UsageError, match="call fleet_mpi.join"):
        fleet.Embedding("a", 2, 10)
