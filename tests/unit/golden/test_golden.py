"""The golden net: it sees a difference, and what it runs is the same twice."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.__main__ import main
from tests.golden.commits import first_difference
from tests.golden.recipes import RECIPES

ROOT = Path(__file__).resolve().parents[3]
GIVEN = {(2, "w"): "a", (4, "b"): "c", (4, "w"): "b"}


def test_equal_digests_are_no_difference():
    assert first_difference(GIVEN, dict(GIVEN)) is None


def test_the_first_step_and_variable_that_differ_are_named():
    assert first_difference(GIVEN, {**GIVEN, (4, "b"): "x", (4, "w"): "y"}) == "step 4: b"
    assert first_difference(GIVEN, {(2, "w"): "a"}) == "step 4: b is only in this commit"


@pytest.mark.parametrize("name", ("async", "geo"))
def test_a_recipe_gives_the_same_twice_and_training_changes_it(name):
    recipe, = (recipe for recipe in RECIPES if recipe.name == name)
    found = recipe.run()
    assert found == recipe.run() and len(set(found.values())) == len(found)


def test_an_unknown_recipe_is_refused_with_the_list(capsys):
    with pytest.raises(SystemExit):
        main(["no such"])
    assert "no recipe 'no such'; there are: dense, 1 server, RoundRobin" in capsys.readouterr().err


def test_another_commit_that_does_not_exist_is_an_error():
    ended = subprocess.run([sys.executable, "-m", "tests.golden", "--against", "no-such-revision", "geo"], cwd=ROOT,
                           capture_output=True, text=True, timeout=100)
    assert ended.returncode and "no-such-revision" in ended.stderr
