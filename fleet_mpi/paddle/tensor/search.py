"""``paddle.tensor.search``: sorting and finding."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.functional_tensor import argmax, argmin, argsort, index_select, nonzero, sort
from fleet_mpi.program.layers.manipulation import topk_along as topk
from fleet_mpi.program.layers.manipulation import where
from fleet_mpi.program.layers.positions import index_sample, masked_select

__getattr__ = _missing_name("paddle.tensor.search", globals())
