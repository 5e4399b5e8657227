"""Files read through a pipe command into feeds: the 1.x datasets.

``QueueDataset`` streams, ``InMemoryDataset`` loads and can shuffle. Both give their samples in the order
of the file list and of the lines, whatever the number of threads. Knows no Program and no executor:
``batches()`` yields feed dictionaries.
"""

import itertools
from concurrent.futures import Future

import numpy as np

from fleet_mpi.data import page_views
from fleet_mpi.data.background import start_thread
from fleet_mpi.data.dataset_base import DatasetBase
from fleet_mpi.data.exchanging import exchanged
from fleet_mpi.data.line_keys import KEY_SLOTS, LINE_ID, column_of
from fleet_mpi.data.merging import merged_by_line
from fleet_mpi.data.seeding import random_of_pass
from fleet_mpi.data.slots import Records, batches_of, slots_of
from fleet_mpi.errors import NotBuilt, UsageError, nearest

_BLOCKS_AHEAD = 4


class QueueDataset(DatasetBase):
    """Streams its files: memory stays small, every pass runs the pipe command again."""

    def batches(self):
        """Yield one feed dictionary per batch, read ahead by a few blocks of lines; see the base class."""
        slots = slots_of(self.use_var)
        for records in batches_of(self._records(slots, _BLOCKS_AHEAD), slots, self.batch_size):
            yield records.feed()

    def local_shuffle(self):
        """Refused: a stream cannot be shuffled."""
        raise NotBuilt("QueueDataset streams its files and cannot shuffle; use InMemoryDataset for local_shuffle")

    def global_shuffle(self, fleet=None, thread_num=12):
        """Refused: a stream cannot be shuffled."""
        raise NotBuilt("QueueDataset streams its files and cannot shuffle; use InMemoryDataset for global_shuffle")


