"""Ranks come together: what they exchange, who is named when one stays away, and that nothing is executed."""

import time

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem, Stalled, UsageError
from fleet_mpi.ranks import meeting

named = "rank {}".format


@pytest.fixture
def short_deadline(monkeypatch):
    """A quarter of a second, and the others wait for the first rank's sentence only as long again."""
    monkeypatch.setattr(meeting, "_GRACE_S", 0.25)
    with settings.override(FLAGS_rpc_deadline=250):
        yield


@pytest.mark.parametrize("size", (1, 2, 5))
def test_a_meeting_gives_every_rank_all_records_in_rank_order(on_ranks, size):
    results = on_ranks(size, lambda comm: meeting.meet(comm, b"%04d" % comm.rank, "meeting", named))
    assert results == [[b"%04d" % rank for rank in range(size)]] * size


@pytest.mark.parametrize("absent", (0, 2))
def test_who_stays_away_is_named_with_the_cure(on_ranks, short_deadline, absent):
    def body(comm):
        if comm.rank != absent:
            meeting.meet(comm, b"x", "joining", named, "call init")
    results = on_ranks(3, body)
    said = str(results[1 if absent == 0 else 0])
    assert isinstance(results[1 if absent == 0 else 0], Stalled)
    assert said == f"joining: rank {absent} did not come within 0.25 s (FLAGS_rpc_deadline): call init"


def test_a_rank_does_not_blame_the_first_one_while_that_waits_for_a_third(on_ranks, short_deadline):
    ended = {}

    def body(comm):
        if comm.rank == 2:
            return
        time.sleep(0.15 * (comm.rank == 0))
        try:
            meeting.meet(comm, b"x", "joining", named)
        except Stalled as error:
            ended[comm.rank] = time.monotonic()
            raise error
    results = on_ranks(3, body)
    assert "rank 2 did not come" in str(results[0]) and ended[0] < ended[1]
    assert "rank 0 came, but did not say within 0.5 s whom it waits for" in str(results[1])


@pytest.mark.parametrize("values", (
    [1, 2.5, None], ["a", "ü", ""], [[1, [2]], {"k": [None, True]}, {}], [0, -1, 2 ** 62]))
def test_values_come_back_as_they_were(on_ranks, values):
    assert on_ranks(3, lambda comm: meeting.all_gather(comm, values[comm.rank], named)) == [values] * 3


@pytest.mark.parametrize("round_bytes", (1 << 28, 64))
def test_arrays_of_any_size_and_kind_are_gathered(on_ranks, monkeypatch, round_bytes):
    monkeypatch.setattr(meeting, "_ROUND_BYTES", round_bytes)
    arrays = [np.arange(7, dtype="int64").reshape(7, 1), np.float32(2.5) * np.ones((2, 3), "float32"),
              np.array(True), np.zeros((0, 4))]
    for gathered in on_ranks(4, lambda comm: meeting.all_gather(comm, arrays[comm.rank], named)):
        for got, sent in zip(gathered, arrays):
            assert got.dtype == sent.dtype and got.shape == sent.shape and (got == sent).all()


@pytest.mark.parametrize("round_bytes", (1 << 28, 64))
def test_sums_are_taken_in_rank_order_whatever_the_cut(on_ranks, monkeypatch, round_bytes):
    monkeypatch.setattr(meeting, "_ROUND_BYTES", round_bytes)
    # In float32 the order shows: a small number is lost beside the large one, or not.
    parts = [np.full((3, 7), value, "float32") for value in (1e8, 1.0, -1e8, 1.0)]
    expected = ((parts[0] + parts[1]) + parts[2]) + parts[3]
    assert expected[0, 0] != sum(parts[::-1])[0, 0]
    for total in on_ranks(4, lambda comm: meeting.all_reduce(comm, parts[comm.rank], "sum", named)):
        assert total.shape == (3, 7) and total.tobytes() == expected.tobytes()


@pytest.mark.parametrize("mode, expected", (("max", [3, 2]), ("min", [1, 0]), ("sum", [6, 3])))
def test_every_mode_goes_over_all_ranks(on_ranks, mode, expected):
    rows = np.array([[1, 2], [3, 0], [2, 1]])
    for total in on_ranks(3, lambda comm: meeting.all_reduce(comm, rows[comm.rank], mode, named)):
        assert total.tolist() == expected and total.dtype == rows.dtype


def test_a_single_number_and_an_array_of_none_are_combined_too(on_ranks):
    assert [int(total) for total in on_ranks(2, lambda comm: meeting.all_reduce(comm, 3, "sum", named))] == [6, 6]
    assert on_ranks(2, lambda comm: meeting.all_reduce(comm, np.zeros((0, 2)), "max", named).shape) == [(0, 2)] * 2


def test_different_calls_are_told_apart_on_all_ranks_but_said_by_the_first_only(on_ranks):
    def body(comm):
        shape = (2, 3) if comm.rank == 1 else (3,)
        return meeting.all_reduce(comm, np.ones(shape, "float32"), "sum", named)
    results = on_ranks(2, body)
    for result in results:
        assert isinstance(result, UsageError)
        assert "rank 0 calls all_reduce sum of float32 [3] while " \
               "rank 1 calls all_reduce sum of float32 [2, 3]" in str(result)
    assert [result.reported_by_peer for result in results] == [False, True]


def test_a_barrier_beside_a_gathering_is_refused(on_ranks):
    results = on_ranks(2,
                       lambda comm: meeting.barrier(comm, named) if comm.rank else meeting.all_gather(comm, 1, named))
    assert "rank 0 calls all_gather while rank 1 calls barrier" in str(results[0])


@pytest.mark.parametrize("value", (object(), {1, 2}, np.array([object()]), lambda: 0),
                         ids=("object", "set", "array of objects", "function"))
def test_what_would_have_to_be_pickled_is_refused(value):
    with pytest.raises(UsageError, match="travel between ranks"):
        meeting.pack(value)


def test_bytes_that_say_pickle_are_not_executed():
    hostile = b"N" + b"\x93NUMPY\x01\x00v\x00" \
        + b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    with pytest.raises(ValueError, match="allow_pickle=False"):
        meeting.unpack(hostile + b"cos\nsystem\n(S'false'\ntR.")


def test_an_impossible_mode_or_deadline_is_refused():
    with pytest.raises(UsageError, match="mode must be sum, max or min, got 'median'"):
        meeting.mode_named("median")
    with settings.override(FLAGS_rpc_deadline=-1), pytest.raises(EnvironmentProblem, match="FLAGS_rpc_deadline=-1"):
        meeting.deadline_s()
