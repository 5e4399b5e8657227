"""Structures of states: packed, mapped and compared."""

from collections import namedtuple

import pytest

from fleet_mpi.program.graph.structures import as_list, map_structure, pack_like, require_alike

Pair = namedtuple("Pair", "hidden cell")


def test_a_structure_is_packed_with_as_many_leaves_as_it_has():
    assert pack_like(Pair(1, [2]), [3, 4]) == Pair(3, [4])
    with pytest.raises(ValueError, match="the structure has 2 leaves, got 1"):
        pack_like([1, 2], [3])


def test_structures_are_mapped_together_only_if_they_are_alike():
    assert map_structure(lambda a, b: a + b, [1, {"x": 2}], (3, {"x": 4})) == [4, {"x": 6}]
    with pytest.raises(ValueError, match="one has 2 parts, the other 1"):
        map_structure(lambda a, b: a, [1, 2], [1])


@pytest.mark.parametrize("first, second, words", [
    ([1], 1, "one holds others"), ([1], {"a": 1}, "one holds others"), ([1], (1,), "a list is no tuple"),
    (Pair(1, 2), (1, 2), "a Pair is no tuple"), ({"a": 1}, {"b": 1}, r"the keys \['a'\] are not \['b'\]"),
    ([[1], 2], [[1, 3], 2], "one has 1 parts, the other 2")])
def test_how_structures_differ_is_said(first, second, words):
    with pytest.raises(TypeError, match=words):
        require_alike(first, second)


def test_leaves_and_lists_for_tuples_do_not_count():
    require_alike({"a": [1, (2, 3)]}, {"a": ["x", (None, 5)]})
    require_alike([1, (2,)], (1, [2]), check_types=False)


def test_one_thing_is_a_list_of_it():
    assert (as_list(3), as_list((1, 2)), as_list([4])) == ([3], [1, 2], [4])
