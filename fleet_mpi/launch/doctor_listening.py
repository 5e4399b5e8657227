"""Runs a probe and reads its lines, for as long as it goes on saying something: whatever hangs, the reader does not.

Knows the probe's lines (see ``doctor_probe``), not what they mean.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi.launch.doctor_probe import MEETING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import IO, Any

    Popen = Any   # subprocess.Popen[bytes], whose stdout is a pipe here

MPI_GRACE_S = 15   # more for the ranks' meeting, which has a deadline of its own and then knows who is missing
_ENDING_S = 5      # for a process that is done, and again for one that is told to end
_KEPT_LINES = 4
_KEPT_LETTERS = 400


class Heard(NamedTuple):
    """What a probe has said: its facts, the facts of all ranks where they met (None: they did not), its own rank among
    them, why they did not, how long it took; the step it did not end, and whether it hung there (else it died)."""

    facts: dict[str, Any]
    met: list[dict[str, Any]] | None = None
    rank: int = 0
    apart: str = ""
    seconds: float = 0.0
    step: str = ""
    hung: bool = False


@contextmanager
def listening(command: Sequence[str], environ: Mapping[str, str], deadline_s: float,
              starts_ranks: bool = False) -> Iterator[Heard]:
    """Run a probe, and give what it said; it may go, and is ended if it does not, when the block ends.

    ``starts_ranks``: the command is no probe, but starts some: it ends as a group, and nobody can be asked to wait.
    """
    with tempfile.TemporaryFile() as words:
        try:
            # A rank's line to its launcher is a file that it inherits.
            probe = subprocess.Popen(command, env=environ,
                                     stdin=subprocess.DEVNULL if starts_ranks else subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=words, close_fds=False,
                                     start_new_session=starts_ranks)
        except OSError as error:
            yield Heard({}, apart=f"{command[0]} cannot be started: {error}")
            return
        heard = Heard({}, hung=True)
        try:
            heard = _listen(probe, deadline_s, words)
            yield heard
        finally:
            _end(probe, starts_ranks, heard.hung)


def _listen(probe: Popen, deadline_s: float, words: IO[bytes]) -> Heard:
    heard, pending, begun = Heard({}, step="its own start"), b"", time.monotonic()
    while heard.met is None and not heard.apart:
        left = begun + deadline_s + (MPI_GRACE_S if heard.step == MEETING else 0) - time.monotonic()
        if not select.select([probe.stdout], [], [], max(0, left))[0]:
            return heard._replace(apart=_last_words(words), hung=True)
        data = os.read(probe.stdout.fileno(), 1 << 16)
        if not data:
            return heard._replace(apart=_last_words(words) or _how_it_ended(probe)) if heard.step else heard
        *lines, pending = (pending + data).split(b"\n")
        for about in filter(None, map(_object, lines)):
            begun = time.monotonic()
            heard = heard._replace(**{"step": "", **{name: about[name] for name in Heard._fields if name in about}})
    return heard


def _object(line: bytes) -> dict[str, Any] | None:
    """What a line says; None for one that is no probe's: launchers write where they like."""
    try:
        about = json.loads(line)
    except ValueError:
        return None
    return about if isinstance(about, dict) else None


def _last_words(words: IO[bytes]) -> str:
    """The end of what was written to stderr, as one line."""
    words.seek(0)
    text = words.read().replace(b"\0", b"").decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if any(letter.isalnum() for letter in line)]
    return "; ".join(lines[-_KEPT_LINES:])[-_KEPT_LETTERS:]


def _how_it_ended(probe: Popen) -> str:
    try:
        return f"the process ended without a word (exit code {probe.wait(_ENDING_S)})"
    except subprocess.TimeoutExpired:
        return "the process closed its output without a word"


def _end(probe: Popen, as_group: bool, hung: bool) -> None:
    """Terminate the probe, then kill it; one that is stuck in the kernel (a dead file server) is left behind."""
    probe.stdout.close()
    if probe.stdin is not None:
        probe.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL) if hung else (None, signal.SIGTERM, signal.SIGKILL):
        try:
            if number is not None:
                os.killpg(probe.pid, number) if as_group else probe.send_signal(number)
            probe.wait(_ENDING_S)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return
