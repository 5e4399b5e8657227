"""``paddle.dataset``: data sets from files under DATA_HOME, or stand-ins for them."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.dataset import (cifar, common, conll05, flowers, imdb, imikolov, mnist, movielens, uci_housing,
                                      wmt14, wmt16)

# Not imported with the rest: few scripts use them.
__getattr__ = _missing_name("paddle.dataset", globals(), {
    name: f"fleet_mpi.paddle.dataset.{name}" for name in ("image", "mq2007", "sentiment", "voc2012")})
