"""The op of program/ops/rank_attention.py."""

import numpy as np
import pytest

from fleet_mpi.data.page_views import rank_matrix
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.graph.program import program_guard
from tests.unit.program.ops.checking import Built, Case, check_forward, checks

rng = np.random.default_rng(0)
# Three page views; -1 in the second: an item without a rank.
OFFSET = rank_matrix(np.full(7, 222), np.array([2, 1, 3, 1, -1, 2, 1]), [3, 3, 1])


def attended(inputs, attrs):
    """Sample by sample, rank by rank."""
    x = inputs["X"][0] if isinstance(inputs["X"], tuple) else inputs["X"]
    ranks, width = attrs.get("MaxRank", 3), x.shape[1]
    blocks = inputs["RankParam"].reshape(ranks, ranks, width, -1)
    out, gathered = np.zeros((len(x), blocks.shape[3])), np.zeros((len(x), ranks, width))
    for i, (own, *others) in enumerate(inputs["RankOffset"].tolist()):
        for rank, row in zip(others[::2], others[1::2]):
            if own > 0 and rank > 0:
                gathered[i, rank - 1] = x[row]
                out[i] += x[row] @ blocks[own - 1, rank - 1]
    return {"Out": out, "InputHelp": gathered.reshape(len(x), -1), "InsRank": inputs["RankOffset"][:, :1] * 1.0}


def case(offset=OFFSET, ranks=3, lod=None, note="", width=2):
    x = rng.normal(size=(len(offset), width))
    return Case("rank_attention", {"X": (x, lod) if lod else x, "RankOffset": offset,
                                   "RankParam": rng.normal(size=(ranks * ranks * width, 4))},
                {"MaxRank": ranks, "MaxSize": 20}, attended, grads="RankParam",
                lods={"Out": lod} if lod else None, note=note)


ONE_RANK = np.array([[1, 1, 0], [-1, -1, -1], [1, 1, 1]])
CASES = [case(), case(lod=[[3, 3, 1]], note="LoD"), case(ONE_RANK, ranks=1, note="one rank"),
         case(np.full((3, 7), -1), note="no ranks")]
test_forward, test_gradient, test_device = checks(CASES)


def test_x_gets_no_gradient_as_in_the_original():
    built = Built(case())
    block = built.program.global_block()
    with program_guard(built.program):
        assert gradients(block.var("Out_out_0"), [block.var("X_0")]) == [None]


def test_a_rank_at_the_place_of_another_counts_as_what_it_says_where_the_original_is_in_doubt():
    swapped = OFFSET.copy()
    swapped[:, 1:5] = OFFSET[:, [3, 4, 1, 2]]
    made = case()
    made.inputs["RankOffset"] = swapped
    check_forward(made)


def changed(**inputs):
    made = case()
    made.outputs = {"Out": [0], "InputHelp": [0], "InsRank": [0]}
    made.inputs.update(inputs)
    return made


def with_number(column, number):
    offset = OFFSET.copy()
    offset[0, column] = number
    return offset


@pytest.mark.parametrize("made, text", [
    (changed(RankOffset=OFFSET[:, :5]), r"2 x MaxRank \+ 1 = 7\], got \[7, 2\] and int32\[7, 5\]"),
    (changed(RankOffset=OFFSET[:5]), "a row of RankOffset for each of the 7 rows of X, got 5"),
    (changed(RankOffset=OFFSET * 1.0), "whole numbers RankOffset"),
    (changed(RankParam=np.ones((12, 4))), r"RankParam \[MaxRank x MaxRank x columns of X = 18, any\], got \[12, 4\]"),
    (changed(RankOffset=with_number(0, 4)), "gives row 0 of X the rank 4: expected at most MaxRank=3"),
    (changed(RankOffset=with_number(2, 7)), "id 7 at position 0 is outside X of 7 rows"),
])
def test_what_does_not_fit_is_refused(made, text):
    with pytest.raises(ProgramError, match=text):
        built = Built(made)
        built.run(built.outputs["Out"])
