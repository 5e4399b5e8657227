"""Starts the inside-tests: one mpirun per number of ranks."""

import re

import pytest

from tests.mpi.jobs import run_inside


@pytest.mark.parametrize("ranks", (2, 3, 4, 5))
def test_the_inside_tests_pass_on_every_rank(ranks):
    ended = run_inside(ranks)
    assert ended.code == 0, ended.story()
    passed = [re.findall(r"(\d+) passed", rank.out)[-1:] for rank in ended.ranks]
    assert passed[0] and all(other == passed[0] for other in passed), ended.story()
