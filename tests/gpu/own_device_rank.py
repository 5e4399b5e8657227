"""A rank that computes on the device that the guides' line names: ``own_device_rank.py FOLDER``.

Writes to the folder, in a file of its number, what says which device is its own, and where its parameter lies.
"""

import json
import os
import sys
from pathlib import Path

from fleet_mpi import fluid
from fleet_mpi.paddle.distributed import ParallelEnv, fleet


def main(folder):
    """Make a parameter on this rank's device, and tell."""
    fleet.init(is_collective=True)
    place = fluid.CUDAPlace(int(os.environ.get("FLAGS_selected_gpus", 0)))
    weight = fluid.layers.create_parameter([2], "float32", name="weight")
    fluid.Executor(place).run(fluid.default_startup_program())
    told = {"flag": os.environ.get("FLAGS_selected_gpus"), "device_id": ParallelEnv().device_id,
            "cuda_places": [one.device_id for one in fluid.cuda_places()],
            "lies_on": fluid.global_scope().array(weight.name).device.id}
    Path(folder, str(fleet.worker_index())).write_text(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
