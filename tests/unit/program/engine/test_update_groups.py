"""Runs of updates in a plan: which become one call, and in which place."""

from functools import partial
from types import SimpleNamespace

import pytest

from fleet_mpi.program.engine import update_groups


def update(param, reads=(), type="sgd"):
    """A stand-in for an update op."""
    names = [param, *reads]
    return SimpleNamespace(type=type, input_arg_names=names, output_arg_names=[param], input=lambda slot: [param])


OTHER = SimpleNamespace(type="scale", input_arg_names=["rate"], output_arg_names=["rate"])


def step(*numbers):
    raise AssertionError("grouped calls are not made one by one")


@pytest.fixture(autouse=True)
def named_groups(monkeypatch):
    """A group is the list of the arguments that would be launched together; single calls are none."""
    monkeypatch.setattr(update_groups, "grouped", lambda function, calls: calls if len(calls) > 1 else None)


def test_updates_that_follow_each_other_are_one_call_in_the_place_of_the_first():
    ops, others = [update("a"), update("b"), OTHER, update("c")], ["other", partial(step, "c")]
    found, calls = update_groups.group_updates(ops, [partial(step, "a"), partial(step, "b"), *others])
    assert found == [ops[0], OTHER, ops[3]]
    assert calls == [[("a",), ("b",)], *others]


def test_numbers_that_differ_make_groups_of_their_own():
    ops = [update(name) for name in "abcd"]
    calls = [partial(step, name, rate) for name, rate in zip("abcd", (0.1, 0.2, 0.1, 0.2))]
    assert update_groups.group_updates(ops, calls)[1] == [[("a", 0.1), ("c", 0.1)], [("b", 0.2), ("d", 0.2)]]


@pytest.mark.parametrize("second", [update("a"), update("b", reads=["a"])], ids=["written twice", "read by the next"])
def test_an_update_that_needs_another_is_not_grouped_with_it(second):
    calls = [partial(step, "a"), partial(step, "b")]
    assert update_groups.group_updates([update("a"), second], calls)[1] == calls
