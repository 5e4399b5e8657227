"""Readers and what can be made of them.

A reader is a callable without arguments that returns an iterator of samples; a decorator takes
readers and returns a reader. Knows nothing of what a sample is.
"""

import itertools
import threading
from concurrent.futures import Future

from fleet_mpi.data.background import Ahead, Channel, start_thread
from fleet_mpi.data.seeding import random_of_pass
from fleet_mpi.errors import UsageError


class ComposeNotAligned(UsageError):
    """Composed readers that do not have the same number of samples."""


def batch(reader, batch_size, drop_last=False):
    """A reader of lists of ``batch_size`` samples; the last one may be shorter unless dropped."""
    _check_count("batch", "batch_size", batch_size)

    def read_batches():
        samples = iter(reader())
        while part := list(itertools.islice(samples, batch_size)):
            if len(part) == batch_size or not drop_last:
                yield part

    return read_batches


def shuffle(reader, buf_size):
    """Fill a buffer of ``buf_size`` samples, give them out in random order, and so on.

    See ``seeding``: repeatable with FLEET_MPI_SEED, else under ``random.seed``.
    """
    _check_count("shuffle", "buf_size", buf_size)
    passes = itertools.count()

    def read_shuffled():
        source = random_of_pass(next(passes))
        samples = iter(reader())
        while part := list(itertools.islice(samples, buf_size)):
            source.shuffle(part)
            yield from part

    return read_shuffled


def chain(*readers):
    """All samples of the first reader, then all of the second, and so on."""

    def read_chained():
        for reader in readers:
            yield from reader()

    return read_chained


def compose(*readers, check_alignment=True):
    """Samples side by side: (1, 2) of one reader and 3 of another become (1, 2, 3).

    Readers of different lengths raise ``ComposeNotAligned`` at the end of the shortest; with
    ``check_alignment=False`` the rest of the longer ones is dropped.
    """
    missing = object()

    def read_composed():
        for parts in itertools.zip_longest(*(reader() for reader in readers), fillvalue=missing):
            if any(part is missing for part in parts):
                if check_alignment:
                    raise ComposeNotAligned(
                        f"compose: {sum(part is missing for part in parts)} of {len(parts)} readers ended before "
                        "the others; give readers of one length, or check_alignment=False to drop the rest")
                return
            yield sum((part if isinstance(part, tuple) else (part,) for part in parts), ())

    return read_composed


def buffered(reader, size):
    """Read up to ``size`` samples ahead in a thread; its errors are raised to the consumer."""
    _check_count("buffered", "size", size)

    def read_buffered():
        ahead = Ahead(reader, size)
        try:
            yield from ahead
        finally:
            ahead.close()

    return read_buffered


def cache(reader):
    """Read the reader once, at the first pass, and serve all passes from memory."""
    lock = threading.Lock()
    kept = []

    def read_cached():
        with lock:
            if not kept:
                kept.append(tuple(reader()))
        return iter(kept[0])

    return read_cached


def firstn(reader, n):
    """The first ``n`` samples of every pass."""

    def read_first():
        return itertools.islice(reader(), n)

    return read_first


def map_readers(func, *readers):
    """``func`` over the samples of one or more readers taken side by side, as Python's ``map``."""

    def read_mapped():
        return map(func, *(reader() for reader in readers))

    return read_mapped


def xmap_readers(mapper, reader, process_num, buffer_size, order=False):
    """Apply ``mapper`` in ``process_num`` threads, up to ``buffer_size`` samples ahead.

    Samples come out in the reader's order whatever ``order`` says: with a buffer this costs
    nothing, and runs can be repeated. An error of the reader or the mapper is raised at its place.
    """
    _check_count("xmap_readers", "process_num", process_num)
    _check_count("xmap_readers", "buffer_size", buffer_size)

    def read_mapped():
        # Every sample gets a Future: its place in the order here, its work in todo.
        in_order, todo = Channel(buffer_size), Channel()
        start_thread(_hand_out, reader, in_order, todo)
        for _ in range(process_num):
            start_thread(_map_all, mapper, todo)
        try:
            for future in in_order:
                yield future.result()
        finally:
            in_order.close()
            todo.close()

    return read_mapped


def multiprocess_reader(readers, use_pipe=True, queue_size=1000):
    """Read several readers at once and merge their samples, one of each in turn.

    The original forks a process per reader; here each gets a thread, because a fork after MPI_Init
    is not safe and a fresh process could not be given a reader without pickling it. ``use_pipe`` is
    therefore without effect. The fixed turn makes the order the same in every run.
    """
    if not readers:
        raise UsageError("multiprocess_reader: expected a list of at least one reader, got none")
    _check_count("multiprocess_reader", "queue_size", queue_size)

    def read_merged():
        capacity = max(1, queue_size // len(readers))
        streams = [Ahead(reader, capacity) for reader in readers]
        try:
            yield from _in_turn(streams)
        finally:
            for stream in streams:
                stream.close()

    return read_merged


def _check_count(who, what, value):
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
        raise UsageError(f"{who}: {what} is a whole number of at least 1, got {value!r}")


def _hand_out(reader, in_order, todo):
    error = None
    try:
        for sample in reader():
            future = Future()
            if not in_order.put(future):
                break
            todo.put((future, sample))
    except BaseException as problem:  # the consumer must hear of everything, or it waits for ever
        error = problem
    todo.finish()
    in_order.finish(error)


def _map_all(mapper, todo):
    for future, sample in todo:
        try:
            future.set_result(mapper(sample))
        except BaseException as problem:  # raised again where the consumer asks for this sample
            future.set_exception(problem)


def _in_turn(streams):
    waiting = list(streams)
    while waiting:
        for stream in list(waiting):
            try:
                sample = next(stream)
            except StopIteration:
                waiting.remove(stream)
            else:
                yield sample
