"""``paddle.text.datasets``: texts by number, from files or as stand-ins."""

from fleet_mpi.data.sets_by_number.ratings import Movielens
from fleet_mpi.data.sets_by_number.roles import Conll05st
from fleet_mpi.data.sets_by_number.texts import Imdb, Imikolov, UCIHousing
from fleet_mpi.data.sets_by_number.translations import WMT14, WMT16
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.text.datasets", globals())
