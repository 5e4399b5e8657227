"""``paddle.text``: data sets of texts; imported when they are first used."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.text", globals(), {
    "datasets": "fleet_mpi.paddle.text.datasets",
    **dict.fromkeys(("Conll05st", "Imdb", "Imikolov", "Movielens", "UCIHousing", "WMT14", "WMT16"),
                    "fleet_mpi.paddle.text.datasets")},
    {"MovieReviews": "this set was dropped by 2.0 itself; Imdb has film reviews too"})
