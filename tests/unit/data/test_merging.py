"""fleet_mpi/data/line_keys.py, merging.py and page_views.py: samples that belong together, by id and by page view."""

from types import SimpleNamespace

import numpy as np
import pytest

from fleet_mpi.data.dataset import InMemoryDataset
from fleet_mpi.data.page_views import rank_matrix
from fleet_mpi.errors import UsageError


def variable(name, dtype="int64", lod_level=0):
    return SimpleNamespace(name=name, shape=(-1, 1), dtype=dtype, lod_level=lod_level)


CLICK, DENSE = variable("click"), variable("dense", "float32")
QUERY, ITEM = variable("query", lod_level=1), variable("item", lod_level=1)
MATCH = "0de", "0df", "001"  # 222, 223 and another kind


def loaded(tmp_path, text, *variables, **settings):
    (tmp_path / "a").write_text(text)
    dataset = InMemoryDataset()
    dataset.set_use_var(list(variables))
    dataset.set_filelist([str(tmp_path / "a")])
    dataset.set_batch_size(100)
    for name, value in settings.items():
        getattr(dataset, name)(value)
    dataset.load_into_memory()
    return dataset


def whole(dataset):
    """All samples as {click: (dense, query, item)}."""
    ((feed),) = dataset.batches()
    ends = {name: np.cumsum([0, *feed[name][1]]) for name in ("query", "item")}
    return {int(click): (float(feed["dense"][n, 0]), *(feed[name][0][ends[name][n]:ends[name][n + 1], 0].tolist()
                                                      for name in ("query", "item")))
            for n, click in enumerate(feed["click"][:, 0])}


LINES = ("1 a 1 1 1 0.5 2 7 8 1 0\n"     # of id a: query here, item below
         "1 b 1 2 1 0.5 1 7 1 0\n"       # of id b: alone
         "1 a 1 0 1 0 1 0 2 9 0\n"
         "1 c 1 3 1 0.5 1 7 1 0\n"       # of id c: both have a query
         "1 c 1 3 1 2 1 8 1 0\n"
         "1 d 1 4 1 3 1 0 1 0\n"         # of id d: nothing but padding, the last dense value counts
         "1 d 1 5 1 4 1 0 1 0\n")


def test_samples_of_one_line_id_become_one(tmp_path, capfd):
    dataset = loaded(tmp_path, LINES, CLICK, DENSE, QUERY, ITEM, set_merge_by_lineid=2)
    assert dataset.get_memory_data_size() == 7
    dataset.global_shuffle()
    assert whole(dataset) == {1: (0.5, [7, 8], [9]), 5: (4.0, [0], [0])}
    assert "3 of 7 samples are dropped" in capfd.readouterr().err


def test_any_number_of_samples_may_be_merged(tmp_path):
    dataset = loaded(tmp_path, LINES, CLICK, DENSE, QUERY, ITEM, set_merge_by_lineid=0)
    dataset.global_shuffle()
    assert sorted(whole(dataset)) == [1, 2, 5]


def test_samples_to_be_merged_meet_on_one_worker(tmp_path):
    half = loaded(tmp_path, LINES, CLICK, DENSE, QUERY, ITEM, set_merge_by_lineid=2)
    owners = half._new_owners(half._loaded, 3)
    ids = [line.split()[1] for line in LINES.splitlines()]
    assert set(owners) <= {0, 1, 2} and len(dict(zip(ids, owners))) == len(set(zip(ids, owners)))


def log_key(search, match, rank):
    return f"{'0' * 11}{match}{rank:02x}{search:016x}"


VIEWS = "".join(f"1 {log_key(search, match, rank)} 1 {click}\n" for search, match, rank, click in [
    (2 ** 63 + 5, MATCH[0], 1, 10), (7, MATCH[0], 2, 20), (2 ** 63 + 5, MATCH[1], 2, 11), (7, MATCH[2], 1, 21),
    (2 ** 63 + 5, MATCH[0], 9, 12), (8, MATCH[0], 1, 30)])


def views(tmp_path, **settings):
    return loaded(tmp_path, VIEWS, CLICK, set_parse_logkey=True, set_enable_pv_merge=True, set_rank_offset="offsets",
                  **settings)


def test_batches_hold_whole_page_views_in_random_order(tmp_path):
    dataset = views(tmp_path, set_pv_batch_size=1)
    dataset.preprocess_instance()
    assert dataset.get_pv_data_size() == 3
    feeds = {tuple(feed["click"][:, 0].tolist()): feed["offsets"].tolist() for feed in dataset.batches()}
    assert feeds == {
        (10, 11, 12): [[1, 1, 0, 2, 1, -1, -1], [2, 1, 0, 2, 1, -1, -1], [-1] * 7],
        (20, 21): [[2, -1, -1, 2, 0, -1, -1], [-1] * 7],
        (30,): [[1, 1, 0, -1, -1, -1, -1]]}
    orders = set()
    for _ in range(20):
        dataset.preprocess_instance()
        orders.add(tuple(feed["click"][0, 0] for feed in dataset.batches()))
    assert len(orders) > 2


def test_rows_count_through_the_views_of_a_batch():
    matrix = rank_matrix(np.array([222, 223, 222]), np.array([1, 1, 3]), np.array([1, 2]))
    assert matrix.tolist() == [[1, 1, 0, -1, -1, -1, -1], [1, 1, 1, -1, -1, 3, 2], [3, 1, 1, -1, -1, 3, 2]]
    assert matrix.dtype == np.int32


def test_phases_choose_between_views_and_samples(tmp_path):
    dataset = views(tmp_path, set_pv_batch_size=2)
    with pytest.raises(UsageError, match="preprocess_instance"):
        list(dataset.batches())
    dataset.preprocess_instance()
    assert len(list(dataset.batches())) == 2
    dataset.set_current_phase(0)
    (feed,) = dataset.batches()
    assert list(feed) == ["click"] and len(feed["click"]) == 6
    dataset.postprocess_instance()
    assert dataset.get_pv_data_size() == 0 and dataset.get_memory_data_size() == 6


def test_without_searches_every_sample_is_a_view(tmp_path):
    dataset = views(tmp_path, set_merge_by_sid=False, set_pv_batch_size=4)
    dataset.preprocess_instance()
    assert [len(feed["click"]) for feed in dataset.batches()] == [4, 2]


def test_what_is_no_log_key_or_was_not_parsed_is_said(tmp_path):
    with pytest.raises(UsageError, match="line 1.*'zz'"):
        loaded(tmp_path, "1 zz 1 5\n", CLICK, set_parse_logkey=True)
    dataset = loaded(tmp_path, "1 5\n", CLICK, set_enable_pv_merge=True)
    with pytest.raises(UsageError, match="set_parse_logkey"):
        dataset.preprocess_instance()
