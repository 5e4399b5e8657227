"""The worker processes of a ``DataLoader``, seen from the trainer: started, given orders, listened to, ended.

Each is a program of its own (``worker_process``), so that no process with MPI is ever forked. Batches come in the order
of their orders, whatever the number of workers.
"""

import os
import pickle
import subprocess
import sys
from collections import deque

from fleet_mpi.data.background import Channel, start_thread
from fleet_mpi.data.frames import read_frame, write_frame
from fleet_mpi.data.pipes import prepared
from fleet_mpi.data.worker_process import BATCH, ERROR, LOAD, PASS
from fleet_mpi.errors import EnvironmentProblem, Stalled

# A worker that had these would take itself for a rank.
_OF_LAUNCHERS = ("OMPI_", "PMI_", "PMIX_", "PRTE_", "HYDI_", "MPI_LOCAL", "PALS_", "SLURM_")
_ENDS_WITHIN_S = 5


class RemoteTraceback(Exception):
    """Where an error happened in a worker process: the cause of the error that is raised here."""

    def __str__(self):
        return f"\n{self.args[0]}"


class WorkerPool:
    """Some worker processes, for one pass after the other."""

    def __init__(self, count, ahead, timeout_s=0):
        self._pass, self._ahead = 0, ahead
        self.workers = []
        for place in range(count):
            self.workers.append(WorkerProcess(place, count, timeout_s))

    def batches(self, orders, work, prepare, seed):
        """Yield a batch for every order, or until all streams have ended.

        Args:
            orders: an iterator; each worker has up to ``ahead`` of them at a time.
            work, prepare: bytes of a ``fetching.Work`` and of the function that every worker calls first, or None.
        """
        self._pass += 1
        for worker in self.workers:
            worker.send(PASS, self._pass, list(sys.path), work, worker.place, len(self.workers), seed, prepare)
        due = deque()  # the workers that owe a batch, in the order of the batches
        for _ in range(self._ahead):
            for worker in self.workers:
                self._order(worker, orders, due)
        while due:
            worker = due.popleft()
            kind, value = worker.answer(self._pass)
            if kind == BATCH:
                self._order(worker, orders, due)
                yield value
            elif kind == ERROR:
                raise value[0] from RemoteTraceback(value[1])
            else:
                due = deque(other for other in due if other is not worker)

    def _order(self, worker, orders, due):
        for order in orders:
            worker.send(LOAD, self._pass, order)
            due.append(worker)
            return

    def close(self):
        """End all workers."""
        for worker in self.workers:
            worker.close()
        for worker in self.workers:
            worker.wait()


class WorkerProcess:
    """One worker process and the pipes to and from it."""

    def __init__(self, place, count, timeout_s):
        self.place, self._count, self._timeout_s = place, count, timeout_s
        self._is_ready = False
        orders, self._orders = (os.fdopen(end, mode) for end, mode in zip(os.pipe(), ("rb", "wb")))
        answers, theirs = (os.fdopen(end, mode) for end, mode in zip(os.pipe(), ("rb", "wb")))
        words = ["python", "-m", "fleet_mpi.data.worker_process", str(orders.fileno()), str(theirs.fileno())]
        words, environment = prepared(words)
        with orders, theirs:
            self.process = subprocess.Popen(words, env=_without_launcher(environment), stdin=subprocess.DEVNULL,
                                            pass_fds=(orders.fileno(), theirs.fileno()))
        self._answers = Channel()
        start_thread(_listen, answers, self._answers)

    def send(self, *order):
        """Give an order; it may wait in the pipe."""
        try:
            write_frame(self._orders, pickle.dumps(order, pickle.HIGHEST_PROTOCOL))
        except (BrokenPipeError, ValueError):
            self._say_how_it_ended()

    def answer(self, of_pass):
        """The next answer (kind, value) of a pass; waits for it."""
        while True:
            try:
                if not self._is_ready:  # Python starts and imports first, which is no fault of the dataset
                    self._is_ready = self._answers.take() == b""
                number, kind, value = pickle.loads(self._answers.take(self._timeout_s or None))
            except StopIteration:
                self._say_how_it_ended()
            except TimeoutError:
                raise Stalled(f"{self._name()} gave no batch within timeout={self._timeout_s} s; give more time, "
                              "or look at what the dataset waits for") from None
            if number == of_pass:
                return kind, value

    def close(self):
        """Let the process end; it does so at once, whatever it is doing."""
        try:
            self._orders.close()
        except BrokenPipeError:
            pass

    def wait(self):
        """Wait until the process has ended."""
        try:
            self.process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # stopped, or held up in the kernel
            self.process.kill()
            self.process.wait()

    def _say_how_it_ended(self):
        self.close()
        self.wait()
        code = self.process.returncode
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise EnvironmentProblem(f"{self._name()} ended with {ended} before it gave its batch; its messages are on "
                                 f"stderr (signal 9: did the machine run out of memory?)")

    def _name(self):
        return f"DataLoader: worker process {self.place} of {self._count} (pid {self.process.pid})"


def _listen(file, answers):
    """Take in answers until the process ends."""
    with file:
        while (data := read_frame(file)) is not None and answers.put(data):
            pass
    answers.finish()


def _without_launcher(environment):
    """The variables of a process that is no rank, and has no cores but one."""
    kept = {name: value for name, value in environment.items() if not name.startswith(_OF_LAUNCHERS)}
    return {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **kept}