class InMemoryDataset(DatasetBase):
    """Loads its files once; passes, shuffles and sizes then need no file."""

    def __init__(self):
        super().__init__()
        self.parse_ins_id = self.parse_content = self.parse_logkey = False
        self.queue_num = None
        self.fleet_send_batch_size, self.fleet_send_sleep_seconds = 1024, 0
        self.feature_evaluation = False
        self.merge_by_lineid, self.merge_size = False, 2
        self.enable_pv_merge, self.merge_by_sid, self.current_phase = False, True, page_views.JOIN
        self._views = None
        self._loaded = None
        self._loading = None
        self._shuffles = itertools.count()

    def load_into_memory(self, is_shuffle=False):
        """Read all files now; with ``is_shuffle`` also shuffle."""
        self._loaded = self._load()
        if is_shuffle:
            self.local_shuffle()

    def preload_into_memory(self, thread_num=None):
        """Begin to read all files in the background; ``wait_preload_done`` ends it."""
        if thread_num is not None:
            self.set_thread(thread_num)
        self._loading = Future()
        start_thread(_fulfil, self._loading, self._load)

    def wait_preload_done(self):
        """Wait for ``preload_into_memory``; an error of the reading is raised here."""
        if self._loading is None:
            raise UsageError("wait_preload_done: nothing is being loaded; call preload_into_memory() first")
        loading, self._loading = self._loading, None
        self._loaded = loading.result()

    def local_shuffle(self):
        """Bring the samples in memory into random order; see ``seeding`` for where that comes from."""
        records = self._in_memory("local_shuffle")
        self._loaded = records.take(self._random_order(len(records)))

    def global_shuffle(self, fleet=None, thread_num=12):
        """Collective: shuffle over all workers of a fleet; with one worker the same as ``local_shuffle``.

        Where samples are to be merged by line id, those of one id come together here and are.
        """
        records = self._in_memory("global_shuffle")
        if fleet is not None and fleet.worker_num() > 1:
            records = exchanged(records, self._new_owners(records, fleet.worker_num()), fleet.worker_index(),
                                fleet.worker_num(), lambda value: fleet._role_maker._all_gather(value, "worker"))
        self._loaded = merged_by_line(records, self.merge_size) if self.merge_by_lineid else records
        self.local_shuffle()

    def slots_shuffle(self, slots):
        """Give the samples each other's values in these slots, to see how much a feature matters."""
        if not self.feature_evaluation:
            raise UsageError("slots_shuffle: call set_fea_eval(record_candidate_size, True) first")
        records = self._in_memory("slots_shuffle")
        for name in slots:
            records = records.with_slot_taken(name, self._random_order(len(records)))
        self._loaded = records

    def release_memory(self):
        """Forget the samples."""
        self._loaded = self._views = None

    def get_memory_data_size(self, fleet=None):
        """The number of samples in memory; with ``fleet`` the sum over all workers."""
        count = 0 if self._loaded is None else len(self._loaded)
        if fleet is None or fleet.worker_num() <= 1:
            return count
        return int(fleet._role_maker._all_reduce(np.array([count], np.int64), "sum", "worker")[0])

    def get_shuffle_data_size(self, fleet=None):
        """The number of samples after shuffling, which loses none."""
        return self.get_memory_data_size(fleet)

    def batches(self):
        """Yield one feed dictionary per batch of the samples in memory; see the base class."""
        records = self._in_memory("batches")
        if self.enable_pv_merge and self.current_phase in page_views.BY_VIEW:
            yield from self._batches_of_views()
            return
        for start in range(0, len(records), self.batch_size):
            yield records.part(start, start + self.batch_size).feed()

    def set_fea_eval(self, record_candidate_size, fea_eval=True):
        """Allow ``slots_shuffle``; it draws from all samples, so the candidate size is without effect."""
        self.feature_evaluation = bool(fea_eval)

    def set_parse_ins_id(self, parse_ins_id):
        """Lines begin with ``1 <ins_id>``, by which samples can be merged."""
        self.parse_ins_id = bool(parse_ins_id)

    def set_parse_content(self, parse_content):
        """Lines have ``1 <content>`` in front of the slots, which is dropped."""
        self.parse_content = bool(parse_content)

    def set_parse_logkey(self, parse_logkey):
        """Lines have ``1 <logkey>`` in front of the slots: search id, place and kind of a shown item; see
        ``line_keys``."""
        self.parse_logkey = bool(parse_logkey)

    def set_queue_num(self, queue_num):
        """Kept only: the executor takes its batches from one place."""
        self.queue_num = queue_num

    def set_fleet_send_batch_size(self, fleet_send_batch_size=1024):
        """Kept only: for exchanging samples between workers."""
        self.fleet_send_batch_size = fleet_send_batch_size

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds=0):
        """Kept only: for exchanging samples between workers."""
        self.fleet_send_sleep_seconds = fleet_send_sleep_seconds

    def set_merge_by_lineid(self, merge_size=2):
        """Lines begin with ``1 <ins_id>``; ``global_shuffle`` merges the ``merge_size`` samples of each id (0: all)."""
        self.merge_by_lineid, self.merge_size, self.parse_ins_id = True, merge_size, True

    def set_enable_pv_merge(self, enable_pv_merge):
        """Batches of whole page views, between ``preprocess_instance`` and ``postprocess_instance``; see
        ``page_views``."""
        self.enable_pv_merge = bool(enable_pv_merge)

    def set_merge_by_sid(self, merge_by_sid):
        """Whether samples of one search id are one page view; else each is one of its own."""
        self.merge_by_sid = bool(merge_by_sid)

    def set_current_phase(self, current_phase):
        """1 (join) and 3 (its test): batches of page views; 0 (update) and 2: of samples."""
        self.current_phase = current_phase

    def preprocess_instance(self):
        """Bring the samples together by page view, and those into random order; without page views shuffle them."""
        if not self.enable_pv_merge:
            self.local_shuffle()
            return
        records = self._in_memory("preprocess_instance")
        self._views = page_views.of(records, self.merge_by_sid, self._random_order)

    def postprocess_instance(self):
        """Forget the page views and shuffle the samples."""
        self._views = None
        self.local_shuffle()

    def get_pv_data_size(self):
        """The number of page views that ``preprocess_instance`` found."""
        return 0 if self._views is None else len(self._views.lengths)

    def set_feed_type(self, data_feed_type):
        """Kept only: what is read follows from the variables."""
        self.data_feed_type = data_feed_type

    def set_date(self, date):
        """Kept only: for caches of the original."""
        self.date = date

    def set_generate_unique_feasigns(self, generate_uni_feasigns, shard_num):
        """Kept only: for ``generate_local_tables_unlock``."""
        self.generate_unique_feasigns = generate_uni_feasigns

    def generate_local_tables_unlock(self, table_id, fea_dim, read_thread_num, consume_thread_num, shard_num):
        """Refused: workers keep no copies of a server's tables."""
        raise NotBuilt("generate_local_tables_unlock: workers keep no copies of tables; rows are asked for batch by "
                       "batch")

    def _load(self):
        slots = slots_of(self.use_var)
        keys = [slot for group in self._leading_groups() for slot in KEY_SLOTS[group]]
        return Records.joined([*slots, *keys], list(self._records(slots, None)))

    def _batches_of_views(self):
        if self._views is None:
            raise UsageError("InMemoryDataset.batches: page views are merged, but there are none; call "
                             "preprocess_instance() first")
        yield from self._views.batches(self.pv_batch_size, self.rank_offset)

    def _new_owners(self, records, workers):
        """The worker that each sample goes to; those that are to be merged go to one."""
        if self.merge_by_lineid:
            return column_of(records, LINE_ID) % workers
        seed = random_of_pass(next(self._shuffles)).getrandbits(128)
        return np.random.default_rng(seed).integers(0, workers, len(records))

    def _in_memory(self, who):
        if self._loaded is None:
            raise UsageError(f"InMemoryDataset.{who}: nothing is in memory; call load_into_memory() first")
        return self._loaded

    def _random_order(self, count):
        seed = random_of_pass(next(self._shuffles)).getrandbits(128)
        return np.random.default_rng(seed).permutation(count)

    def _leading_groups(self):
        asked = {"ins_id": self.parse_ins_id, "content": self.parse_content, "logkey": self.parse_logkey}
        return [name for name, is_there in asked.items() if is_there]


class DatasetFactory:
    """Makes datasets by name, as 1.x scripts do."""

    kinds = {"QueueDataset": QueueDataset, "InMemoryDataset": InMemoryDataset}

    def create_dataset(self, datafeed_class="QueueDataset"):
        """A new dataset: "QueueDataset" or "InMemoryDataset"."""
        if datafeed_class in ("BoxPSDataset", "FileInstantDataset"):
            raise NotBuilt(f"create_dataset: there is no {datafeed_class} here; use InMemoryDataset or QueueDataset")
        if datafeed_class not in self.kinds:
            raise UsageError(f"create_dataset: no dataset is called {datafeed_class!r}; "
                             f"{nearest(datafeed_class, self.kinds)}")
        return self.kinds[datafeed_class]()


def _fulfil(future, work):
    try:
        future.set_result(work())
    except BaseException as problem:  # raised again where the result is asked for
        future.set_exception(problem)
