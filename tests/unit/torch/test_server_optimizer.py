"""The optimizer whose rule runs on servers: bits of numpy and of torch.optim, groups, schedules, states, refusals."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from tests.unit.door.loopback_job import run

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import fleet_mpi.torch as fleet  # noqa: E402
from tests.unit.torch import trainings  # noqa: E402
from tests.unit.torch.trainings import digest  # noqa: E402


@pytest.mark.parametrize("rule", ("sgd", "momentum", "adam", "adamw", "rmsprop", "lamb"))
@pytest.mark.parametrize("servers", (0, 1, 3))
def test_rules_and_rows_have_the_bits_of_numpy(servers, rule):
    def work(job):
        model, _ = trainings.train_by_servers(job, rule)
        return digest(model, model.rows(torch.arange(trainings.ROWS)))
    params, rows = trainings.by_numpy(2, rule)
    assert run(work, 2, servers) == [digest(*params, rows)] * 2


# {rule: (the same of PyTorch, its settings here, what may differ beyond the last bit, as a part of the step's length)}.
# The last bit: PyTorch adds a product by one fused instruction. Adagrad: it squares so, too. Adam: the powers of beta
# are float32 here, as in the original, and 1 - beta2 ** t has lost as many digits as 0.001 has zeros; there they are
# float64.
SAME = {
    "sgd": (lambda params: torch.optim.SGD(params, 0.1), {}, 0),
    "momentum": (lambda params: torch.optim.SGD(params, 0.1, momentum=0.9), {}, 0),
    "adagrad": (lambda params: torch.optim.Adagrad(params, 0.1, eps=1e-6), {}, 1e-6),
    "adam": (lambda params: torch.optim.Adam(params, 0.1, eps=1e-8), {}, 6e-5),
    "adamw": (lambda params: torch.optim.AdamW(params, 0.1, eps=1e-8, weight_decay=0.01), {"coeff": 0.01}, 6e-5),
}


@pytest.mark.parametrize("rule", SAME)
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_a_step_is_that_of_torch(rule, dtype):
    theirs, settings, part = SAME[rule]
    part *= 1 if dtype == "float32" else 1e-8
    draw = np.random.default_rng(3)
    grads, start = draw.normal(size=(6, 1000)).astype(dtype), draw.normal(size=1000).astype(dtype)

    def work(job):
        mine, other = (torch.nn.Parameter(torch.from_numpy(start.copy())) for _ in range(2))
        ours, plain = fleet.server_optimizer([mine], rule, 0.1, job=job, **settings), theirs([other])
        for grad in grads:
            before = other.detach().numpy().copy()
            mine.grad, other.grad = (torch.from_numpy(grad.copy()) for _ in range(2))
            ours.step()
            plain.step()
            found, expected = mine.detach().numpy(), other.detach().numpy()
            allowed = np.spacing(np.maximum(abs(before), abs(expected))) + part * abs(expected - before)
            assert (abs(found - expected) <= allowed).all()
            other.data.copy_(mine.detach())   # step by step: what differs must not add up
    run(work, 1, 1)


def test_states_are_whole_for_any_number_of_servers():
    def save(job):
        model, optimizer = trainings.train_by_servers(job)
        saved = model.state_dict(), optimizer.state_dict() if job.worker == 0 else None
        saved[0].update({name: one.clone() for name, one in saved[0].items()})
        optimizer.zero_grad()
        model.last(torch.ones(1, 8)).sum().backward()
        optimizer.step()
        return *saved, digest(model)

    def load(job):
        model = torch.nn.Linear(8, 1)
        optimizer = fleet.server_optimizer([{"params": [("weight", model.weight)]},
                                            {"params": [("bias", model.bias)], "lr": 7.0}], "adam", lr=0.5, job=job)
        if job.worker == 0:
            model.load_state_dict({name.removeprefix("last."): one for name, one in weights.items()})
        optimizer.load_state_dict(states)
        model(torch.ones(1, 8)).sum().backward()
        optimizer.step()
        return digest(model), [group["lr"] for group in optimizer.param_groups]
    (weights, states, expected), _ = run(save, 2, 2)
    assert sorted(states["state"][0]) == ["beta1_pow_acc", "beta2_pow_acc", "moment1", "moment2"]
    assert states["state"][0]["moment1"].shape == (1, 8)
    found = [run(load, 2, servers) for servers in (0, 1, 3)]
    assert {one for jobs in found for one, _ in jobs} == {expected}
    assert found[0][0][1] == [group["lr"] for group in states["param_groups"]]


def test_a_closure_gives_the_loss_and_missing_gradients_are_zeros():
    def work(job):
        one, other = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
        optimizer = fleet.server_optimizer([one, other], "sgd", 0.5, job=job)

        def closure():
            loss = (one ** 2).sum()
            loss.backward()
            return loss
        return optimizer.step(closure).item(), one.tolist(), other.tolist()
    assert run(work, 1, 1) == [(2.0, [0.0, 0.0], [1.0, 1.0])]


def test_a_parameter_that_requires_no_gradient_stays():
    def work(job):
        layer = torch.nn.Linear(2, 1)
        layer.bias.requires_grad_(False)
        before = layer.bias.tolist()
        optimizer = fleet.server_optimizer(layer.parameters(), "sgd", 0.5, job=job, l2=0.5)
        layer(torch.ones(3, 2)).sum().backward()
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        return layer.bias.tolist() == before and list(optimizer.server.params) == ["0"]
    assert run(work, 1, 1) == [True]


def replaced(job):
    """A parameter whose memory is no longer what the servers answer to."""
    optimizer = optimizer_of(job)
    one = optimizer.params["0"]
    one.data = one.data.clone()
    optimizer.step()


def optimizer_of(job, **said):
    """Over one small parameter."""
    return fleet.server_optimizer([torch.nn.Parameter(torch.ones(2))], "momentum", 0.1, job=job, **said)


def changed(job):
    """A group whose settings change after it was made."""
    optimizer = fleet.server_optimizer([{"params": [torch.nn.Parameter(torch.ones(2))], "mu": 0.5}], "momentum", 0.1,
                                       job=job)
    optimizer.param_groups[0]["mu"] = 0.7
    optimizer.step()


@pytest.mark.parametrize("call, sentence", (
    (lambda job: optimizer_of(job, beta1=0.9), "has 'beta1'"),
    (lambda job: optimizer_of(job).add_param_group({"params": []}), "give all groups when the optimizer is made"),
    (replaced, "'0' has other memory now"),
    (changed, "'mu' of a group was changed from 0.5 to 0.7: only learning rates can change"),
    (lambda job: optimizer_of(job).load_state_dict({"state": {}, "param_groups": []}), "states of another rule"),
    (lambda job: fleet.server_optimizer([torch.ones(2, dtype=torch.bfloat16, requires_grad=True)], job=job),
     "'0': expected a dense tensor"),
), ids=("setting", "group", "other memory", "changed group", "states", "type"))
def test_what_cannot_be_is_refused(call, sentence):
    with pytest.raises(UsageError, match=sentence):
        run(call, 1, 1)
