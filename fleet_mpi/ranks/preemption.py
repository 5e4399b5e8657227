"""The wish that a job make room for another one: a signal sets a flag, and workers agree when to follow it.

USR1 reaches the ranks through every mpirun; TERM does where the launcher gives them time (srun and MPICH do, Open
MPI ends its ranks a quarter of a second later). Knows signals, and communicators by their methods; what is saved
is decided above.
"""

import signal
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fleet_mpi.errors import Stalled, UsageError
from fleet_mpi.ranks import meeting, waiting
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.ranks.pending_requests import Receiving, Sending
from fleet_mpi.ranks.policy import DEFAULT, Outcome, Policy

SIGNALS, EXIT_CODE = DEFAULT.signals, DEFAULT.exit_code

_GO_ON, _STOP, _LEFT = range(3)
_LOOK_EVERY_S = 0.25     # how long a request may go unseen, where steps are shorter than that
_MOST_STEPS = 20         # between two looks: should steps become slow, the next look is not far away
_LAST_WORDS_S = 2

_wish: dict[str, int] = {}    # "signal": the first one that came
_before: dict[int, Any] = {}  # signal: the handler it had


def watch(signals: Iterable[int] = SIGNALS, policy: Policy = DEFAULT) -> None:
    """From now on these signals ask this process to stop, and do not kill it. For every rank, servers too, early.

    Under a policy by which a signal does not save they stay what they are.
    """
    for number in signals if policy.signal is Outcome.SAVE_AND_END else ():
        if number not in _before:
            _before[number] = signal.signal(number, _note)


def release() -> None:
    """Give the signals back to whom they belonged to, and forget the wish."""
    while _before:
        number, handler = _before.popitem()
        signal.signal(number, handler)
    _wish.clear()


def requested() -> bool:
    """Whether this process was asked to stop; others of the job may not know yet."""
    return bool(_wish)


def _note(number: int, frame: Any) -> None:
    _wish.setdefault("signal", number)


class Agreement:
    """Whether the workers of a job stop, and after which step; all of them ask after every step.

    Args:
        comm: the workers' communicator; None: this worker is the only one.
        named: the function that says who a rank is.
        together: all must stop after the same step. Then each look is a meeting, one in many steps, at step numbers
            that follow from what all have told. Otherwise a worker stops when it hears of the wish.
    """

    def __init__(self, comm: Any, named: Callable[[int], str] = str, together: bool = True,
                 clock: Callable[[], float] = time.monotonic):
        self.comm, self.named, self.together, self.clock = comm, named, together, clock
        self.heard: dict[int, list[int]] = {}
        self.left: set[int] = set()
        self.has_left = False
        self._next_look = 0
        self._looked: tuple[int, float] | None = None   # after which step, and when
        others = [] if comm is None else [rank for rank in range(comm.size) if rank != comm.rank]
        self._awaited = {rank: self._await(rank) for rank in others}
        self._sent: list[Any] = []

    def reached(self, step: int, wish: bool) -> bool:
        """Whether to stop after this step, where ``wish`` is whether this worker was asked to."""
        if not self._awaited:
            return wish
        if self.together:
            return self._meet(step, wish)
        self._listen()
        return wish or bool(self.heard)

    def gather(self, step: int) -> dict[int, int]:
        """Collective, once stopping: wait for the others; {rank: steps done} of all workers that have not left."""
        if not self._awaited:
            return {} if self.comm is None else {self.comm.rank: step}
        self._tell(_STOP, step)
        words = self._hear_all(step)
        return {self.comm.rank: step, **{rank: theirs for rank, (_, theirs, _) in words.items()}}

    def leave(self) -> None:
        """Tell the others that this worker takes no further part; nobody is waited for. May be called again."""
        if not self.has_left:
            self.has_left = True
            self._tell(_LEFT, 0)

    def close(self) -> None:
        """Leave, and receive the others' last messages: some MPI libraries complain of any that nobody received.

        One that does not come soon is not waited for: it may be waiting for this process's goodbye to the servers.
        """
        self.leave()
        until = self.clock() + _LAST_WORDS_S
        while self._awaited and self.clock() < until:
            late = meeting.finish({rank: request for rank, (_, request) in self._awaited.items()}, until - self.clock())
            for rank in set(self._awaited) - set(late):
                self._take(rank, {})
        for _, request in self._awaited.values():
            request.Cancel()
        meeting.finish({rank: request for rank, (_, request) in self._awaited.items()}, _LAST_WORDS_S)
        self._awaited = {}

    def _meet(self, step: int, wish: bool) -> bool:
        if step < self._next_look:
            return False
        now = self.clock()
        waited_us = 0 if self._looked is None else int((now - self._looked[1]) * 1e6)
        self._tell(_STOP if wish else _GO_ON, step, waited_us)
        words = self._hear_all(step)
        self._refuse_other_steps(step, words)
        longest_s = max([waited_us, *(word[2] for word in words.values())]) / 1e6
        # The same numbers on every worker, so that all look again after the same step.
        self._next_look = step + 1
        if self._looked is not None:
            fitting = int(_LOOK_EVERY_S * (step - self._looked[0]) / max(longest_s, 1e-6))
            self._next_look = step + min(_MOST_STEPS, max(1, fitting))
        self._looked = step, now
        return wish or any(word[0] == _STOP for word in words.values())

    def _refuse_other_steps(self, step: int, words: dict[int, list[int]]) -> None:
        for rank, (_, theirs, _) in words.items():
            if theirs != step:
                raise UsageError(f"{self.named(self.comm.rank)} asks whether to stop after step {step}, "
                                 f"{self.named(rank)} after step {theirs}: workers that train together must count "
                                 f"alike")

    def _tell(self, kind: int, step: int, waited_us: int = 0) -> None:
        word = np.array([kind, step, waited_us], np.int64)
        self._sent = [request for request in self._sent if not request.Test()]
        self._sent += [Sending(self.comm.Isend(word, rank, Channel.PREEMPTION)) for rank in self._awaited]

    def _hear_all(self, step: int) -> dict[int, list[int]]:
        """{rank: word} of all that have not left; Stalled names who does not come."""
        words, self.heard = self.heard, {}
        missing = {rank: request for rank, (_, request) in self._awaited.items() if rank not in words}
        seconds = waiting.deadline_s()
        late = meeting.finish(missing, seconds)
        if late:
            names = ", ".join(self.named(rank) for rank in sorted(late))
            raise Stalled(f"whether to stop after step {step}: {names} did not come within {seconds:g} s "
                          f"(FLAGS_rpc_deadline); a worker that is done must say so (Preemption.finish)")
        for rank in missing:
            self._take(rank, words)
        return words

    def _listen(self) -> None:
        """Take the words that have come."""
        for rank in list(self._awaited):
            if rank not in self.heard and self._awaited[rank][1].Test():
                self._take(rank, self.heard)

    def _take(self, rank: int, words: dict[int, list[int]]) -> None:
        word = self._awaited.pop(rank)[0].tolist()
        if word[0] == _LEFT:
            self.left.add(rank)
        else:
            words[rank] = word
            self._awaited[rank] = self._await(rank)

    def _await(self, rank: int) -> tuple[np.ndarray, Receiving]:
        word = np.zeros(3, np.int64)
        return word, Receiving(self.comm.Irecv(word, rank, Channel.PREEMPTION))
