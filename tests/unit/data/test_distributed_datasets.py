"""The 2.x names of the datasets."""

from types import SimpleNamespace

import pytest

from fleet_mpi.data.distributed_datasets import InMemoryDataset, QueueDataset
from fleet_mpi.errors import NotBuilt, UsageError

NUMBER = SimpleNamespace(name="number", shape=(-1, 1), dtype="int64", lod_level=0)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a"
    path.write_text("".join(f"1 {n}\n" for n in range(5)))
    return str(path)


@pytest.mark.parametrize("kind", [QueueDataset, InMemoryDataset])
def test_init_takes_all_settings_by_keyword(kind, file):
    dataset = kind()
    dataset.init(batch_size=2, thread_num=2, use_var=[NUMBER], pipe_command="grep -v 3", input_type=1,
                 fs_name="hdfs://x", fs_ugi="me,pw", download_cmd="cat")
    dataset.set_filelist([file])
    if kind is InMemoryDataset:
        dataset.load_into_memory()
    assert [feed["number"][:, 0].tolist() for feed in dataset.batches()] == [[0, 1], [2, 4]]
    assert dataset.hdfs_config == ("hdfs://x", "me,pw") and dataset.input_type == 1


@pytest.mark.parametrize("kind", [QueueDataset, InMemoryDataset])
def test_the_setters_with_underscores_do_the_same(kind, file):
    dataset = kind()
    dataset._set_batch_size(3)
    dataset._set_thread(1)
    dataset._set_use_var([NUMBER])
    dataset._set_pipe_command("cat")
    dataset._set_input_type(0)
    dataset._set_hdfs_config("", "")
    dataset._set_download_cmd("cat")
    dataset.set_filelist([file])
    if kind is InMemoryDataset:
        dataset.load_into_memory()
    assert [len(feed["number"]) for feed in dataset.batches()] == [3, 2]
    assert "number" in dataset._desc() and dataset.dataset is dataset


def test_settings_can_be_changed_later_without_touching_the_others(file):
    dataset = InMemoryDataset()
    dataset.init(batch_size=2, use_var=[NUMBER], queue_num=3, data_feed_type="MultiSlotInMemoryDataFeed")
    dataset.update_settings(batch_size=4, fea_eval=True, candidate_size=10, merge_size=-1)
    dataset.set_filelist([file])
    dataset.load_into_memory()
    dataset.slots_shuffle(["number"])
    assert [len(feed["number"]) for feed in dataset.batches()] == [4, 1]


def test_distributed_settings_reach_the_dataset():
    dataset = InMemoryDataset()
    dataset.init()
    dataset._init_distributed_settings(parse_ins_id=True, parse_content=True, fleet_send_batch_size=800)
    assert dataset.parse_ins_id and dataset.parse_content and dataset.fleet_send_batch_size == 800
    dataset._init_distributed_settings(merge_size=2)
    assert dataset.merge_by_lineid and dataset.merge_size == 2


def test_settings_of_page_views_reach_the_dataset():
    dataset = InMemoryDataset()
    dataset.init(rank_offset="offsets", pv_batch_size=4, parse_logkey=True, merge_by_sid=False, enable_pv_merge=True)
    assert (dataset.rank_offset, dataset.pv_batch_size, dataset.merge_by_sid) == ("offsets", 4, False)
    assert dataset.parse_logkey and dataset.enable_pv_merge
    dataset._set_current_phase(0)
    assert dataset.current_phase == 0
    with pytest.raises(NotBuilt, match="copies of tables"):
        dataset._generate_local_tables_unlock(0, 1, 1, 1, 1)
    with pytest.raises(AttributeError, match="'_set_nothing'"):
        dataset._set_nothing()


def test_an_unknown_setting_is_named_with_the_nearest():
    with pytest.raises(UsageError, match="'batchsize'.*'batch_size'"):
        QueueDataset().init(batchsize=3)
