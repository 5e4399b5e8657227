"""Film ratings: a sample is [user, gender, age, job, film, [categories], [title words], [rating]].

File: ml-1m.zip under ``DATA_HOME/movielens``. Ratings 1 .. 5 become -3 .. 5 (twice the stars less 5).
In the stand-in a user's age and a film's categories decide most of a rating.
"""

import re
import zipfile
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.data.sets.words import made_up_words
from fleet_mpi.errors import UsageError

URL = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
MD5 = "c4d9eecfca2ab87c1945afe126590906"
age_table = [1, 18, 25, 35, 45, 50, 56]

# The stand-in's tables are as large as the original's, for scripts that have its ids in them; ratings are of few, so
# that they can be learnt from.
_USERS, _LAST_FILM, _TITLE_WORDS = 6040, 3952, 5174
_RATING_USERS, _RATED_FILMS, _RATINGS = 300, 200, 12000
_CATEGORIES = ["Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
               "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller",
               "War", "Western"]


class MovieInfo:
    """One film: id, category names, title without its year."""

    def __init__(self, index, categories, title):
        self.index = int(index)
        self.categories = categories
        self.title = title

    def value(self):
        """The film's part of a sample: [id, category ids, title word ids]."""
        tables = _tables()
        return [self.index, [tables.categories[name] for name in self.categories],
                [tables.title_words[word.lower()] for word in self.title.split()]]

    def __repr__(self):
        return f"MovieInfo(index={self.index}, title={self.title!r}, categories={self.categories})"


class UserInfo:
    """One user: id, gender, place of the age in ``age_table``, job."""

    def __init__(self, index, gender, age, job_id):
        self.index = int(index)
        self.is_male = gender == "M"
        self.age = age_table.index(int(age))
        self.job_id = int(job_id)

    def value(self):
        """The user's part of a sample: [id, 0 for male or 1 for female, age, job]."""
        return [self.index, 0 if self.is_male else 1, self.age, self.job_id]

    def __repr__(self):
        return (f"UserInfo(index={self.index}, gender={'M' if self.is_male else 'F'}, "
                f"age={age_table[self.age]}, job_id={self.job_id})")


def train(rand_seed=0, test_ratio=0.1):
    """A reader over the ratings that ``test`` with the same arguments leaves out."""
    return _reader(rand_seed, test_ratio, False)


def test(rand_seed=0, test_ratio=0.1):
    """A reader over about ``test_ratio`` of the ratings, chosen by ``rand_seed``."""
    return _reader(rand_seed, test_ratio, True)


def get_movie_title_dict():
    """Title word (lower case) to id, in alphabetical order: the same in every process."""
    return _tables().title_words


def movie_categories():
    """Category name to id, in alphabetical order: the same in every process."""
    return _tables().categories


def user_info():
    """User id to ``UserInfo``."""
    return _tables().users


def movie_info():
    """Film id to ``MovieInfo``."""
    return _tables().films


def max_user_id():
    """The largest user id; ids start at 1, so an embedding needs one row more."""
    return max(_tables().users)


def max_movie_id():
    """The largest film id; ids start at 1, so an embedding needs one row more."""
    return max(_tables().films)


def max_job_id():
    """The largest job number; jobs start at 0."""
    return max(user.job_id for user in _tables().users.values())


def fetch():
    """Say now whether real or synthetic ratings will be used."""
    _tables()


class _Tables(NamedTuple):
    users: Any
    films: Any
    title_words: Any
    categories: Any


def _tables():
    return _tables_of(_source())


# One entry per source (a path, or None for the stand-in): scripts ask for these tables again and again.
@lru_cache(maxsize=4)
def _tables_of(source):
    users = {}
    for number, gender, age, job, _ in _fields(source, "users.dat", 5):
        users[int(number)] = UserInfo(number, gender, age, job)
    films = {}
    for number, title, categories in _fields(source, "movies.dat", 3):
        without_year = re.sub(r"\(\d+\)$", "", title)
        films[int(number)] = MovieInfo(number, categories.split("|"), without_year)
    title_words = {word.lower() for film in films.values() for word in film.title.split()}
    categories = {name for film in films.values() for name in film.categories}
    return _Tables(users, films, _numbered(title_words), _numbered(categories))


