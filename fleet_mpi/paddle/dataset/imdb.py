"""``paddle.dataset.imdb``: film reviews, good or bad."""

from fleet_mpi.data.sets.imdb import build_dict, fetch, reader_creator, test, tokenize, train, word_dict
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.imdb", globals())
