"""The datasets under their 2.x names: one ``init`` call, settings by keyword, setters with underscores.

Only names; the work is in ``dataset``.
"""

from fleet_mpi.data import dataset
from fleet_mpi.errors import UsageError, nearest


class _ByKeyword:
    """``init`` and ``update_settings``, and the 2.x spelling of the setters."""

    # Keyword of init and update_settings -> the method that takes it.
    _setters = {"batch_size": "set_batch_size", "thread_num": "set_thread", "use_var": "set_use_var",
                "pipe_command": "set_pipe_command", "input_type": "_set_input_type",
                "download_cmd": "set_download_cmd"}
    # Accepted as the original does, but there is nothing here that they could change.
    _without_effect = {"data_feed_type", "fs_name", "fs_ugi", "candidate_size", "merge_by_sid", "queue_num"}

    def init(self, **settings):
        """Give all settings of a dataset at once; those not given get the original's defaults."""
        self.update_settings(**{"batch_size": 1, "thread_num": 1, "use_var": [], "pipe_command": "cat",
                                "input_type": 0, "fs_name": "", "fs_ugi": "", "download_cmd": "cat", **settings})

    def update_settings(self, **settings):
        """Change some settings, by the keywords of ``init``."""
        for name, value in settings.items():
            if name in self._setters:
                getattr(self, self._setters[name])(value)
            elif name not in self._without_effect:
                raise UsageError(f"{type(self).__name__}: no setting is called {name!r}; "
                                 f"{nearest(name, {*self._setters, *self._without_effect})}")
        if "fs_name" in settings and "fs_ugi" in settings:
            self.set_hdfs_config(settings["fs_name"], settings["fs_ugi"])

    @property
    def dataset(self):
        """The object that does the work, which scripts reach through this name: itself."""
        return self

    def _set_batch_size(self, batch_size):
        self.set_batch_size(batch_size)

    def _set_thread(self, thread_num):
        self.set_thread(thread_num)

    def _set_use_var(self, var_list):
        self.set_use_var(var_list)

    def _set_pipe_command(self, pipe_command):
        self.set_pipe_command(pipe_command)

    def _set_input_type(self, input_type):
        # 0: a line is a sample, 1: the generator works by batches; the lines are the same.
        self.input_type = input_type

    def _set_hdfs_config(self, fs_name, fs_ugi):
        self.set_hdfs_config(fs_name, fs_ugi)

    def _set_download_cmd(self, download_cmd):
        self.set_download_cmd(download_cmd)

    def _desc(self):
        return self.desc()


class QueueDataset(_ByKeyword, dataset.QueueDataset):
    """Streams its files; see ``fleet_mpi.data.dataset.QueueDataset``."""


class InMemoryDataset(_ByKeyword, dataset.InMemoryDataset):
    """Loads its files once; see ``fleet_mpi.data.dataset.InMemoryDataset``."""

    _setters = {**_ByKeyword._setters, "parse_ins_id": "set_parse_ins_id", "parse_content": "set_parse_content",
                "fleet_send_batch_size": "set_fleet_send_batch_size",
                "fleet_send_sleep_seconds": "set_fleet_send_sleep_seconds",
                "merge_size": "_set_merge_size", "fea_eval": "_set_fea_eval_by_keyword"}

    def _init_distributed_settings(self, **settings):
        self.update_settings(**settings)

    def _set_queue_num(self, queue_num):
        self.set_queue_num(queue_num)

    def _set_parse_ins_id(self, parse_ins_id):
        self.set_parse_ins_id(parse_ins_id)

    def _set_parse_content(self, parse_content):
        self.set_parse_content(parse_content)

    def _set_fleet_send_batch_size(self, fleet_send_batch_size=1024):
        self.set_fleet_send_batch_size(fleet_send_batch_size)

    def _set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds=0):
        self.set_fleet_send_sleep_seconds(fleet_send_sleep_seconds)

    def _set_merge_by_lineid(self, merge_size=2):
        self.set_merge_by_lineid(merge_size)

    def _set_fea_eval(self, record_candidate_size, fea_eval=True):
        self.set_fea_eval(record_candidate_size, fea_eval)

    def _set_merge_size(self, merge_size):
        # -1, the default, means no merging.
        if merge_size > 0:
            self.set_merge_by_lineid(merge_size)

    def _set_fea_eval_by_keyword(self, fea_eval):
        self.set_fea_eval(None, fea_eval)
