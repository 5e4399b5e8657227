"""A data folder of the test's own, a source that tells when it is left, and MATLAB files written by hand."""

import struct
import threading
import types

import numpy as np
import pytest

from fleet_mpi import settings


@pytest.fixture
def data_home(tmp_path):
    """An empty DATA_HOME; no seed is set."""
    with settings.override(DATA_HOME=str(tmp_path), FLEET_MPI_SEED=0):
        yield tmp_path


@pytest.fixture
def endless():
    """A source without an end; ``closed`` is set once an iteration over it is closed."""
    def source():
        try:
            while True:
                yield 0
        finally:
            source.closed.set()

    source.closed = threading.Event()
    return source


def _element(order, kind, content):
    if len(content) <= 4:
        return struct.pack(order + "I", len(content) << 16 | kind) + content.ljust(4, b"\0")
    return struct.pack(order + "II", kind, len(content)) + content + b"\0" * (-len(content) % 8)


def _matrix(order, name, values, stored="u1", kind=2, array_class=9):
    body = _element(order, 6, struct.pack(order + "II", array_class, 0))
    body += _element(order, 5, np.array(values.shape, order + "i4").tobytes())
    body += _element(order, 1, name.encode())
    body += _element(order, kind, values.astype(order + stored).tobytes(order="F"))
    return _element(order, 14, body)


def _write(path, elements, order="<"):
    path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(order + "HH", 0x0100, 0x4D49) + b"".join(elements))


@pytest.fixture
def matlab():
    """``matrix(order, name, values, ...)`` makes an element, ``write(path, elements, order)`` a file."""
    return types.SimpleNamespace(matrix=_matrix, write=_write)
