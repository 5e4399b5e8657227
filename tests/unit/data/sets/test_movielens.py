"""Ratings: the archive's tables, and a stand-in in which age and category matter."""

import zipfile
from collections import defaultdict

import numpy as np
import pytest

from fleet_mpi.data.sets import movielens
from fleet_mpi.errors import UsageError


def write_archive(data_home, ratings="1::20::5::978\n2::10::3::978\n1::10::1::978\n"):
    (data_home / "movielens").mkdir()
    with zipfile.ZipFile(data_home / "movielens" / "ml-1m.zip", "w") as archive:
        archive.writestr("ml-1m/movies.dat", "10::Caf\xe9 Story (1995)::Comedy|Drama\n20::The Story (1990)::Action\n"
                         .encode("latin-1"))
        archive.writestr("ml-1m/users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n")
        archive.writestr("ml-1m/ratings.dat", ratings)


def test_samples_join_user_film_and_rating(data_home):
    write_archive(data_home)
    samples = list(movielens.train(test_ratio=0.0)())
    assert samples == [[1, 1, 0, 10, 20, [0], [2, 1], [5.0]],
                       [2, 0, 6, 16, 10, [1, 2], [0, 1], [1.0]],
                       [1, 1, 0, 10, 10, [1, 2], [0, 1], [-3.0]]]
    assert list(movielens.test(test_ratio=0.0)()) == []


def test_the_tables_are_those_of_the_files(data_home):
    write_archive(data_home)
    assert (movielens.max_user_id(), movielens.max_movie_id(), movielens.max_job_id()) == (2, 20, 16)
    assert movielens.movie_categories() == {"Action": 0, "Comedy": 1, "Drama": 2}
    assert movielens.get_movie_title_dict() == {"café": 0, "story": 1, "the": 2}
    assert movielens.user_info()[2].is_male and movielens.age_table[movielens.user_info()[2].age] == 56
    assert movielens.movie_info()[20].title.strip() == "The Story"


def test_a_damaged_line_is_named(data_home):
    write_archive(data_home, ratings="1::20::5::978\n1::20\n")
    with pytest.raises(UsageError, match="line 2 of ratings.dat"):
        list(movielens.train(test_ratio=0.0)())


def test_train_and_test_share_out_all_ratings_of_the_stand_in(data_home, capfd):
    train, test = list(movielens.train()()), list(movielens.test()())
    assert len(train) + len(test) == 12000 and 900 < len(test) < 1500
    assert len(movielens.movie_categories()) == 18
    assert {rating for *_, (rating,) in train} == {-3.0, -1.0, 1.0, 3.0, 5.0}
    captured = capfd.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1


def test_age_and_film_foretell_the_stand_ins_ratings(data_home):
    seen = defaultdict(list)
    train = list(movielens.train()())
    for sample in train:
        seen[sample[2], sample[4]].append(sample[-1][0])
    mean = np.mean([sample[-1][0] for sample in train])
    test = list(movielens.test()())
    errors = [sample[-1][0] - np.mean(seen.get((sample[2], sample[4]), mean)) for sample in test]
    spread = np.var([sample[-1][0] for sample in test])
    assert np.mean(np.square(errors)) < 0.5 * spread


def test_the_ids_of_the_stand_in_are_as_large_as_the_originals(data_home):
    assert (movielens.max_user_id(), movielens.max_movie_id(), movielens.max_job_id()) == (6040, 3952, 20)
    assert (len(movielens.movie_info()), len(movielens.get_movie_title_dict())) == (3883, 5174)
    samples = list(movielens.train(test_ratio=0.0)())
    assert max(sample[0] for sample in samples) == 6040 and max(sample[4] for sample in samples) == 3952
