"""The example wide_and_deep with its workers on GPUs and its servers on hosts; the example has no option for it."""

import sys

from fleet_mpi import paddle
from fleet_mpi.examples import wide_and_deep

paddle.CPUPlace = paddle.CUDAPlace
sys.exit(wide_and_deep.main(sys.argv[1:]))
