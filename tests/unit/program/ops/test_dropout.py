"""Op of program/ops/dropout.py: values, statistics, and that a step can be replayed."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels.reference.random import bernoulli_mask, key_of
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def dropped(inputs, attrs):
    """By the mask of (seed, name of the output), stream 0."""
    x, p = inputs["X"], attrs["dropout_prob"]
    upscale = attrs.get("dropout_implementation") == "upscale_in_train"
    mask = np.ones(x.shape, np.uint8)
    if attrs.get("is_test"):
        return {"Out": x if upscale else x * (1 - p), "Mask": mask}
    bernoulli_mask.reference(mask, key_of(attrs["seed"], "Out_out_0"), 0, 0, 1 - p)
    return {"Out": x * mask / (1 - p) if upscale and p < 1 else x * mask, "Mask": mask}


WAYS = ("downgrade_in_infer", "upscale_in_train")
CASES = [Case("dropout", {"X": rng.normal(size=shape)},
              {"dropout_prob": p, "dropout_implementation": way, "is_test": test, "seed": 5, "fix_seed": True},
              dropped, "X", note=f"{p}{way}{test}")
         for way in WAYS for test in (False, True) for shape, p in (((4, 5), 0.3), ((2, 3, 2), 0.0), ((6,), 1.0))]



def lowered(inputs, attrs):
    """Dropped elements at selu's floor, then a x + b."""
    x, p = inputs["X"], attrs["dropout_prob"]
    mask = np.ones(x.shape, np.uint8)
    if attrs["is_test"]:
        return {"Out": x, "Mask": mask}
    bernoulli_mask.reference(mask, key_of(attrs["seed"], "Out_out_0"), 0, 0, 1 - p)
    floor = -1.0507009873554805 * 1.6732632423543772
    scale = ((1 - p) * (1 + p * floor ** 2)) ** -0.5 if p < 1 else 0.0
    return {"Out": scale * np.where(mask, x, floor) - scale * floor * p, "Mask": mask}


CASES += [Case("alpha_dropout", {"X": rng.normal(size=shape)}, {"dropout_prob": p, "is_test": test, "seed": 5,
                                                                "fix_seed": True}, lowered, "X", note=f"{p}{test}")
          for test in (False, True) for shape, p in (((4, 5), 0.3), ((2, 3, 2), 0.0), ((6,), 1.0))]

test_forward, test_gradient, test_device = checks(CASES)


def program_of(x, program_seed=0, **attrs):
    case = Case("dropout", {"X": x}, {"dropout_prob": 0.3, **attrs}, None, outputs={"Out": [0], "Mask": [0]})
    built = Built(case, widen=False)
    built.program.random_seed = program_seed
    return built


def runs(built, count):
    executor = Executor(CPUPlace())
    return [np.asarray(executor.run(built.program, feed=built.feed, fetch_list=["Out_out_0"], scope=built.scope)[0])
            for _ in range(count)]


def test_the_share_of_dropped_elements_is_the_probability():
    out = runs(program_of(np.ones((200, 500), np.float32), program_seed=3), 1)[0]
    assert (out == 0).mean() == pytest.approx(0.3, abs=0.006)  # four standard deviations
    kept = runs(program_of(np.ones((200, 500), np.float32), program_seed=3, dropout_implementation=WAYS[1]), 1)[0]
    assert kept.mean() == pytest.approx(1.0, abs=0.01)
    np.testing.assert_array_equal(kept != 0, out != 0)


def test_alpha_dropout_keeps_mean_and_variance():
    x = rng.normal(size=(400, 500)).astype(np.float32)
    case = Case("alpha_dropout", {"X": x}, {"dropout_prob": 0.4}, None, outputs={"Out": [0], "Mask": [0]})
    first, second = runs(Built(case, widen=False), 2)
    assert first.mean() == pytest.approx(0, abs=0.01) and first.std() == pytest.approx(1, abs=0.01)
    assert (first != second).any()


def test_every_run_drops_other_elements_and_a_second_executor_replays_them():
    x = np.ones((50, 40), np.float32)
    first, second = runs(program_of(x, program_seed=3), 3), runs(program_of(x, program_seed=3), 3)
    for one, other in zip(first, second):
        np.testing.assert_array_equal(one, other)
    assert (first[0] != first[1]).any() and (first[1] != first[2]).any()


def test_a_fixed_seed_drops_the_same_elements_at_every_run():
    one, other = runs(program_of(np.ones((50, 40), np.float32), fix_seed=True, seed=9), 2)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("attrs, words", [({"dropout_prob": 1.5}, "probability"),
                                          ({"dropout_implementation": "upscale"}, "upscale_in_train")])
def test_impossible_settings_are_refused(attrs, words):
    with pytest.raises(ProgramError, match=words):
        program_of(np.ones(3, np.float32), **attrs)