def _numbered(names):
    return {name: number for number, name in enumerate(sorted(names))}


def _reader(rand_seed, test_ratio, is_test):
    source = _source()

    def read_ratings():
        tables = _tables_of(source)
        # The original's generator, so that real files are cut into the same two parts.
        rng = np.random.RandomState(rand_seed)
        for user, film, stars, _ in _fields(source, "ratings.dat", 4):
            if (rng.random_sample() < test_ratio) == is_test:
                rating = float(stars) * 2 - 5.0
                yield tables.users[int(user)].value() + tables.films[int(film)].value() + [[rating]]

    return read_ratings


def _source():
    path = home.find(URL, "movielens", MD5)
    if path is None:
        notices.stand_in("movielens", f"{_RATINGS} ratings of {_RATED_FILMS} made-up films by {_RATING_USERS} users",
                         home.folder("movielens"))
    return path


def _fields(source, name, count):
    lines = _synthetic_lines(name) if source is None else _archived_lines(source, name)
    for number, line in enumerate(lines, 1):
        fields = line.strip().split("::")
        if len(fields) != count:
            raise UsageError(f"movielens: line {number} of {name} in {source}: expected {count} fields "
                             f"between '::', got {line!r}")
        yield fields


def _archived_lines(path, name):
    with zipfile.ZipFile(path) as archive, archive.open(f"ml-1m/{name}") as file:
        for line in file:
            yield line.decode("latin-1")


def _synthetic_lines(name):
    return {"users.dat": _synthetic_users, "movies.dat": _synthetic_films, "ratings.dat": _synthetic_ratings}[name]()


def _synthetic_users():
    rng = np.random.default_rng(1)
    genders, ages, jobs = (rng.integers(0, count, _USERS) for count in (2, len(age_table), 21))
    for user in range(_USERS):
        yield f"{user + 1}::{'MF'[genders[user]]}::{age_table[ages[user]]}::{jobs[user]}::00000"


def _film_ids():
    """1 .. 3952 with gaps, as many films as the original has."""
    return [film for film in range(1, _LAST_FILM + 1) if film % 57]


def _synthetic_films():
    rng = np.random.default_rng(2)
    words = [word.capitalize() for word in made_up_words(_TITLE_WORDS, 9)]
    categories = rng.integers(0, len(_CATEGORIES), (_LAST_FILM, 2))
    for place, film in enumerate(_film_ids()):
        # Every word and every category comes at least once.
        title = " ".join(words[number % len(words)] for number in range(2 * place, 2 * place + 2 + place % 2))
        own = {_CATEGORIES[place % len(_CATEGORIES)], *(_CATEGORIES[one] for one in categories[place][:place % 3])}
        yield f"{film}::{title} ({1970 + film % 50})::{'|'.join(sorted(own))}"


def _synthetic_ratings():
    tables = _tables_of(None)
    rng = np.random.default_rng(3)
    taste = rng.normal(scale=1.2, size=(len(age_table), len(tables.categories)))
    quality = rng.normal(scale=0.6, size=_RATED_FILMS)
    ids = _film_ids()
    films = [ids[place] for place in np.linspace(0, len(ids) - 1, _RATED_FILMS).astype(int)]
    users = np.linspace(1, _USERS, _RATING_USERS).astype(int).tolist()
    for who, which in rng.integers(0, [_RATING_USERS, _RATED_FILMS], (_RATINGS, 2)).tolist():
        categories = [tables.categories[name] for name in tables.films[films[which]].categories]
        liked = taste[tables.users[users[who]].age, categories].mean()
        stars = int(np.clip(np.rint(3.4 + liked + quality[which] + rng.normal(scale=0.4)), 1, 5))
        yield f"{users[who]}::{films[which]}::{stars}::978300000"
