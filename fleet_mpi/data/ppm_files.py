"""Reads the bytes of a PPM image file, the one format of colours that needs no library."""

import re

import numpy as np

from fleet_mpi.errors import UsageError

_HEADER = re.compile(rb"P6\s+(\d+)\s+(\d+)\s+255\s")


def ppm_array(content):
    """The pixels as an array [height, width, 3] of red, green and blue."""
    header = _HEADER.match(content)
    width, height = (int(text) for text in header.groups()) if header else (0, 0)
    if not header or len(content) != header.end() + width * height * 3:
        raise UsageError(f"expected a PPM image with one byte per colour, got {content[:20]!r}... of {len(content)} "
                         f"bytes")
    return np.frombuffer(content, np.uint8, offset=header.end()).reshape(height, width, 3)
