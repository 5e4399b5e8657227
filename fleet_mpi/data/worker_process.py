"""A process that loads batches for a ``DataLoader``: takes orders from one pipe, answers into another.

Started by ``worker_pool`` as a program of its own, never by a fork: it knows nothing of MPI, nor of the script but what
comes with the orders. It ends when its orders do, also in the middle of one: nothing is left when the trainer dies.
"""

import builtins
import os
import pickle
import random
import signal
import sys
import traceback
import types

import numpy as np

from fleet_mpi.data import by_value
from fleet_mpi.data.background import Channel, start_thread
from fleet_mpi.data.fetching import WorkerInfo, become_worker, fetcher
from fleet_mpi.data.frames import read_frame, write_frame

BATCH, END, ERROR = "batch", "end", "error"
PASS, LOAD = "pass", "load"


def main(argv):
    """Serve the orders of the pipe with the first number, into that with the second, until they end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's; this process ends with it
    _make_main()
    inbox = _Inbox()
    with open(int(argv[0]), "rb") as orders, open(int(argv[1]), "wb") as answers:
        start_thread(inbox.listen, orders)
        write_frame(answers, b"")  # ready: from now on the loader's timeout counts
        serve(inbox, answers)


def _make_main():
    """An empty script, for what the functions and classes of the real one name."""
    made = sys.modules["__main__"] = types.ModuleType("__main__")
    made.__builtins__ = builtins  # a C function that they call (array.sum) may import: it looks here for how


class _Inbox:
    """The orders, read ahead by a thread that also knows the pass that counts now."""

    def __init__(self):
        self.orders = Channel()
        self.current = None

    def listen(self, file):
        """Take in orders until the trainer closes the pipe or dies; then end this process, whatever it is doing."""
        while (data := read_frame(file)) is not None:
            order = pickle.loads(data)
            if order[0] == PASS:
                self.current = order[1]
            self.orders.put(order)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def serve(inbox, answers):
    """Answer the orders one by one; those of a pass that was given up are passed over."""
    fetch = None
    for kind, number, *rest in inbox.orders:
        if kind == PASS:
            fetch = _begin(*rest)
        elif number == inbox.current:
            write_frame(answers, _written(number, *_answer(fetch, *rest)))


def _begin(paths, work, place, count, seed, prepare):
    """Take over what a pass is made of; returns how to fetch a batch, or how to say why there is none."""
    sys.path[:] = paths
    try:
        work, prepare = by_value.loads(work), by_value.loads(prepare)
        random.seed(seed + place)
        np.random.seed((seed + place) % 2 ** 32)
        become_worker(WorkerInfo(place, count, work.dataset, seed + place))
        if prepare is not None:
            prepare(place)
        return fetcher(work)
    except Exception as problem:
        return _raising(problem)


def _raising(problem):
    def fetch(order):
        raise problem
    return fetch


def _answer(fetch, order):
    try:
        return BATCH, fetch(order)
    except StopIteration:
        return END, None
    except Exception as problem:  # raised again where the batch is asked for
        return ERROR, (problem, traceback.format_exc())


def _written(number, kind, value):
    """An answer's bytes; an error that cannot be pickled goes as its text."""
    try:
        return pickle.dumps((number, kind, value), pickle.HIGHEST_PROTOCOL)
    except Exception as problem:
        told = value[1] if kind == ERROR else f"a batch cannot be sent to the trainer: {problem}"
        return pickle.dumps((number, ERROR, (RuntimeError(told), told)), pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main(sys.argv[1:])
