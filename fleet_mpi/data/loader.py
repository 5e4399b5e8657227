"""Loaders over a script's generator: batches prepared ahead in a thread, pulled by a loop (iterable) or by the
executor.

An error in the generator is raised where its batch would have come.
"""

import numpy as np

from fleet_mpi.data.batch_queue import BatchQueue
from fleet_mpi.data.feeder import DataFeeder
from fleet_mpi.data.readers import batch
from fleet_mpi.errors import EndOfData, UsageError
from fleet_mpi.program.engine.scope import Tensor
from fleet_mpi.program.graph import lod as lods, unique_name
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.types import VarType


class GeneratorLoader:
    """What ``DataLoader.from_generator`` and ``PyReader`` return.

    Iterable: ``for feed in loader(): exe.run(feed=feed, ...)``. Not iterable: ``start()``, run without a
    feed until ``EndOfData`` (``fluid.core.EOFException``), then ``reset()``. ``queue`` holds what waits.
    """

    def __init__(self, feed_list=None, capacity=None, use_double_buffer=True, iterable=True,
                 return_list=False, drop_last=True):
        if capacity is None or capacity < 1:
            raise UsageError(f"loader: capacity must be a whole number of at least 1, got {capacity!r}")
        self._variables = list(feed_list or ())
        self._capacity, self._return_list, self._drop_last = capacity, return_list, drop_last
        self.iterable = iterable
        self.queue = BatchQueue(capacity, self._as_feed)
        self._feeds = None
        if not iterable:
            default_main_program()._loaders.append(self)

    def variables(self):
        """The data variables this loader fills."""
        return self._variables

    def set_sample_generator(self, reader, batch_size, drop_last=True, places=None):
        """Take single samples, ``batch_size`` of them a batch."""
        return self.set_sample_list_generator(batch(reader, batch_size, drop_last), places)

    def set_sample_list_generator(self, reader, places=None):
        """Take lists of samples, as ``paddle.batch`` gives them."""
        feeder = DataFeeder(self._variables)
        self._feeds = lambda: (feeder.feed(samples) for samples in reader())
        return self

    def set_batch_generator(self, reader, places=None):
        """Take whole batches: a list of arrays or tensors, or a dictionary by name."""
        self._feeds = lambda: map(self._as_feed, reader())
        return self

    decorate_sample_generator = set_sample_generator
    decorate_sample_list_generator = set_sample_list_generator
    decorate_batch_generator = set_batch_generator
    decorate_paddle_reader = set_sample_list_generator
    decorate_tensor_provider = set_batch_generator

    def __call__(self):
        return iter(self)

    def __iter__(self):
        if not self.iterable:
            raise UsageError("this loader was made with iterable=False: call start() and run the program "
                             "without a feed instead of looping over it")
        mine = self.queue = BatchQueue(self._capacity, self._as_feed)  # loops over one loader may be nested
        mine.fill(self._source())
        return _passing(mine, self._return_list)

    def start(self):
        """Begin a pass, whatever became of the last one; the executor then takes a batch at every run."""
        if self.iterable:
            raise UsageError("start() is for loaders made with iterable=False; loop over this one")
        self.queue.fill(self._source())

    def reset(self):
        """End a pass, whether all its batches were read or not, or it was begun at all."""
        self.queue.reset()

    def is_started(self):
        """Whether ``start()`` was called, or a batch pushed into the queue, and ``reset()`` was not."""
        return self.queue.is_open

    def next_feed(self):
        """The next batch as a feed; EndOfData after the last one."""
        try:
            return self.queue.pop()
        except StopIteration:
            raise EndOfData("the loader has no more batches: call reset(), then start() for another pass") from None

    def _as_feed(self, given):
        return named(given, [var.name for var in self._variables])

    def _source(self):
        if self._feeds is None:
            raise UsageError("this loader has no generator: call set_sample_generator, "
                             "set_sample_list_generator or set_batch_generator first")
        return self._feeds


def _passing(queue, as_list):
    """What a loop over a loader sees: lists of arrays, or a list with one dictionary of tensors, as for one place."""
    try:
        while True:
            try:
                feed = queue.pop()
            except StopIteration:
                return
            yield list(feed.values()) if as_list else [{name: as_tensor(value) for name, value in feed.items()}]
    finally:
        queue.kill()


def as_tensor(value):
    """A fed value as scripts see it in a loader's dictionary: a LoDTensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], np.ndarray):
        return Tensor(value[0], lods.from_lengths([value[1]]))
    return Tensor(np.asarray(value))


class PyReader(GeneratorLoader):
    """The 1.x name of a generator loader."""

    def __init__(self, feed_list=None, capacity=None, use_double_buffer=True, iterable=True, return_list=False):
        super().__init__(feed_list, capacity, use_double_buffer, iterable, return_list)


def dataset_loader(dataset, drop_last=True):
    """A loader over the batches of a Queue or InMemory dataset."""
    loader = GeneratorLoader(dataset.use_var, capacity=4)
    loader._feeds = lambda: (feed for feed in dataset.batches()
                             if not drop_last or _samples_of(feed) == dataset.batch_size)
    return loader


def py_reader(capacity, shapes, dtypes, lod_levels=None, name=None, use_double_buffer=True):
    """A non-iterable loader that makes its own variables; ``read_file`` returns them."""
    block = default_main_program().global_block()
    prefix = name or unique_name.generate("py_reader")
    levels = lod_levels or [0] * len(shapes)
    variables = [block.create_var(name=f"{prefix}.data_{i}", shape=shape, dtype=dtype, lod_level=level,
                                  is_data=True, stop_gradient=True, type=VarType.LOD_TENSOR)
                 for i, (shape, dtype, level) in enumerate(zip(shapes, dtypes, levels))]
    return GeneratorLoader(variables, capacity, use_double_buffer, iterable=False)


def create_py_reader_by_data(capacity, feed_list, name=None, use_double_buffer=True):
    """A non-iterable loader over existing data variables."""
    return GeneratorLoader(feed_list, capacity, use_double_buffer, iterable=False)


def read_file(reader):
    """The variables that a ``py_reader`` fills: one, or a list."""
    found = reader.variables()
    return found[0] if len(found) == 1 else list(found)


def double_buffer(reader, place=None, name=None):
    """The reader itself: batches are always prepared ahead."""
    return reader


def _samples_of(feed):
    """How many samples a dataset's feed has: rows of an array, or the number of sequences."""
    value = next(iter(feed.values()))
    return len(value[1]) if isinstance(value, tuple) else len(value)


def named(given, names):
    """A batch as a feed: a dictionary by name; one that is a dictionary already, as it is."""
    if isinstance(given, dict):
        return given
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(given) != len(names):
        raise UsageError(f"loader: a batch of {len(given)} arrays for {len(names)} variables ({', '.join(names)})")
    return dict(zip(names, given))
