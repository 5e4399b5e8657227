"""``paddle.dataset``: data sets from files under DATA_HOME, or stand-ins for them."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.dataset import (cifar, common, conll05, flowers, imdb, imikolov, mnist, movielens, uci_housing,
                                      wmt14, wmt16)

__getattr__ = _missing_name("paddle.dataset", globals())
