"""``paddle.static.nn.sequence_lod``: layers over sequences of different lengths, by the original's module."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.sequence import (sequence_concat, sequence_conv, sequence_enumerate, sequence_expand,
                                               sequence_expand_as, sequence_first_step, sequence_last_step,
                                               sequence_pad, sequence_pool, sequence_reshape, sequence_reverse,
                                               sequence_scatter, sequence_slice, sequence_softmax, sequence_unpad)

__getattr__ = _missing_name("paddle.static.nn.sequence_lod", globals())
