"""Deep gradient compression among workers: by the formula, and few bytes."""

import numpy as np
import pytest

from fleet_mpi import update_rules
from fleet_mpi.program.build.regularizers import L2Decay
from fleet_mpi.program.optimizers.plain import Momentum
from fleet_mpi.ranks.channels import Channel
from tests.exact.collective_networks import batches, wide
from tests.exact.collective_workers import Replay, build, in_rank_order, same, strategy, train

RATE, MU = np.array([0.05], "float32"), 0.9
BIG = "fc_0.w_0"


def compressing(begin=2, **more):
    """A strategy that compresses from a step on, to a hundredth."""
    return strategy(dgc=True, dgc_configs={"rampup_begin_step": begin, "rampup_step": 1, "sparsity": [0.99]}, **more)


def chosen_of(v, count):
    """The indices of the largest, of equal ones the earlier."""
    return np.sort(np.argsort(-abs(v), kind="stable")[:count])


class Formula:
    """One process that does what all workers do, by the formula."""

    def __init__(self, first, workers, begin, decay):
        self.workers, self.begin, self.decay = workers, begin, np.float32(decay)
        self.gradients, self.values = Replay(wide, workers), {name: one.copy() for name, one in first.items()}
        self.velocity = {name: np.zeros_like(one) for name, one in first.items()}
        self.u, self.v = ([np.zeros(first[BIG].size, "float32") for _ in range(workers)] for _ in range(2))

    def step(self, number, feed):
        found = [self.gradients(self.values, feed[worker])[1] for worker in range(self.workers)]
        big = [self._with_decay(one[BIG] * np.float32(self.workers), BIG) for one in found]
        for name in self.values:
            if name != BIG:
                mean = self._with_decay(in_rank_order([one[name] for one in found]), name)
                update_rules.momentum(self.values[name], mean, RATE, self.velocity[name], MU)
        if number < self.begin:
            plain = self._with_decay(in_rank_order([one[BIG] for one in found]), BIG)
            update_rules.momentum(self.values[BIG], plain, RATE, self.velocity[BIG], MU)
        else:
            update_rules.sgd(self.values[BIG], self._mean_of_chosen(big), RATE)

    def _with_decay(self, grad, name):
        return grad + self.values[name] * self.decay if self.decay else grad

    def _mean_of_chosen(self, big):
        total = np.zeros(self.v[0].size, "float32")
        for u, v, grad in zip(self.u, self.v, big):
            u[...] = u * np.float32(MU) + grad.reshape(-1)
            v += u
            indices = chosen_of(v, int(v.size * (1 - 0.99)))
            total[indices] += v[indices]
            u[indices] = v[indices] = 0
        return (total / self.workers).reshape(self.values[BIG].shape)


@pytest.mark.parametrize("workers, decay", ((2, 0.0), (4, 0.0), (2, 0.01)))
def test_workers_move_by_the_mean_of_what_each_chose(workers, decay):
    optimizer = Momentum(0.05, MU, regularization=L2Decay(decay) if decay else None)
    job, feeds = build(wide, optimizer, compressing(begin=2), workers), batches(5, workers)
    found, _ = train(job, feeds)
    expected = Formula(found[0].first, workers, 2, decay)
    for number, feed in enumerate(feeds):
        expected.step(number, feed)
    assert all(same(one.values(job), expected.values) for one in found)


def test_pairs_of_number_and_index_are_sent_instead_of_gradients():
    job, sizes = build(wide, Momentum(0.05, MU), compressing(begin=0), 2), []
    train(job, batches(3, 2), watch=lambda source, target, channel, array: sizes.append((channel, len(array))))
    lengths, pairs = 2 * 8, int(6 * 4096 * (1 - 0.99)) * (4 + 4)
    at_start = 2 * (8 + len('["", ""]'))  # what workers can do
    assert sum(size for channel, size in sizes if channel == Channel.GATHERED) == at_start + 3 * 2 * (lengths + pairs)
    # The buckets of the others: 8193 numbers, there and back.
    assert sum(size for channel, size in sizes if channel in (Channel.PART, Channel.SUM)) < 3 * 2 * 4 * 8400


def test_only_long_float32_parameters_are_compressed():
    job = build(wide, Momentum(0.05, MU), compressing(), 2)
    assert job.plan.compressed == [BIG + "@GRAD"]
    assert BIG + "@GRAD" not in [one.name for one in job.plan.gradients] and len(job.plan.gradients) == 3
