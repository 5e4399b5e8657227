"""``DataLoader`` of 2.x: batches of a map-style or iterable dataset, loaded in this process or by worker processes."""

import itertools
import weakref

from fleet_mpi import notices
from fleet_mpi.data.background import Ahead
from fleet_mpi.data.collating import default_collate_fn, default_convert_fn, flat_fields
from fleet_mpi.data.fetching import Work, fetcher
from fleet_mpi.data.io_datasets import IterableDataset
from fleet_mpi.data.loader import GeneratorLoader, as_tensor, dataset_loader, named
from fleet_mpi.data.samplers import BatchSampler, SequenceSampler, whole_number
from fleet_mpi.data.seeding import generator_of_pass
from fleet_mpi.errors import UsageError


class DataLoader:
    """Gives the batches of a dataset, pass after pass.

    The batches and their order are the same for any ``num_workers``. With workers, samples are loaded by processes
    that are started as programs of their own: the dataset goes to them by pickle, classes of the script included.
    Where it cannot, this process loads by itself and says so.

    Args:
        feed_list: the data variables; with ``return_list=False`` a batch is a feed for them, ``[{name: LoDTensor}]``.
        return_list: give a list of arrays instead.
        batch_size: None: single samples.
        timeout: seconds to wait for a batch of a worker; 0: any time.
        worker_init_fn: called with a worker's number when it begins a pass.
        places, use_buffer_reader, use_shared_memory, persistent_workers: without effect; workers stay while the
            loader does, and get the dataset anew for every pass.
    """

    def __init__(self, dataset, feed_list=None, places=None, return_list=True, batch_sampler=None, batch_size=1,
                 shuffle=False, drop_last=False, collate_fn=None, num_workers=0, use_buffer_reader=True,
                 prefetch_factor=2, use_shared_memory=True, timeout=0, worker_init_fn=None, persistent_workers=False):
        self.dataset, self.feed_list, self.places, self.return_list = dataset, feed_list, places, return_list
        self.num_workers = whole_number("DataLoader", "num_workers", num_workers, 0)
        self.prefetch_factor = whole_number("DataLoader", "prefetch_factor", prefetch_factor)
        self.timeout, self.worker_init_fn, self.drop_last = timeout, worker_init_fn, drop_last
        self.batch_sampler = _batches_of(dataset, batch_sampler, batch_size, shuffle, drop_last)
        self.batch_size = getattr(self.batch_sampler, "batch_size", batch_size)
        self.collate_fn = collate_fn or (default_convert_fn if self._gives_samples else default_collate_fn)
        if not return_list and not feed_list:
            raise UsageError("DataLoader: with return_list=False it gives feeds: expected feed_list, the data "
                             "variables")
        self._pools, self._passes = [], itertools.count()
        weakref.finalize(self, _close_all, self._pools)

    def __len__(self):
        if self._is_stream:
            raise TypeError("DataLoader: an IterableDataset has no length")
        return len(self.dataset) if self._gives_samples else len(self.batch_sampler)

    def __call__(self):
        return iter(self)

    def __iter__(self):
        # Drawn here, in the script's thread: its random numbers must not depend on when a thread runs.
        orders = self._orders()
        seed = generator_of_pass(next(self._passes)).randint(2 ** 31) if self.num_workers else 0
        return map(self._given,
                   self._loaded_by_workers(orders, seed) if self.num_workers else self._loaded_here(orders))

    @staticmethod
    def from_generator(feed_list=None, capacity=None, use_double_buffer=True, iterable=True,
                       return_list=False, use_multiprocess=False, drop_last=True):
        """A loader over a Python generator; batches are prepared in a thread whatever the options say."""
        return GeneratorLoader(feed_list, capacity, use_double_buffer, iterable, return_list, drop_last)

    @staticmethod
    def from_dataset(dataset, places=None, drop_last=True):
        """A loader over the batches of a Queue or InMemory dataset; ``drop_last``: without a last one that is
        shorter."""
        return dataset_loader(dataset, drop_last)

    @property
    def _is_stream(self):
        return isinstance(self.dataset, IterableDataset)

    @property
    def _gives_samples(self):
        return self.batch_size is None

    def _orders(self):
        return itertools.repeat(None) if self._is_stream else iter(self.batch_sampler)

    def _work(self):
        return Work(self.dataset, self.collate_fn, self.batch_size, self.drop_last)

    def _loaded_here(self, orders):
        fetch = fetcher(self._work())
        ahead = Ahead(lambda: _fetched(fetch, orders), self.prefetch_factor)
        try:
            yield from ahead
        finally:
            ahead.close()

    def _loaded_by_workers(self, orders, seed):
        # Imported here, since few scripts need it.
        from fleet_mpi.data import by_value, worker_pool
        try:
            work, prepare = by_value.dumps(self._work()), by_value.dumps(self.worker_init_fn)
        except Exception as problem:  # pickle has no kind of its own for what it refuses
            notices.once(("DataLoader", id(self)),
                         f"DataLoader: {type(self.dataset).__name__} cannot be handed to worker "
                         f"processes ({problem}); this process loads by itself, as with num_workers=0")
            yield from self._loaded_here(orders)
            return
        pool = self._pools.pop() if self._pools else worker_pool.WorkerPool(self.num_workers, self.prefetch_factor,
                                                                            self.timeout)
        try:
            yield from pool.batches(orders, work, prepare, seed)
        except GeneratorExit:  # left early: the workers pass over what they were still asked for
            self._pools.append(pool)
            raise
        except BaseException:
            pool.close()
            raise
        self._pools.append(pool)

    def _given(self, batch):
        """A batch as the script is to see it."""
        if not self.return_list:
            feed = named(flat_fields(batch), [var.name for var in self.feed_list])
            return [{name: as_tensor(value) for name, value in feed.items()}]
        return list(batch) if isinstance(batch, tuple) else batch if isinstance(batch, (list, dict)) else [batch]


class FluidDataLoader(DataLoader):
    """The 1.x ``DataLoader``, which gives feeds unless asked for lists."""

    def __init__(self, dataset, feed_list=None, places=None, return_list=False, batch_sampler=None, batch_size=1,
                 shuffle=False, drop_last=False, collate_fn=None, num_workers=0, use_buffer_reader=True,
                 use_shared_memory=True, timeout=0, worker_init_fn=None):
        super().__init__(dataset, feed_list, places, return_list, batch_sampler, batch_size, shuffle, drop_last,
                         collate_fn,
                         num_workers, timeout=timeout, worker_init_fn=worker_init_fn)


def _batches_of(dataset, batch_sampler, batch_size, shuffle, drop_last):
    """What gives the orders: a sampler of batches, of single samples (no batch size), or None for a stream."""
    if isinstance(dataset, IterableDataset):
        if shuffle or batch_sampler is not None:
            raise UsageError("DataLoader: an IterableDataset is read in its own order; leave shuffle and batch_sampler "
                             "out")
        return None
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or drop_last:
            raise UsageError("DataLoader: batch_sampler says how batches are made; leave batch_size, shuffle and "
                             "drop_last out")
        return batch_sampler
    if batch_size is None:
        if shuffle or drop_last:
            raise UsageError("DataLoader: without batch_size there are no batches; leave shuffle and drop_last out")
        return SequenceSampler(dataset)
    return BatchSampler(dataset, shuffle=shuffle, batch_size=batch_size, drop_last=drop_last)


def _fetched(fetch, orders):
    for order in orders:
        try:
            batch = fetch(order)
        except StopIteration:
            return
        yield batch


def _close_all(pools):
    for pool in pools:
        pool.close()
