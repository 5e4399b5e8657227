"""Ids and labels that are none: found by the op that meets them, or on a device when the run's results are fetched.

On the host an op looks before it computes and raises. On a device looking would cost a wait in every op: there it
notes in memory of the device, and goes on with any row; the note comes to the host with the values that are fetched
(``transfers``), and ``Notes.raise_first`` reads it there. So the error is the same sentence, but the run it is about
has ended, its update included. A run that fetches nothing does not wait; the next one that does raises.
"""

import itertools
import weakref

import numpy as np

from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels.reference import rows

ANY = -(1 << 63)  # the lowest number: of such ids only those from the height up are wrong


class Check:
    """Looks at ids in an op's calls: ``sentence(id, position)`` says what is wrong with one.

    Right are those in [lowest, height), and ``spared``.
    """

    def __init__(self, k, height, sentence, spared=None, lowest=0):
        self.k, self.sentence = k, sentence
        # Sparing the lowest spares none that is not right anyway.
        self.lowest, self.height, self.spared = lowest, height, lowest if spared is None else spared
        self.notes = None if k.xp is np else k.frame.notes
        self.number = self.notes.enter(self) if self.notes is not None else 0

    def __call__(self, ids):
        """Refuse ids that are none; on a device, note the first one."""
        if self.notes is None:
            self.refuse_at(rows.first_outside(self._looked_at(ids), self.height), ids)
            return
        rows.note_outside(ids, self.lowest, self.height, self.spared, self.number, self.notes.transfers.note)
        if self.k.frame.interpreted:  # it waits for values all the time, and this op's call ends with it
            self.notes.look()

    def around(self, run, ids):
        """The call of a kernel that looks itself at ids of the host, and returns the first wrong position or -1."""
        if self.notes is not None:
            return lambda: (self(ids), run())
        refuse_at = self.refuse_at

        def run_and_refuse():
            position = run()
            if position >= 0:
                refuse_at(position, ids)
        return run_and_refuse

    def refuse_at(self, position, ids):
        """Raise for the id at this position of the host's; not for -1."""
        if position != rows.ALL_INSIDE:
            self.refuse(int(ids.reshape(-1)[position]), position)

    def refuse(self, wrong, position):
        """Raise for this id."""
        self.k.fail(self.sentence(wrong, position))

    def _looked_at(self, ids):
        if self.lowest < 0:
            return np.maximum(ids, 0)
        return ids if self.spared == self.lowest else np.where(ids == self.spared, 0, ids)


def id_check(k, height, what, **right):
    """The Check of ids that name rows of ``what``."""
    return Check(k, height, lambda wrong, position: (
        f"id {wrong} at position {position} is outside {what} of {height} rows: expected 0 <= id < {height}"), **right)


class Notes:
    """What the ops of a program's plans have noted on their device (in ``transfers.note``), and who they are."""

    def __init__(self, transfers):
        self.transfers = transfers
        self._numbers = itertools.count(1)
        self._checks = weakref.WeakValueDictionary()  # plans come and go

    def enter(self, check):
        """The number under which a check notes."""
        number = next(self._numbers)
        self._checks[number] = check
        return number

    def look(self):
        """Wait for the device; raise for the first id that was noted since the last time, if any."""
        self.transfers.bring([])
        self.raise_first()

    def raise_first(self):
        """Raise for the first id that was noted before the last fetch, if any."""
        number, position, wrong = self.transfers.note_on_host[:3].tolist()
        if number:
            self.transfers.note.fill(0)
            check = self._checks.get(number)
            if check is None:
                raise ProgramError(f"id {wrong} at position {position} of an input of a run before this one, whose "
                                   f"plan is gone, is outside what it names: mend the ids, or fetch in every run to "
                                   f"hear which")
            check.refuse(wrong, position)
