"""The datasets under their 2.x names: one ``init`` call, settings by keyword, setters with underscores.

Only names; the work is in ``dataset``.
"""

from fleet_mpi.data import dataset
from fleet_mpi.errors import UsageError, nearest


class _ByKeyword:
    """``init`` and ``update_settings``, and the 2.x spelling of the setters."""

    # Keyword of init and update_settings -> the method that takes it.
    _setters = {"batch_size": "set_batch_size", "thread_num": "set_thread", "use_var": "set_use_var",
                "pipe_command": "set_pipe_command", "input_type": "set_input_type",
                "download_cmd": "set_download_cmd", "rank_offset": "set_rank_offset",
                "pv_batch_size": "set_pv_batch_size"}
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

    def __getattr__(self, name):
        # 2.x spells the setters of 1.x with an underscore in front.
        if name.startswith("_") and not name.startswith("__") and hasattr(type(self), name[1:]):
            return getattr(self, name[1:])
        raise AttributeError(f"{type(self).__name__} has no {name!r}")


class QueueDataset(_ByKeyword, dataset.QueueDataset):
    """Streams its files; see ``fleet_mpi.data.dataset.QueueDataset``."""


class InMemoryDataset(_ByKeyword, dataset.InMemoryDataset):
    """Loads its files once; see ``fleet_mpi.data.dataset.InMemoryDataset``."""

    _setters = {**_ByKeyword._setters, "parse_ins_id": "set_parse_ins_id", "parse_content": "set_parse_content",
                "fleet_send_batch_size": "set_fleet_send_batch_size",
                "fleet_send_sleep_seconds": "set_fleet_send_sleep_seconds", "parse_logkey": "set_parse_logkey",
                "merge_by_sid": "set_merge_by_sid", "enable_pv_merge": "set_enable_pv_merge",
                "merge_size": "_set_merge_size", "fea_eval": "_set_fea_eval_by_keyword"}

    def _init_distributed_settings(self, **settings):
        self.update_settings(**settings)

    def _set_merge_size(self, merge_size):
        # -1, the default, means no merging.
        if merge_size > 0:
            self.set_merge_by_lineid(merge_size)

    def _set_fea_eval_by_keyword(self, fea_eval):
        self.set_fea_eval(None, fea_eval)
