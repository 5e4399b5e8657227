"""``python -m fleet_mpi.launch``."""

import sys

from fleet_mpi.launch import main

sys.exit(main())
