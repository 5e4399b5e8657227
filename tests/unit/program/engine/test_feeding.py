"""fleet_mpi/program/engine/feeding.py: every form of feed ends as arrays of the declared type."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.engine.feeding import as_array, as_feed, feed_meta
from fleet_mpi.program.engine.scope import create_lod_tensor
from fleet_mpi.program.graph.program import default_main_program
from tests.unit.program.building import data

ROWS = np.arange(12, dtype="float32").reshape(4, 3)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("given", [
    ROWS.tolist(), tuple(map(tuple, ROWS.tolist())), list(ROWS), ROWS.astype("float64"), ROWS.astype("float16"),
    ROWS.astype("int32"), ROWS.astype(">f4"), np.asfortranarray(ROWS), np.repeat(ROWS, 2, 0)[::2], read_only(ROWS)])
def test_any_array_or_list_of_numbers_feeds_a_variable(given):
    x = data("x", [-1, 3])
    made = as_feed({"x": given}, default_main_program())["x"]
    meta = feed_meta(x, made)
    assert meta.shape == (4, 3) and meta.dtype == np.float32
    assert np.array_equal(np.asarray(made, "float32"), ROWS)


def test_a_bare_number_feeds_a_variable_of_one():
    x = data("x", [1])
    assert [feed_meta(x, as_array(one, x)).shape for one in (3, 2.5, np.float32(1), True)] == [(1,)] * 4


def test_a_list_of_lists_is_a_list_of_sequences_where_sequences_are_declared():
    ids = data("ids", [-1, 1], "int64", lod_level=1)
    made = as_array([[5, 6], [], [7]], ids)
    assert made.tolist() == [[5], [6], [7]] and made.lod == ((0, 2, 2, 3),) and made.dtype == np.int64
    rows = data("rows", [-1, 3], lod_level=1)
    made = as_array([ROWS[:1].tolist(), ROWS[1:]], rows)
    assert np.array_equal(made, ROWS) and made.lod == ((0, 1, 4),)
    plain = as_array(ROWS.tolist(), rows)
    assert np.array_equal(plain, ROWS) and type(plain) is np.ndarray


def test_ids_in_a_column_feed_sequences_that_were_declared_flat():
    words = data("words", [-1], "int64", lod_level=1)
    column = create_lod_tensor([[1, 2], [3]], [[2, 1]], None)
    made = as_array(column, words)
    assert column.numpy().shape == (3, 1) and made.tolist() == [1, 2, 3] and made.lod == ((0, 2, 3),)


def test_fractions_are_refused_for_integers_in_lists_too():
    ids, words = data("ids", [-1], "int64"), data("words", [-1, 1], "int64", lod_level=1)
    for var, given in ((ids, [1.5]), (words, [[1.5], [2, 3]])):
        with pytest.raises(ProgramError, match="expected int64, got float64"):
            feed_meta(var, as_array(given, var))
    assert feed_meta(ids, as_array([], ids)).shape == (0,)


def test_small_types_are_fed_with_lists_of_ints():
    flags, pixels = data("flags", [-1], "bool"), data("pixels", [-1], "uint8")
    assert as_array([0, 1], flags).tolist() == [False, True]
    assert feed_meta(pixels, as_array([0, 255], pixels)).dtype == np.uint8


def test_the_feeds_of_several_places_are_joined_with_their_sequences():
    data("x", [-1, 3], lod_level=1)
    feeds = [{"x": create_lod_tensor(ROWS, [[1, 3]])}, {"x": create_lod_tensor(ROWS[:2], [[2]])}]
    made = as_feed(feeds, default_main_program())["x"]
    assert np.array_equal(made, np.concatenate([ROWS, ROWS[:2]])) and made.lod == ((0, 1, 4, 6),)
    made = as_feed([{"x": ROWS}, {"x": ROWS}], default_main_program())["x"]
    assert made.shape == (8, 3) and type(made) is np.ndarray


def test_a_sequence_that_does_not_cover_its_rows_is_refused():
    x = data("x", [-1, 3], lod_level=1)
    with pytest.raises(ProgramError, match="covers 3 rows, but there are 4"):
        feed_meta(x, as_array((ROWS, [[1, 2]]), x))


def test_a_feed_that_is_no_dictionary_is_refused():
    for feed in ([ROWS], "x", 3):
        with pytest.raises(UsageError, match="dictionary"):
            as_feed(feed, default_main_program())


@pytest.mark.parametrize("feed", (np.ones((2, 3)), [np.ones((2, 3))], (np.ones(3),)), ids=("array", "list", "tuple"))
def test_arrays_without_names_are_refused_with_the_names_that_there_are(feed):
    for name in "xy":
        data(name=name, shape=[3])
    with pytest.raises(UsageError, match=r"this program reads x, y: feed={'x': \.\.\., 'y': \.\.\.}"):
        as_feed(feed, default_main_program())


@pytest.mark.parametrize("given", [None, [None, 1], "3", ["3"], {}])
def test_what_is_no_number_is_refused_not_converted(given):
    x = data("x", [-1])
    with pytest.raises(ProgramError, match="'x'.*not numbers"):
        as_array(given, x)
