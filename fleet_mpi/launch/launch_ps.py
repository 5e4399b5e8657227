"""``python -m paddle.distributed.launch_ps`` of 1.x: the launcher; two servers and two workers where none are said."""

import sys

from fleet_mpi.launch import main

if __name__ == "__main__":
    sys.exit(main(unsaid=(2, 2), log_dir="logs"))
