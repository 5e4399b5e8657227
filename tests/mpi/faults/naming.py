"""Whom a job's own words blame: ranks in the sentences of this package, or of mpirun where there are none.

A sentence has a speaker ("rank 0 (server 0, host a): ...") and, if it is not about the speaker itself, names others.
"""

import re
from typing import NamedTuple

_SENTENCE = re.compile(r"^\s*fleet_mpi: (?=.*\brank \d)(.*)$", re.M)
_SPEAKER = re.compile(r"rank (\d+) \([^)]*\): ")
_RANK = re.compile(r"\brank (\d+)\b")
# A sentence of that rank, which may blame another, follows.
_HEADING = re.compile(r" fails; (the last words in|its log is) ")
_BY_MPIRUN = re.compile(r"process rank (\d+) with PID|Process name: \[.*?,(\d+)\]|\bRANK (\d+) PID")

RIGHT, NOBODY, SEVERAL, WRONG = "right", "nobody", "several", "wrong"


class Blame(NamedTuple):
    """How the words fit: ``who`` is RIGHT, NOBODY, SEVERAL or WRONG; ``role`` whether it is told; the sentences."""

    who: str
    role: bool
    said: tuple


def blame(text, rank, name):
    """Whether what was written blames this rank, called ``name`` once it has joined, and no other."""
    said = tuple(dict.fromkeys(match[1] for match in _SENTENCE.finditer(text) if not _HEADING.search(match[1])))
    blamed = [blamed_by(sentence) for sentence in said] or [set(_named_by_mpirun(text))]
    everybody = set().union(*blamed)
    if not everybody:
        return Blame(NOBODY, False, said)
    right = [sentence for sentence, ranks in zip(said, blamed) if ranks == {rank}]
    role = any(re.search(rf"\b{name}\b", sentence) for sentence in right)
    if any(rank not in ranks for ranks in blamed):
        return Blame(WRONG, role, said)
    return Blame(RIGHT if everybody == {rank} else SEVERAL, role, said)


def blamed_by(sentence):
    """The ranks that a sentence is about: those it names beside its speaker, or the speaker."""
    speaker = _SPEAKER.match(sentence)
    named = {int(number) for number in _RANK.findall(sentence)}
    others = named - {int(speaker[1])} if speaker else named
    return others or named


def _named_by_mpirun(text):
    for match in _BY_MPIRUN.finditer(text):
        yield int(next(filter(None, match.groups())))
