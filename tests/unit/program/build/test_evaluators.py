"""Counts that the program adds up: chunks over several batches, and anew after a reset."""

import numpy as np
import pytest

from fleet_mpi import fluid


def test_chunks_of_several_batches():
    guess, label = (fluid.layers.data(name, [1], dtype="int64", lod_level=1) for name in ("guess", "label"))
    evaluator = fluid.evaluator.ChunkEvaluator(input=guess, label=label, chunk_scheme="IOB", num_chunk_types=2)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    evaluator.reset(exe)
    # B-0 I-0 | B-1: all right; then one of two chunks right. 0 and 1 begin and go on with type 0, 2 and 3 with type 1.
    for guessed in ([0, 1, 2], [0, 1, 0]):
        feed = {name: fluid.create_lod_tensor(np.array(tags, "int64").reshape(-1, 1), [[3]])
                for name, tags in (("guess", guessed), ("label", [0, 1, 2]))}
        precision, recall, f1 = exe.run(feed=feed, fetch_list=evaluator.metrics)
    assert (precision[0], recall[0], f1[0]) == (0.5, 0.5, 0.5)
    precision, recall, f1 = evaluator.eval(exe)
    assert (precision[0], recall[0]) == (0.75, 0.75) and f1[0] == pytest.approx(0.75)
    evaluator.reset(exe)
    assert [one[0] for one in evaluator.eval(exe)] == [0, 0, 0]
