"""What mpirun itself writes between the lines of the ranks: boxes that tell that a rank ended, without a name or a
cause.

They are held back, and shown where the launcher has nothing better to say. Knows their form in Open MPI and MPICH; all
else passes at once, as it comes.
"""

from __future__ import annotations

import re

_RULE = re.compile(rb"\n?(-{50,}|={50,})\n")
_MAY_BECOME_A_RULE = re.compile(rb"\n?(-+|=+)\Z")
# How the first line within a box of mpirun begins; what a script frames begins otherwise, even if it names mpirun.
_KNOWN = re.compile(rb"=   BAD TERMINATION|(?:prterun|mpirun|mpiexec) (?:detected|noticed|has|was|is|could|cannot)\b|"
                    rb"(?:PRTE|ORTE|The PMIx|Open MPI) (?:has|was|is|could|cannot|tried|server|failed)\b|MPI_ABORT was|"
                    rb"Primary job|A daemon (?:\(|failed)|There are not enough slots|Sorry!  You|A system call failed|"
                    rb"An internal error")
_LONGEST_BOX = 1 << 13  # what is not closed by then is no box: it must not be held back
_END = re.compile(rb"^(-{50,}|={50,})\n", re.M)
_LINE = re.compile(rb"(?:\[(?:mpiexec|proxy:)[^]\n]*\] |\[[^]\s]+:\d+\] (?:PMIX ERROR|plm:|\*\*\*)|"
                   rb"YOUR APPLICATION TERMINATED WITH|This typically refers to a problem|Please see the FAQ page|"
                   rb"MPICH_ASYNC)[^\n]*\n")


class Boxes:
    """One stream of mpirun: ``passed(data)`` gives what is to be shown of it, ``held`` has mpirun's own words."""

    def __init__(self) -> None:
        self.held = b""
        self._open = b""        # what may still turn out to be a box
        self._in_a_line = False

    def passed(self, data: bytes) -> bytes:
        """What to show now, given what has come."""
        data, self._open, shown = self._open + data, b"", b""
        while data and not self._open:
            part, data = self._next(data)
            shown += part
        return shown

    def rest(self) -> bytes:
        """What was held back and is no whole box: the stream has ended."""
        rest, self._open = self._open, b""
        return rest

    def _next(self, data: bytes) -> tuple[bytes, bytes]:
        """(what to show, what is left) of data that is not empty."""
        if not self._in_a_line:
            length = self._box(data)
            if length is None:
                self._open = data
                return b"", b""
            if length:
                self.held += data[:length]
                return b"", data[length:]
        line, end, left = data.partition(b"\n")
        self._in_a_line = not end
        return line + end, left

    @staticmethod
    def _box(data: bytes) -> int | None:
        """How much of data, from its start, is mpirun's own; None: more must come before that is known."""
        line = _LINE.match(data)
        if line:
            return line.end()
        rule = _RULE.match(data)
        if not rule:
            return None if _MAY_BECOME_A_RULE.match(data) else 0
        if b"\n" not in data[rule.end():]:
            return None
        if not _KNOWN.match(data, rule.end()):
            return 0
        end = _END.search(data, rule.end())
        if end is None:
            return None if len(data) < _LONGEST_BOX else 0
        return end.end()
