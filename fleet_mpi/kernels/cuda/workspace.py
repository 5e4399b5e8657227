"""Memory that kernels need while they run, one piece for all of them.

Calls of one thread on one stream run one after the other on the device, so they can share: a piece as large as the
largest need is kept for each thread, device and stream. Contents last for one call only.
"""

import threading

import numpy as np

# Kernels cut their work so that they need no more, if a part of it can be that small. The columns of a 3x3 convolution
# over 32 images of 64 channels, 56 x 56, are 231 MB.
MOST_BYTES = 256 << 20

_kept = threading.local()


def workspace(xp, size_bytes):
    """The address of so many bytes, undefined; allocates where the piece kept is too small."""
    pieces = _kept.__dict__
    key = f"{xp.cuda.runtime.getDevice()} {xp.cuda.get_current_stream().ptr}"
    piece = pieces.get(key)
    if piece is None or piece.nbytes < size_bytes:
        piece = pieces[key] = None  # free the old piece first
        piece = pieces[key] = xp.empty(size_bytes, np.uint8)
    return piece.data.ptr
