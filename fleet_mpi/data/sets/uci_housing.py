"""Boston housing: 506 rows of 13 features and a price, the set of fit_a_line.

A sample is (13 features, 1 price), both float64; the first 80 % of the rows train, the rest test.
"""

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.errors import UsageError

URL = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
MD5 = "d4accdce7a25600298819f8e28e8d593"
feature_names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"]

_ROWS = 506
_PRICE_MEAN = 22.5
# The guides' fit_a_line stops at a batch loss below 10, which its small steps reach only if prices lie close enough.
_PRICE_SPREAD = 4.5


def train():
    """A reader over the first 80 % of the rows."""
    return _reader(0)


def test():
    """A reader over the last 20 % of the rows."""
    return _reader(1)


def predict_reader():
    """The features of one test row, as a tuple of one array (not a reader, as in the original)."""
    return (_data()[1][0, :-1],)


def fetch():
    """Say now whether real or synthetic data will be used."""
    _data()


def load_data(filename, feature_num=14, ratio=0.8):
    """Read a file of numbers, normalise all columns but the last, and cut it into (train, test)."""
    with open(filename) as file:
        words = file.read().split()
    try:
        numbers = np.array(words, dtype=np.float64)
    except ValueError as problem:
        raise UsageError(f"uci_housing: {filename} is to hold numbers only: {problem}") from None
    if numbers.size == 0 or numbers.size % feature_num:
        raise UsageError(f"uci_housing: {filename} is to hold rows of {feature_num} numbers, "
                         f"got {numbers.size} numbers")
    return _normalise_and_cut(numbers.reshape(-1, feature_num), ratio)


def _reader(part):
    rows = _data()[part]

    def read_rows():
        for row in rows:
            yield row[:-1], row[-1:]

    return read_rows


def _data():
    path = home.find(URL, "uci_housing", MD5)
    if path is not None:
        return load_data(path)
    notices.stand_in("uci_housing", f"{_ROWS} rows, a linear price with noise", home.folder("uci_housing"))
    return _normalise_and_cut(_synthetic_rows(), 0.8)


def _normalise_and_cut(rows, ratio):
    features = rows[:, :-1]
    span = features.max(axis=0) - features.min(axis=0)
    # A column that never changes says nothing; it becomes 0 instead of dividing by 0.
    scaled = (features - features.mean(axis=0)) / np.where(span == 0, 1.0, span)
    rows = np.column_stack([scaled, rows[:, -1]])
    cut = int(len(rows) * ratio)
    return rows[:cut], rows[cut:]


def _synthetic_rows():
    rng = np.random.default_rng(506)
    features = rng.random((_ROWS, 13)) ** rng.uniform(0.5, 3.0, 13) * rng.uniform(1.0, 100.0, 13)
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    price = scaled @ rng.normal(size=13) + rng.normal(scale=0.8, size=_ROWS)
    price = _PRICE_MEAN + _PRICE_SPREAD * (price - price.mean()) / price.std()
    return np.column_stack([features, price])
