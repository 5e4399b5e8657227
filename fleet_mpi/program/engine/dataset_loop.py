"""``train_from_dataset`` and ``infer_from_dataset``: the executor's loop over a dataset's batches.

A dataset is anything whose ``batches()`` yields feeds; reading ahead is its own business.
"""

import time

import numpy as np

from fleet_mpi import notices
from fleet_mpi.errors import UsageError


class FetchHandler:
    """Subclass it: ``handler`` gets {name: array} every ``period_secs`` seconds while a dataset is trained on."""

    def __init__(self, var_dict=None, period_secs=60):
        self.var_dict = dict(var_dict or {})
        self.period_secs = period_secs

    @property
    def fetch_target_names(self):
        """The names that ``handler`` gets values for."""
        return list(self.var_dict)

    def handler(self, res_dict):
        """Called with the latest values; override it."""
        for name, value in res_dict.items():
            notices.log().info("%s: %s", name, value)

    @staticmethod
    def help():
        """What to write: a subclass with ``handler(self, res_dict)``."""
        return "class MyHandler(FetchHandler):\n    def handler(self, res_dict):\n        ..."


def run_over_dataset(executor, program, dataset, scope=None, fetch_list=None, fetch_info=None,
                     print_period=100, fetch_handler=None):
    """Run a program once per batch; every ``print_period`` batches the fetches are logged on stderr."""
    if dataset is None:
        raise UsageError("train_from_dataset: dataset is missing (DatasetFactory().create_dataset(...))")
    fetch_list = list(fetch_list or ())
    names = list(fetch_info or [getattr(one, "name", one) for one in fetch_list])
    watched = list(fetch_handler.var_dict.items()) if fetch_handler is not None else []
    next_call = time.monotonic() + (fetch_handler.period_secs if fetch_handler else 0)
    for number, feed in enumerate(dataset.batches(), 1):
        shown = fetch_list and number % print_period == 0
        wanted = (fetch_list if shown else []) + [var for _, var in watched]
        values = executor.run(program, feed=feed, fetch_list=wanted, scope=scope)
        if shown:
            notices.log().info("batch %d: %s", number, ", ".join(
                f"{name}: {np.asarray(value).reshape(-1)[:8].tolist()}" for name, value in zip(names, values)))
        if fetch_handler is not None and time.monotonic() >= next_call:
            fetch_handler.handler(dict(zip((name for name, _ in watched), values[-len(watched):])))
            next_call = time.monotonic() + fetch_handler.period_secs
