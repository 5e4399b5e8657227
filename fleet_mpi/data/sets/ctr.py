"""Clicks on advertisements in the Criteo text format, as wide_and_deep's present version reads them.

A line has 40 fields between tabs: label, 13 whole numbers, 26 texts; all but the label may be empty.
A sample has 28 fields: 13 floats, 26 times [id], [label]. Real files are given by path or lie in
``DATA_HOME/ctr``; the stand-in's lines carry enough signal for an AUC well above 0.7.

``python -m fleet_mpi.data.sets.ctr`` turns such lines on stdin into multislot lines on stdout: a pipe
command for datasets.
"""

import glob
import os
import zlib

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.data.multislot import MultiSlotDataGenerator
from fleet_mpi.errors import UsageError

HASH_DIM = 1000001
CONTINUOUS_MIN = (0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
CONTINUOUS_DIFF = (20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50)
SLOTS = ("dense_input", *(f"C{number}" for number in range(1, 27)), "label")

_COLUMNS = range(14, 40)
_SCALES = tuple(zip(CONTINUOUS_MIN, CONTINUOUS_DIFF))
# crc32 can be continued: the checksum of the column number is where each column's text starts from.
_STARTS = tuple(zlib.crc32(str(column).encode()) for column in _COLUMNS)
# Ids beyond the checksum's 32 bits: it has no factor in common with 10 or 2, so different texts stay different.
_SPREAD = 2654435769
_BLOCK = 1000
# Few and many values per column, as in the real data.
_VALUES = np.resize((8, 40, 200, 1000), 26)


def reader(files=None, hash_dim=HASH_DIM, python_hash=False, synthetic_count=20000, seed=0):
    """A reader of 28-field samples.

    Args:
        files: a path, a list of paths or a folder; None: what lies in ``DATA_HOME/ctr``, or else
            ``synthetic_count`` synthetic lines that depend on ``seed``.
        python_hash: number texts by Python's ``hash`` as the original does; then ids differ from
            process to process unless PYTHONHASHSEED is set.
    """
    paths = _paths(files)
    if not paths:
        notices.stand_in("ctr", "Criteo-like lines", home.folder("ctr"))

    def read_lines():
        sources = ((path, _open_lines(path)) for path in paths) if paths else \
            [("synthetic lines", synthetic_lines(synthetic_count, seed))]
        for name, lines in sources:
            for number, line in enumerate(lines, 1):
                try:
                    yield encode(line, hash_dim, python_hash)
                except ValueError as problem:
                    raise UsageError(f"ctr: {name}, line {number}: {problem}") from None

    return read_lines


def train(files=None, **options):
    """As ``reader``; the stand-in has 20000 lines."""
    return reader(files, **options)


def test(files=None, **options):
    """As ``reader``; the stand-in has 5000 lines, none of them in ``train``'s."""
    return reader(files, **{"synthetic_count": 5000, "seed": 1, **options})


def encode(line, hash_dim=HASH_DIM, python_hash=False):
    """One line as a sample: (float32 array of 13, [id] times 26, [label])."""
    dense, *rest = _plain(line, hash_dim, python_hash)
    return (np.array(dense, np.float32), *rest)


def synthetic_lines(count, seed=0):
    """Criteo-like lines, the same for the same ``seed``; about three in ten are clicks."""
    for start in range(0, count, _BLOCK):
        lines = _block_of_lines(np.random.default_rng([39, seed, start]))
        yield from lines[:count - start]


def write_synthetic(path, count, seed=0):
    """Write synthetic lines to a file, for whatever reads files."""
    with open(path, "w") as file:
        file.writelines(synthetic_lines(count, seed))


class CriteoGenerator(MultiSlotDataGenerator):
    """Criteo lines to slots, for a pipe command."""

    def generate_sample(self, line):
        """The slots of one raw line, named as in ``SLOTS``."""
        def slots():
            yield list(zip(SLOTS, _plain(line, HASH_DIM, False)))

        return slots


def _plain(line, hash_dim, python_hash):
    """The 28 fields of a line as lists of plain numbers."""
    fields = line.rstrip("\n").split("\t")
    if len(fields) != 40:
        raise UsageError(f"a Criteo line has 40 fields between tabs, got {len(fields)}: {line[:60]!r}")
    dense = [0.0 if text == "" else (float(text) - least) / span
             for text, (least, span) in zip(fields[1:14], _SCALES)]
    if python_hash:
        ids = [[hash(str(column) + text) % hash_dim] for column, text in zip(_COLUMNS, fields[14:])]
    else:
        spread = _SPREAD if hash_dim > 1 << 32 else 1
        ids = [[zlib.crc32(text.encode(), start) * spread % hash_dim] for start, text in zip(_STARTS, fields[14:])]
    return [dense, *ids, [int(fields[0])]]


def _paths(files):
    if files is None:
        return sorted(glob.glob(os.path.join(home.folder("ctr"), "*")))
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    paths = []
    for path in files:
        paths += sorted(glob.glob(os.path.join(path, "*"))) if os.path.isdir(path) else [path]
    if not paths:
        raise UsageError(f"ctr: no file in {files!r}")
    return paths


def _open_lines(path):
    with open(path) as file:
        yield from file


def _block_of_lines(rng):
    # What tells clicks from the rest is drawn from a fixed seed: every block follows the same law.
    law = np.random.default_rng(40)
    dense_shift = law.choice([-1.0, 1.0], 13) * law.uniform(0.2, 0.9, 13)
    id_shift = law.uniform(-0.5, 0.5, 26)

    clicked = rng.random(_BLOCK) < 0.3
    side = np.where(clicked, 0.5, -0.5)
    scaled = rng.gamma(1.5, 0.35, (_BLOCK, 13)) * np.exp(side[:, None] * dense_shift)
    # Powers of a uniform number: small values are frequent, large ones rare, a little more so for clicks or not.
    values = rng.random((_BLOCK, 26)) ** (2.0 * np.exp(side[:, None] * id_shift)) * _VALUES
    numbers = np.rint(scaled * CONTINUOUS_DIFF + CONTINUOUS_MIN).astype(int)
    missing = rng.random((_BLOCK, 39)) < 0.03
    columns = (clicked, numbers, values.astype(int), missing)
    return [_line(*row) for row in zip(*(column.tolist() for column in columns))]


def _line(clicked, numbers, values, missing):
    texts = [str(number) for number in numbers]
    # An odd multiplier spreads small numbers over all 8 hex digits without collisions in a column.
    texts += [f"{(value * 2654435761 + column * 40503) & 0xFFFFFFFF:08x}" for column, value in enumerate(values)]
    return "\t".join([str(int(clicked)), *("" if gone else text for gone, text in zip(missing, texts))]) + "\n"


if __name__ == "__main__":
    CriteoGenerator().run_from_stdin()
