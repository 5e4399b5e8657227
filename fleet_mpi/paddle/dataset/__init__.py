"""``paddle.dataset``: data sets from files under DATA_HOME, or stand-ins for them.

A script uses one or two of them; each is imported when it is first asked for.
"""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset", globals(), {
    name: f"fleet_mpi.paddle.dataset.{name}" for name in (
        "cifar", "common", "conll05", "flowers", "image", "imdb", "imikolov", "mnist", "movielens", "mq2007",
        "sentiment", "uci_housing", "voc2012", "wmt14", "wmt16")})
