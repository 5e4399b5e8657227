"""Documents found for queries (LETOR's MQ2007): 46 features of each, and how relevant it is, from 0 to 2.

Files: ``Fold1/train.txt`` and ``Fold1/test.txt`` of the archive, unpacked under ``DATA_HOME/MQ2007``. In the stand-in a
weighted sum of some of the features decides. Queries without a relevant document are left out, as in the original.
"""

import os

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.errors import EnvironmentProblem, UsageError

URL = "http://www.bigdatalab.ac.cn/benchmark/upload/download_source/7b6dbbe2-842c-11e4-a536-bcaec51b9163_MQ2007.rar"
MD5 = "7be1640ae95c6408dab0ae7207bdc706"
FEATURES = 46

_TRAIN, _TEST = "MQ2007/MQ2007/Fold1/train.txt", "MQ2007/MQ2007/Fold1/test.txt"
_SYNTHETIC_QUERIES = {_TRAIN: 200, _TEST: 60}


class Query:
    """A document found for a query."""

    def __init__(self, query_id=-1, relevance_score=-1, feature_vector=None, description=""):
        self.query_id, self.relevance_score, self.description = query_id, relevance_score, description
        self.feature_vector = [] if feature_vector is None else feature_vector

    def __str__(self):
        return " ".join(map(str, (self.relevance_score, self.query_id, *self.feature_vector)))


class QueryList:
    """All documents found for one query."""

    def __init__(self, querylist=None):
        self.query_id, self.querylist = -1, []
        for one in querylist or ():
            self._add_query(one)

    def _add_query(self, query):
        if self.querylist and query.query_id != self.query_id:
            raise UsageError(f"QueryList: expected documents of query {self.query_id}, got one of {query.query_id}")
        self.query_id = query.query_id
        self.querylist.append(query)

    def _correct_ranking_(self):
        self.querylist.sort(key=lambda one: -one.relevance_score)

    def __iter__(self):
        return iter(self.querylist)

    def __len__(self):
        return len(self.querylist)

    def __getitem__(self, i):
        return self.querylist[i]


def gen_plain_txt(querylist):
    """Yield (query's id, relevance, features) of every document, the most relevant first."""
    for one in _ranked(querylist):
        yield one.query_id, one.relevance_score, np.array(one.feature_vector)


def gen_point(querylist):
    """Yield (relevance, features) of every document, the most relevant first."""
    for one in _ranked(querylist):
        yield one.relevance_score, np.array(one.feature_vector)


def gen_pair(querylist, partial_order="full"):
    """Yield ([1], features of a document, features of a less relevant one) for all such pairs of a query."""
    ranked = _ranked(querylist)
    for place, better in enumerate(ranked):
        for worse in ranked[place + 1:]:
            if better.relevance_score > worse.relevance_score:
                yield np.array([1]), np.array(better.feature_vector), np.array(worse.feature_vector)


def gen_list(querylist):
    """Yield once (relevance [n, 1], features [n, 46]) of all documents, the most relevant first."""
    ranked = _ranked(querylist)
    yield np.array([[one.relevance_score] for one in ranked]), np.array([one.feature_vector for one in ranked])


_FORMATS = {"plain_txt": gen_plain_txt, "pointwise": gen_point, "pairwise": gen_pair, "listwise": gen_list}


def query_filter(querylists):
    """The queries with a relevant document."""
    return [one for one in querylists if any(document.relevance_score for document in one)]


def load_from_text(filepath, shuffle=False, fill_missing=-1):
    """All queries of a file of the set, each a QueryList."""
    lists = []
    for number, line in enumerate(_lines(filepath), 1):
        document = _parsed(line, f"{filepath}, line {number}")
        if not lists or lists[-1].query_id != document.query_id:
            lists.append(QueryList())
        lists[-1]._add_query(document)
    return lists


def train(format="pairwise", shuffle=False, fill_missing=-1, filepath=_TRAIN):
    """Iterate over the samples for training: "pairwise", "listwise", "pointwise" or "plain_txt"; itself the reader.

    Of the last two the original gives only the first document of a query, against its description: here all come.
    """
    if format not in _FORMATS:
        raise UsageError(f"mq2007: format is one of {', '.join(_FORMATS)}, got {format!r}")
    for one in query_filter(load_from_text(filepath, shuffle, fill_missing)):
        yield from _FORMATS[format](one)


def test(format="pairwise", shuffle=False, fill_missing=-1):
    """As ``train``, over the samples for testing."""
    return train(format, shuffle, fill_missing, _TEST)


def fetch():
    """Say now whether real or synthetic queries will be used."""
    _path(_TRAIN)


def _ranked(querylist):
    querylist = querylist if isinstance(querylist, QueryList) else QueryList(querylist)
    querylist._correct_ranking_()
    return list(querylist)


def _path(filepath):
    """The path of a file, whichever of the archive's folders it was unpacked without; None for the stand-in."""
    parts = filepath.split("/")
    for start in range(len(parts)):
        path = os.path.join(home.folder("MQ2007"), *parts[start:])
        if os.path.isfile(path):
            return path
    if home.find(URL, "MQ2007", MD5) is not None:
        raise EnvironmentProblem(f"mq2007: the archive is in {home.folder('MQ2007')}, but Python cannot unpack it: run "
                                 f"`unrar x` (or `7z x`) there once, so that there is Fold1/train.txt")
    notices.stand_in("mq2007", f"documents with {FEATURES} features, some of which make them relevant",
                     home.folder("MQ2007"))
    return None


def _lines(filepath):
    path = _path(filepath)
    if path is None:
        yield from _synthetic_lines(filepath)
        return
    with open(path) as file:
        yield from file


def _parsed(line, where):
    """``2 qid:10 1:0.03 ... 46:0.5 # a remark``."""
    content, _, remark = line.partition("#")
    relevance, query, *features = content.split() or ["", ""]
    if len(features) != FEATURES or not query.startswith("qid:"):
        raise UsageError(f"mq2007: {where}: expected a relevance, qid:N and {FEATURES} features, got "
                         f"{line.strip()!r:.80}")
    return Query(int(query[4:]), int(relevance), [float(one.partition(":")[2]) for one in features], remark.strip())


def _synthetic_lines(filepath):
    rng = np.random.default_rng(list(_SYNTHETIC_QUERIES).index(filepath))
    weights = np.random.default_rng(46).normal(size=FEATURES) * (np.arange(FEATURES) % 3 == 0)
    for query in range(1, _SYNTHETIC_QUERIES[filepath] + 1):
        documents = rng.random((rng.integers(6, 17), FEATURES))
        scores = (documents - 0.5) @ weights + rng.normal(scale=0.2, size=len(documents))
        for features, relevance in zip(documents, np.digitize(scores, [0.5, 1.5])):
            words = " ".join(f"{number}:{value:.6f}" for number, value in enumerate(features, 1))
            yield f"{relevance} qid:{query} {words} #docid = made-up"
