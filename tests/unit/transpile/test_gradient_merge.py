"""Merged gradients: summed over workers at every k-th step only, and by the formula to the bit."""

import numpy as np
import pytest

from fleet_mpi import update_rules
from fleet_mpi.program.optimizers.plain import SGD
from tests.exact.collective_networks import batches, line
from tests.exact.collective_workers import Replay, build, in_rank_order, same, strategy, train

RATE = np.array([0.1], "float32")


def merging(steps, avg=True, **more):
    """A strategy that merges so many steps."""
    return strategy(gradient_merge=True, gradient_merge_configs={"k_steps": steps, "avg": avg}, **more)


def replay(first, feeds, every, avg):
    """The parameters after the steps: each worker adds up, the sums are summed in rank order."""
    workers = len(feeds[0])
    gradients, values = Replay(line, workers), {name: one.copy() for name, one in first.items()}
    sums = [{name: np.zeros_like(one) for name, one in first.items()} for _ in range(workers)]
    for step, feed in enumerate(feeds, 1):
        for worker, mine in enumerate(sums):
            for name, grad in gradients(values, feed[worker])[1].items():
                mine[name] = mine[name] + grad
        if step % every == 0:
            share = np.float32(1 / every if avg else 1)
            for name in values:
                update_rules.sgd(values[name], in_rank_order([one[name] * share for one in sums]), RATE)
                for one in sums:
                    one[name][...] = 0
    return values


@pytest.mark.parametrize("workers, every, avg", ((2, 3, True), (4, 2, True), (2, 2, False)))
def test_the_update_is_by_the_merged_gradients_of_all_workers(workers, every, avg):
    job, feeds = build(line, SGD(0.1), merging(every, avg), workers), batches(7, workers)
    found, _ = train(job, feeds)
    expected = replay(found[0].first, feeds, every, avg)
    assert not same(expected, found[0].first)
    assert all(same(one.values(job), expected) for one in found)


def test_nothing_is_sent_in_the_steps_between():
    sent = [sum(train(build(line, SGD(0.1), merging(3), 2), batches(steps, 2))[1][0].sent.values())
            for steps in (1, 2, 3, 5)]
    assert sent[0] == sent[1] < sent[2] == sent[3]


def test_the_sums_stand_in_the_block_that_runs_at_every_kth_step():
    job = build(line, SGD(0.1), merging(3), 2)
    main, body = job.main.blocks
    assert "c_allreduce_sum" not in [op.type for op in main.ops]
    types = [op.type for op in body.ops]
    assert types.count("c_allreduce_sum") == 4
    assert types.index("sgd") > types.index("c_sync_comm_stream") > max(
        number for number, type in enumerate(types) if type == "c_allreduce_sum")
