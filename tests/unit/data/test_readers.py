"""Reader decorators: what comes out, in what order, and where errors surface."""

import random
import threading
import time

import pytest
from hypothesis import given, strategies as st

from fleet_mpi import settings
from fleet_mpi.data import readers
from fleet_mpi.errors import UsageError


def counting(count):
    return lambda: iter(range(count))


def failing_after(count):
    def read():
        yield from range(count)
        raise OSError("disk gone")

    return read


@given(st.integers(0, 50), st.integers(1, 12))
def test_batches_hold_all_samples_and_only_the_last_is_short(count, size):
    batches = list(readers.batch(counting(count), size)())
    assert [sample for part in batches for sample in part] == list(range(count))
    assert all(len(part) == size for part in batches[:-1])


def test_drop_last_drops_only_a_short_last_batch():
    assert list(readers.batch(counting(5), 2, drop_last=True)()) == [[0, 1], [2, 3]]
    assert list(readers.batch(counting(4), 2, drop_last=True)()) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("size", [0, -2, 1.5, None, True])
def test_a_batch_size_that_means_nothing_is_refused(size):
    with pytest.raises(UsageError, match="batch_size"):
        readers.batch(counting(3), size)


def test_shuffle_loses_no_sample_and_stays_within_its_buffer():
    shuffled = list(readers.shuffle(counting(30), 10)())
    assert sorted(shuffled) == list(range(30))
    assert sorted(shuffled[:10]) == list(range(10))


def test_shuffle_follows_random_seed_when_no_seed_is_set():
    with settings.override(FLEET_MPI_SEED=0):
        runs = []
        for _ in range(2):
            random.seed(3)
            runs.append(list(readers.shuffle(counting(100), 100)()))
    assert runs[0] == runs[1] != list(range(100))


def test_a_set_seed_repeats_runs_but_not_passes():
    with settings.override(FLEET_MPI_SEED=7):
        first, second = readers.shuffle(counting(100), 100), readers.shuffle(counting(100), 100)
        random.seed(1)
        passes = [list(first()), list(first())]
        random.seed(2)
        assert [list(second()), list(second())] == passes
    assert passes[0] != passes[1]


def test_chain_is_one_after_the_other():
    assert list(readers.chain(counting(2), counting(3))()) == [0, 1, 0, 1, 2]


def test_compose_flattens_tuples_side_by_side():
    pairs = lambda: iter([(1, 2), (3, 4)])
    assert list(readers.compose(counting(2), pairs)()) == [(0, 1, 2), (1, 3, 4)]


def test_compose_of_different_lengths_is_an_error_unless_allowed():
    uneven = readers.compose(counting(2), counting(3))
    with pytest.raises(readers.ComposeNotAligned):
        list(uneven())
    assert list(readers.compose(counting(2), counting(3), check_alignment=False)()) == [(0, 0), (1, 1)]


def test_cache_reads_its_source_once():
    calls = []

    def source():
        calls.append(1)
        return iter(range(4))

    cached = readers.cache(source)
    assert list(cached()) == list(cached()) == [0, 1, 2, 3]
    assert len(calls) == 1


def test_firstn_ends_early_every_pass():
    first = readers.firstn(counting(10), 3)
    assert list(first()) == list(first()) == [0, 1, 2]


def test_map_readers_takes_one_sample_of_each():
    assert list(readers.map_readers(lambda a, b: a * b, counting(4), counting(4))()) == [0, 1, 4, 9]


def test_buffered_keeps_the_order_and_repeats_passes():
    buffered = readers.buffered(counting(50), 4)
    assert list(buffered()) == list(buffered()) == list(range(50))


@pytest.mark.parametrize("order", [True, False])
def test_xmap_keeps_the_order_even_when_early_samples_are_slow(order):
    def mapper(number):
        time.sleep(0.02 if number == 0 else 0)
        return number * 2

    mapped = readers.xmap_readers(mapper, counting(40), 4, 8, order)
    assert list(mapped()) == list(range(0, 80, 2))


def test_xmap_works_in_several_threads_at_once():
    together = threading.Barrier(3, timeout=10)
    mapped = readers.xmap_readers(lambda _: together.wait(), counting(3), 3, 3)
    assert sorted(mapped()) == [0, 1, 2]


def test_multiprocess_reader_takes_turns_and_finishes_the_longer_reader():
    merged = readers.multiprocess_reader([lambda: iter("abcd"), lambda: iter("xy")])
    assert "".join(merged()) == "axbycd"


@pytest.mark.parametrize("decorate", [
    lambda reader: readers.buffered(reader, 2),
    lambda reader: readers.xmap_readers(lambda sample: sample, reader, 2, 2),
    lambda reader: readers.multiprocess_reader([reader]),
])
def test_an_error_in_a_background_reader_reaches_the_consumer_at_its_place(decorate):
    seen = []
    with pytest.raises(OSError, match="disk gone"):
        for sample in decorate(failing_after(5))():
            seen.append(sample)
    assert seen == [0, 1, 2, 3, 4]


def test_an_error_in_the_mapper_reaches_the_consumer_at_its_place():
    seen = []
    with pytest.raises(ZeroDivisionError):
        for sample in readers.xmap_readers(lambda number: 6 // (3 - number), counting(10), 3, 4)():
            seen.append(sample)
    assert seen == [2, 3, 6]


def test_leaving_xmap_early_stops_an_endless_source(endless):
    samples = readers.xmap_readers(lambda sample: sample, endless, 2, 4)()
    next(samples)
    samples.close()
    assert endless.closed.wait(10)
