"""``paddle.dataset.movielens``: ratings of films."""

from fleet_mpi.data.sets.movielens import (MovieInfo, UserInfo, age_table, fetch, get_movie_title_dict, max_job_id,
                                           max_movie_id, max_user_id, movie_categories, movie_info, test, train,
                                           user_info)
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.movielens", globals())
