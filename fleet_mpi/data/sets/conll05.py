"""Semantic roles (CoNLL 2005): who does what to whom in a sentence, seen from one of its verbs.

A sample has nine lists as long as the sentence: word ids, the ids of the words two and one before the verb, of the verb
itself and of the words one and two behind it (each repeated), the verb's id (repeated), marks of these five places, and
the labels. Files under ``DATA_HOME/conll05st``: conll05st-tests.tar.gz, wordDict.txt, verbDict.txt, targetDict.txt, and
emb for ``get_embedding``. In the stand-in the kind of verb and the place before or behind it decide the roles.
"""

import functools
import gzip
import itertools
import tarfile
import tempfile

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.data.sets import made_up_roles
from fleet_mpi.data.sets.words import decode
from fleet_mpi.errors import UsageError

_BASE = "http://paddlemodels.bj.bcebos.com/conll05st"
DATA = f"{_BASE}/conll05st-tests.tar.gz", "387719152ae52d60422c016e92a742fc"
WORDS = f"{_BASE}%2FwordDict.txt", "ea7fb7d4c75cc6254716f0177a506baa"
VERBS = f"{_BASE}%2FverbDict.txt", "0d2977293bbb6cbefab5b0f97db1e77c"
LABELS = f"{_BASE}%2FtargetDict.txt", "d8c7f03ceb5fc2e5a0fa7503a4353751"
EMBEDDING = f"{_BASE}%2Femb", "bf436eb0faa1f6f9103017f8be57cdb7"
UNK_IDX = 0

_PART = "conll05st-release/test.wsj"
_EMBEDDING_SIZE, _EMBEDDING_HEAD = 32, 16  # numbers of a word; bytes before them
_AROUND = (-2, -1, 0, 1, 2)


def get_dict():
    """The dictionaries of words, verbs and labels."""
    paths = _paths()
    if paths is None:
        return made_up_roles.dictionaries()
    words, verbs = (_numbered_lines(paths[kind]) for kind in (WORDS, VERBS))
    with open(paths[LABELS], "rb") as file:
        return words, verbs, label_dict(decode(line.strip()) for line in file)


def label_dict(lines):
    """``B-`` and ``I-`` of every role, roles in alphabetical order, and ``O`` last.

    The original numbers the roles in the order of a Python set, which differs between processes.
    """
    roles = sorted({line[2:] for line in lines if line.startswith(("B-", "I-"))})
    return {label: number for number, label in enumerate(
        [*itertools.chain.from_iterable((f"B-{role}", f"I-{role}") for role in roles), "O"])}


def get_embedding():
    """The path of a file with trained word vectors: a head of 16 bytes, then 32 float32 numbers for every word."""
    return home.download(EMBEDDING[0], "conll05st", EMBEDDING[1]) if _paths() else _made_up_embedding().name


def test():
    """A reader over the test set, which is what there is to train on: the rest is not free."""
    paths, dictionaries = _paths(), get_dict()

    def read_samples():
        for sentence, verb, labels in _labelled(paths):
            yield _sample(sentence, verb, labels, *dictionaries)

    return read_samples


def fetch():
    """Say now whether real or synthetic sentences will be used."""
    _paths()


def _paths():
    """The paths of all files, or None where one is missing."""
    found = {kind: home.find(kind[0], "conll05st", kind[1]) for kind in (DATA, WORDS, VERBS, LABELS)}
    if all(found.values()):
        return found
    notices.stand_in("conll05", "sentences of made-up words with roles", home.folder("conll05st"))
    return None


def _sample(sentence, verb, labels, words, verbs, label_ids):
    place, last = labels.index("B-V"), len(sentence) - 1
    near = [place + step for step in _AROUND]
    context = ["bos" if at < 0 else "eos" if at > last else sentence[at] for at in near]
    marks = [int(at in near) for at in range(len(sentence))]
    repeated = [[number] * len(sentence) for number in (
        *(words.get(word, UNK_IDX) for word in context), verbs.get(verb))]
    return ([words.get(word, UNK_IDX) for word in sentence], *repeated, marks,
            [label_ids.get(label) for label in labels])


def _labelled(paths):
    """(words, verb, labels) for every verb of every sentence."""
    for rows in made_up_roles.sentences() if paths is None else _sentences(paths[DATA]):
        words, columns = [word for word, _ in rows], list(zip(*(fields for _, fields in rows)))
        verbs = [verb for verb in columns[0] if verb != "-"] if columns else []
        for verb, brackets in zip(verbs, columns[1:]):
            yield words, verb, labels_of(brackets)


def labels_of(brackets):
    """``(A0*``, ``*``, ``*)``, ``(V*)`` and so on as labels ``B-A0``, ``I-A0``, ``I-A0``, ``B-V``; ``O`` outside."""
    labels, role = [], None
    for text in brackets:
        if text.startswith("("):
            role = text[1:text.find("*")]
            labels.append(f"B-{role}")
        elif text in ("*", "*)"):
            labels.append(f"I-{role}" if role else "O")
        else:
            raise UsageError(f"conll05: expected a label like '(A0*', '*', '*)' or '(V*)', got {text!r}")
        role = None if text.endswith(")") else role
    return labels


def _sentences(path):
    """The rows (word, fields) of each sentence of the archive."""
    with tarfile.open(path) as archive:
        files = [gzip.open(archive.extractfile(f"{_PART}/{kind}/test.wsj.{kind}.gz")) for kind in ("words", "props")]
        rows = []
        for word, fields in zip(*files):
            if fields.split():
                rows.append((decode(word.strip()), [decode(field) for field in fields.split()]))
            elif rows:
                yield rows
                rows = []
        if rows:
            yield rows


def _numbered_lines(path):
    with open(path, "rb") as file:
        return {decode(line.strip()): number for number, line in enumerate(file)}


# Kept open: the file is there as long as the process, and leaves nothing behind.
@functools.lru_cache(maxsize=1)
def _made_up_embedding():
    file = tempfile.NamedTemporaryFile(prefix="conll05-emb-")
    count = len(made_up_roles.dictionaries()[0])
    values = np.random.default_rng(31).normal(scale=0.1, size=(count, _EMBEDDING_SIZE))
    file.write(b"\0" * _EMBEDDING_HEAD + values.astype("float32").tobytes())
    file.flush()
    return file
