"""``paddle.tensor.manipulation``: shapes and parts, with the argument lists of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.functional_tensor import (broadcast_to, cast, chunk, concat, crop, gather_nd, reshape,
                                                        reshape_, reverse, roll, scatter, scatter_, scatter_nd_add,
                                                        split,
                                                        squeeze, squeeze_, stack, strided_slice, transpose, unbind,
                                                        unique, unsqueeze, unsqueeze_, unstack)
from fleet_mpi.program.layers.manipulation import expand_as_v2 as expand_as
from fleet_mpi.program.layers.manipulation import expand_to as expand
from fleet_mpi.program.layers.manipulation import flatten_contiguous_range as flatten
from fleet_mpi.program.layers.manipulation import flip, shard_index, slice, tile
from fleet_mpi.program.layers.manipulation import gather_axis as gather
from fleet_mpi.program.layers.positions import scatter_nd

__getattr__ = _missing_name("paddle.tensor.manipulation", globals())
