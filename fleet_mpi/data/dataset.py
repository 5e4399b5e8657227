"""Files read through a pipe command into feeds: the 1.x datasets.

``QueueDataset`` streams, ``InMemoryDataset`` loads and can shuffle. Both give their samples in the order
of the file list and of the lines, whatever the number of threads. Knows no Program and no executor:
``batches()`` yields feed dictionaries.
"""

import functools
import itertools
from collections import deque
from concurrent.futures import Future

import numpy as np

from fleet_mpi.data.background import Ahead, start_thread
from fleet_mpi.data.exchanging import exchanged
from fleet_mpi.data.pipes import PipeCommand
from fleet_mpi.data.seeding import random_of_pass
from fleet_mpi.data.slots import Records, batches_of, parse, slots_of
from fleet_mpi.errors import NotBuilt, UsageError, nearest

# Enough lines for the quick way of parsing to pay, few enough to start training soon.
_LINES_AT_ONCE = 512
_BLOCKS_AHEAD = 4


class DatasetBase:
    """What both kinds share: settings, and reading the files."""

    def __init__(self):
        self.batch_size = 1
        self.thread_num = 1
        self.use_var = []
        self.filelist = []
        self.pipe_command = "cat"
        self.input_type = 0
        self.hdfs_config = ("", "")
        self.download_cmd = "cat"

    def set_batch_size(self, batch_size):
        """Samples per batch."""
        self.batch_size = _positive("set_batch_size", batch_size)

    def set_thread(self, thread_num):
        """Files read at the same time; the order of samples does not depend on it."""
        self.thread_num = _positive("set_thread", thread_num)

    def set_use_var(self, var_list):
        """The variables that a line fills, in its order."""
        self.use_var = list(var_list)

    def set_pipe_command(self, pipe_command):
        """The command each file is sent through; its output is in the multislot format."""
        PipeCommand(pipe_command)  # a command that cannot be understood is refused here, not in the middle of training
        self.pipe_command = pipe_command

    def set_filelist(self, filelist):
        """The files of this worker."""
        if isinstance(filelist, str):
            raise UsageError(f"set_filelist: expected a list of paths, got the text {filelist!r}")
        self.filelist = [str(path) for path in filelist]

    def set_hdfs_config(self, fs_name, fs_ugi):
        """Kept only: remote files are read by ``download_cmd``."""
        self.hdfs_config = (fs_name, fs_ugi)

    def set_download_cmd(self, download_cmd):
        """The command that writes a remote file (``hdfs:``, ``afs:``) to stdout; it gets the path as last word."""
        self.download_cmd = download_cmd

    def desc(self):
        """The settings as text, for people."""
        names = ", ".join(getattr(variable, "name", str(variable)) for variable in self.use_var)
        return (f"{type(self).__name__}: pipe_command {self.pipe_command!r}, batch_size {self.batch_size}, "
                f"thread_num {self.thread_num}, {len(self.filelist)} files, slots: {names}")

    def batches(self):
        """Yield one feed dictionary per batch; the last batch may be shorter.

        A variable with lod_level 0 gets an array [batch, ...], one with lod_level 1 a pair (array
        [rows, ...] of all samples one after the other, list of each sample's rows).
        """
        raise NotImplementedError

    def _records(self, slots, blocks_ahead):
        """All records in file order, ``thread_num`` files being read at once."""
        if not self.filelist:
            raise UsageError(f"{type(self).__name__}: no files; call set_filelist([...]) first")
        command, files, open_files = PipeCommand(self.pipe_command), iter(self.filelist), deque()

        def open_more(count):
            for path in itertools.islice(files, count):
                source = functools.partial(self._read_file, path, command, slots)
                open_files.append(Ahead(source, blocks_ahead))

        try:
            open_more(self.thread_num)
            while open_files:
                yield from open_files[0]
                open_files.popleft()
                open_more(1)
        finally:
            for stream in open_files:
                stream.close()

    def _read_file(self, path, command, slots):
        lines = command.lines(path, self.download_cmd)
        size = max(_LINES_AT_ONCE, self.batch_size)
        number = 1
        try:
            while block := list(itertools.islice(lines, size)):
                yield parse(block, slots, path, number, self._leading_groups())
                number += len(block)
        finally:
            lines.close()

    def _leading_groups(self):
        return 0


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
        """Collective: shuffle over all workers of a fleet; with one worker the same as ``local_shuffle``."""
        if fleet is not None and fleet.worker_num() > 1:
            records = self._in_memory("global_shuffle")
            seed = random_of_pass(next(self._shuffles)).getrandbits(128)
            whose = np.random.default_rng(seed).integers(0, fleet.worker_num(), len(records))
            self._loaded = exchanged(records, whose, fleet.worker_index(), fleet.worker_num(),
                                     lambda value: fleet._role_maker._all_gather(value, "worker"))
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
        self._loaded = None

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
        for start in range(0, len(records), self.batch_size):
            yield records.part(start, start + self.batch_size).feed()

    def set_fea_eval(self, record_candidate_size, fea_eval=True):
        """Allow ``slots_shuffle``; it draws from all samples, so the candidate size is without effect."""
        self.feature_evaluation = bool(fea_eval)

    def set_parse_ins_id(self, parse_ins_id):
        """Lines begin with ``1 <ins_id>``, which is dropped."""
        self.parse_ins_id = bool(parse_ins_id)

    def set_parse_content(self, parse_content):
        """Lines have ``1 <content>`` in front of the slots, which is dropped."""
        self.parse_content = bool(parse_content)

    def set_parse_logkey(self, parse_logkey):
        """Lines have ``1 <logkey>`` in front of the slots, which is dropped."""
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
        """Refused: samples of one line id are not merged here."""
        raise NotBuilt("set_merge_by_lineid: samples are not merged by line id here; merge them in the data generator")

    def set_enable_pv_merge(self, enable_pv_merge):
        """Refused when asked for: page views are not merged here."""
        if enable_pv_merge:
            raise NotBuilt("set_enable_pv_merge: samples are not merged by page view here; "
                           "merge them in the data generator")

    def _load(self):
        slots = slots_of(self.use_var)
        return Records.joined(slots, list(self._records(slots, None)))

    def _in_memory(self, who):
        if self._loaded is None:
            raise UsageError(f"InMemoryDataset.{who}: nothing is in memory; call load_into_memory() first")
        return self._loaded

    def _random_order(self, count):
        seed = random_of_pass(next(self._shuffles)).getrandbits(128)
        return np.random.default_rng(seed).permutation(count)

    def _leading_groups(self):
        return self.parse_ins_id + self.parse_content + self.parse_logkey


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


def _positive(who, value):
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
        raise UsageError(f"{who}: expected a whole number of at least 1, got {value!r}")
    return int(value)


def _fulfil(future, work):
    try:
        future.set_result(work())
    except BaseException as problem:  # raised again where the result is asked for
        future.set_exception(problem)
