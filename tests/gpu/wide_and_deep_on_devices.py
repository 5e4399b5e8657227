"""The example wide_and_deep with its workers on GPUs and its servers on hosts; the example has no option for it.

On the emulation a process tells in the end how many kernels it has launched.
"""

import os
import sys

from fleet_mpi import paddle
from fleet_mpi.examples import wide_and_deep
from tests.gpu_emulation import counters

paddle.CPUPlace = paddle.CUDAPlace
code = wide_and_deep.main(sys.argv[1:])
if "FLEET_EMULATION" in os.environ:
    print("launches:", counters.totals()["launches"], flush=True)
sys.exit(code)
