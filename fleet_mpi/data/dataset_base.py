"""What all datasets of 1.x share: their settings, and reading files through a pipe command.

Knows no Program and no executor.
"""

import functools
import itertools
from collections import deque

from fleet_mpi.data.background import Ahead
from fleet_mpi.data.line_keys import keyed
from fleet_mpi.data.pipes import PipeCommand
from fleet_mpi.data.slots import parse
from fleet_mpi.errors import UsageError

# Enough lines for the quick way of parsing to pay, few enough to start training soon.
_LINES_AT_ONCE = 512


class DatasetBase:
    """What both kinds share: settings, and reading the files."""

    def __init__(self):
        self.batch_size = 1
        self.thread_num = 1
        self.use_var = []
        self.filelist = []
        self.pipe_command = "cat"
        self.input_type = 0
        self.rank_offset, self.pv_batch_size = "", 32
        self.hdfs_config = ("", "")
        self.download_cmd = "cat"

    def set_batch_size(self, batch_size):
        """Samples per batch."""
        self.batch_size = positive("set_batch_size", batch_size)

    def set_thread(self, thread_num):
        """Files read at the same time; the order of samples does not depend on it."""
        self.thread_num = positive("set_thread", thread_num)

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

    def set_input_type(self, input_type):
        """Kept only: 0 says that a line is a sample, 1 that the generator works by batches; the lines are the same."""
        self.input_type = input_type

    def set_rank_offset(self, rank_offset):
        """The name of the variable that gets, for batches of page views, who stands where; see ``page_views``."""
        self.rank_offset = rank_offset

    def set_pv_batch_size(self, pv_batch_size):
        """Page views per batch, where samples are merged by page view."""
        self.pv_batch_size = positive("set_pv_batch_size", pv_batch_size)

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
                yield keyed(parse(block, slots, path, number, len(self._leading_groups())), block,
                            self._leading_groups(),
                            path, number)
                number += len(block)
        finally:
            lines.close()

    def _leading_groups(self):
        """What stands in front of a line's slots, in order: ins_id, content, logkey."""
        return ()


def positive(who, value):
    """The value, if it is a whole number of at least 1."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
        raise UsageError(f"{who}: expected a whole number of at least 1, got {value!r}")
    return int(value)
