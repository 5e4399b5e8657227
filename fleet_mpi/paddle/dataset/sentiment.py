"""``paddle.dataset.sentiment``: film reviews, bad or good."""

from fleet_mpi.data.sets.sentiment import (NUM_TOTAL_INSTANCES, NUM_TRAINING_INSTANCES, fetch, get_word_dict,
                                           load_sentiment_data, test, train)
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.sentiment", globals())
