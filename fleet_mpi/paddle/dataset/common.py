"""``paddle.dataset.common``: the folder of data files. The very module that reads them.

Scripts assign ``paddle.dataset.common.DATA_HOME``; that must reach what reads it.
"""

import sys

from fleet_mpi.data import home

sys.modules[__name__] = home
