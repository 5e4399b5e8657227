"""Gradients of equal workers: bits of one process that averages, unused parameters, accumulation, refusals."""

import pytest

from fleet_mpi.errors import UsageError
from tests.unit.door.loopback_job import run

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import fleet_mpi.torch as fleet  # noqa: E402
from tests.unit.torch import trainings  # noqa: E402
from tests.unit.torch.trainings import digest, forked  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    """Workers are threads here."""
    with trainings.one_thread():
        yield


@pytest.mark.parametrize("workers", (1, 2, 3))
@pytest.mark.parametrize("to_none", (True, False), ids=("gradients are forgotten", "gradients are zeroed"))
def test_workers_have_the_bits_of_one_process_that_averages(workers, to_none):
    if workers == 1 and not to_none:
        pytest.skip("one worker sums nothing; zeroed gradients of unused parameters decay, in plain PyTorch too")
    found = run(lambda job: digest(trainings.train_parallel(job, to_none=to_none)), workers, 0)
    assert found == [digest(trainings.by_one_process(workers))] * workers


def test_parameters_and_buffers_begin_as_worker_0_has_them():
    def work(job):
        model = torch.nn.Sequential(forked(job.worker), torch.nn.BatchNorm1d(3))
        with torch.no_grad():
            model[1].running_mean += job.worker
        fleet.parallel(model, job=job)
        return digest(model, model[1].running_mean)
    first = torch.nn.Sequential(forked(), torch.nn.BatchNorm1d(3))
    assert run(work, 2, 0) == [digest(first, first[1].running_mean)] * 2


def test_a_job_with_servers_can_sum_too():
    assert len(set(run(lambda job: digest(trainings.train_parallel(job)), 2, 1))) == 1


@pytest.mark.parametrize("call, sentence", (
    (lambda job, model: fleet.parallel(fleet.parallel(model, job=job), job=job), "call it once per model"),
    (lambda job, model: fleet.parallel(model, how="exactly", job=job), "expected one of exact, fast, nccl"),
    (lambda job, model: fleet.no_sync(model).__enter__(), "give the model that fleet.parallel returned"),
    (lambda job, model: fleet.parallel(model.bfloat16(), job=job), "'body.weight': expected a dense tensor"),
    (lambda job, model: fleet.parallel(model if job.worker else model.body, job=job), "do not run the same job"),
), ids=("twice", "an unknown way", "not parallel", "no type of numpy", "another model"))
def test_what_cannot_be_is_refused(call, sentence):
    with pytest.raises(UsageError, match=sentence):
        run(lambda job: call(job, forked()), 2, 0)


class Fails(torch.autograd.Function):
    """Its backward pass raises."""

    @staticmethod
    def forward(ctx, x):
        """As it is."""
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        """An error of a script."""
        raise ZeroDivisionError("in the middle")


def test_after_an_error_in_the_middle_nobody_goes_on():
    def work(job):
        model = fleet.parallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)), job=job)
        x = torch.ones(2, 4)
        model(x).sum().backward()
        with pytest.raises(ZeroDivisionError):
            model[1](Fails.apply(model[0](x))).sum().backward()
        with pytest.raises(UsageError, match="begin again from what was saved"):
            model(x)
        return True
    assert run(work, 2, 0) == [True, True]


def checkpointed(model, x):
    """The first layer twice, computed again in the backward pass: by a pass within the pass."""
    for _ in range(2):
        x = torch.utils.checkpoint.checkpoint(model[0], x, use_reentrant=True)
    return model[1](x).sum()


def layers():
    """Two, with first values by seed."""
    with trainings.seeded(0):
        return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))


def test_a_parameter_with_two_gradients_in_a_pass_is_refused():
    def work(job):
        checkpointed(fleet.parallel(layers(), job=job), torch.ones(2, 4, requires_grad=True)).backward()
    with pytest.raises(UsageError, match="use_reentrant=False"):
        run(work, 2, 0)


def test_a_compiled_model_is_averaged_too():
    def work(job):
        model = fleet.parallel(layers(), job=job)
        torch.compile(model, backend="eager")(torch.full((2, 4), job.worker + 1.0)).sum().backward()
        return digest(*(one.grad for one in model.parameters()))
    plain = layers()
    found = []
    for number in (1.0, 2.0):
        plain.zero_grad()
        plain(torch.full((2, 4), number)).sum().backward()
        found.append([one.grad for one in plain.parameters()])
    means = [trainings.averaged(grads, one) for grads, one in zip(zip(*found), plain.parameters())]
    assert run(work, 2, 0) == [digest(*means)] * 2
