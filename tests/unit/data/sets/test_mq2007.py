"""Documents of queries: the text files in every format, and a stand-in that can be ranked."""

import numpy as np
import pytest

from fleet_mpi.data.sets import mq2007
from fleet_mpi.errors import EnvironmentProblem, UsageError


def line(relevance, query, value):
    return f"{relevance} qid:{query} " + " ".join(f"{n}:{value}" for n in range(1, 47)) + " #docid = GX1\n"


@pytest.fixture(params=["", "MQ2007", "MQ2007/MQ2007"])
def files(data_home, request):
    folder = data_home / "MQ2007" / request.param / "Fold1"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text(line(0, 10, 0.1) + line(2, 10, 0.2) + line(1, 10, 0.3) + line(0, 11, 0.4)
                                      + line(1, 12, 0.5))
    (folder / "test.txt").write_text(line(1, 20, 0.6))


def first_feature(sample):
    return [float(np.ravel(one)[0]) for one in sample]


def test_pairs_have_the_more_relevant_document_first(files):
    assert [first_feature(one) for one in mq2007.train(format="pairwise")] == [[1, 0.2, 0.3], [1, 0.2, 0.1],
                                                                               [1, 0.3, 0.1]]


def test_lists_hold_all_documents_of_a_query_that_has_a_relevant_one(files):
    (labels, features), (one, _) = mq2007.train("listwise")
    assert labels.tolist() == [[2], [1], [0]] and features.shape == (3, 46) and one.tolist() == [[1]]


def test_points_and_plain_text_are_all_documents_where_the_original_gives_the_first_of_a_query(files):
    assert [first_feature(one) for one in mq2007.train("pointwise")] == [[2, 0.2], [1, 0.3], [0, 0.1], [1, 0.5]]
    assert [one[0] for one in mq2007.train("plain_txt")] == [10, 10, 10, 12]
    assert [first_feature(one) for one in mq2007.test("pointwise")] == [[1, 0.6]]


def test_what_is_no_line_of_the_set_is_refused_with_its_place(files, data_home):
    next(data_home.rglob("test.txt")).write_text("1 qid:3 1:0.5\n")
    with pytest.raises(UsageError, match="test.txt, line 1: expected a relevance, qid:N and 46 features"):
        list(mq2007.test())
    with pytest.raises(UsageError, match="format is one of plain_txt, pointwise, pairwise, listwise"):
        list(mq2007.train("pairs"))


def test_an_archive_that_is_not_unpacked_is_said(data_home):
    (data_home / "MQ2007").mkdir()
    (data_home / "MQ2007" / mq2007.URL.split("/")[-1]).write_bytes(b"Rar!")
    with pytest.raises(EnvironmentProblem, match="unrar x"):
        mq2007.fetch()


def test_documents_of_two_queries_make_no_list():
    with pytest.raises(UsageError, match="documents of query 1, got one of 2"):
        mq2007.QueryList([mq2007.Query(1, 0), mq2007.Query(2, 0)])


def test_the_stand_in_can_be_ranked_by_what_its_pairs_tell(data_home, capfd):
    better, worse = (np.array(one) for one in zip(*[sample[1:] for sample in mq2007.train()]))
    assert better.shape[1] == 46 and len(better) > 2000
    direction = (better - worse).mean(0)
    right = np.mean([(left - right) @ direction > 0 for _, left, right in mq2007.test()])
    assert right > 0.85
    assert {int(label) for label, _ in mq2007.test("pointwise")} == {0, 1, 2}
    assert len(capfd.readouterr().err.splitlines()) == 1
