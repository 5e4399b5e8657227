"""Datasets: settings, order, batches, memory, shuffles, and errors of the files."""

import random
from types import SimpleNamespace

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.data.dataset import DatasetFactory, InMemoryDataset, QueueDataset
from fleet_mpi.errors import NotBuilt, UsageError

KINDS = ["QueueDataset", "InMemoryDataset"]
NUMBER = SimpleNamespace(name="number", shape=(-1, 1), dtype="int64", lod_level=0)
WORDS = SimpleNamespace(name="words", shape=(-1, 1), dtype="int64", lod_level=1)


@pytest.fixture
def files(tmp_path):
    """Three files with 5, 1 and 7 lines; samples are numbered through from 0."""
    paths, number = [], 0
    for place, count in enumerate((5, 1, 7)):
        path = tmp_path / f"part-{place}"
        path.write_text("".join(f"1 {n} {n % 3 + 1} {' '.join([str(n)] * (n % 3 + 1))}\n"
                                for n in range(number, number + count)))
        number += count
        paths.append(str(path))
    return paths


def dataset_of(kind, files, batch_size=4, threads=1, command="cat"):
    dataset = DatasetFactory().create_dataset(kind)
    dataset.set_use_var([NUMBER, WORDS])
    dataset.set_batch_size(batch_size)
    dataset.set_thread(threads)
    dataset.set_pipe_command(command)
    dataset.set_filelist(files)
    if kind == "InMemoryDataset":
        dataset.load_into_memory()
    return dataset


def numbers_of(dataset):
    return [feed["number"][:, 0].tolist() for feed in dataset.batches()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("command", ["cat", "grep ."])
def test_batches_follow_the_file_list_whatever_the_threads(files, kind, threads, command):
    dataset = dataset_of(kind, files, 4, threads, command)
    expected = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12]]
    assert numbers_of(dataset) == expected
    assert numbers_of(dataset) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_ragged_variables_come_with_the_rows_of_each_sample(files, kind):
    values, lengths = next(iter(dataset_of(kind, files).batches()))["words"]
    assert lengths == [1, 2, 3, 1] and values.dtype == np.int64
    assert values.tolist() == [[0], [1], [1], [2], [2], [2], [3]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipe_command_may_be_a_generator_of_the_users(tmp_path, kind):
    (tmp_path / "reader.py").write_text(
        "from fleet_mpi.data.multislot import MultiSlotDataGenerator\n"
        "class Mine(MultiSlotDataGenerator):\n"
        "    def generate_sample(self, line):\n"
        "        n = int(line)\n"
        "        return lambda: iter([[('number', [n * 10]), ('words', [n, n])]])\n"
        "Mine().run_from_stdin()\n")
    (tmp_path / "raw").write_text("1\n2\n3\n")
    dataset = dataset_of(kind, [tmp_path / "raw"], 2, 1, f"python {tmp_path / 'reader.py'}")
    assert numbers_of(dataset) == [[10, 20], [30]]


def test_an_error_in_a_later_file_comes_after_the_batches_before_it(files):
    with open(files[2], "a") as file:
        file.write("1 x 1 1\n")
    seen = []
    with pytest.raises(UsageError, match="part-2, line 8: slot 'number'"):
        for feed in dataset_of("QueueDataset", files, 2, 3).batches():
            seen += feed["number"][:, 0].tolist()
    assert seen == [0, 1, 2, 3, 4, 5][:len(seen)] and len(seen) >= 4
    with pytest.raises(UsageError, match="part-2, line 8: slot 'number'"):
        dataset_of("InMemoryDataset", files, 2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failing_pipe_command_is_an_error(files, kind):
    with pytest.raises(UsageError, match="exit code 3"):
        numbers_of(dataset_of(kind, files, command="python -c 'import sys; sys.exit(3)'"))


def test_blocks_larger_than_the_reading_unit_are_cut_right(tmp_path):
    (tmp_path / "a").write_text("".join(f"1 {n} 1 {n}\n" for n in range(1500)))
    for kind in KINDS:
        batches = numbers_of(dataset_of(kind, [tmp_path / "a"], 700))
        assert [len(batch) for batch in batches] == [700, 700, 100]
        assert sum(batches, []) == list(range(1500))


def test_sizes_and_release(files):
    dataset = dataset_of("InMemoryDataset", files)
    assert dataset.get_memory_data_size() == dataset.get_shuffle_data_size() == 13
    dataset.release_memory()
    assert dataset.get_memory_data_size() == 0
    with pytest.raises(UsageError, match="load_into_memory"):
        numbers_of(dataset)


def test_sizes_are_summed_over_the_workers_of_a_fleet(files):
    role = SimpleNamespace(_all_reduce=lambda value, mode, among: value * 3)
    fleet = SimpleNamespace(worker_num=lambda: 3, _role_maker=role)
    assert dataset_of("InMemoryDataset", files).get_memory_data_size(fleet) == 39


def test_preloading_ends_with_the_samples_or_with_the_error(files):
    dataset = dataset_of("InMemoryDataset", files)
    dataset.release_memory()
    dataset.preload_into_memory(2)
    dataset.wait_preload_done()
    assert dataset.get_memory_data_size() == 13
    dataset.set_filelist(["no-such-file"])
    dataset.preload_into_memory()
    with pytest.raises(UsageError, match="no-such-file"):
        dataset.wait_preload_done()
    with pytest.raises(UsageError, match="preload_into_memory"):
        dataset.wait_preload_done()


@pytest.mark.parametrize("shuffle", [InMemoryDataset.local_shuffle, InMemoryDataset.global_shuffle])
def test_shuffling_moves_whole_samples_and_loses_none(files, shuffle):
    dataset = dataset_of("InMemoryDataset", files, 13)
    shuffle(dataset)
    (feed,) = dataset.batches()
    numbers = feed["number"][:, 0].tolist()
    assert sorted(numbers) == list(range(13)) and numbers != list(range(13))
    values, lengths = feed["words"]
    assert values[:, 0].tolist() == [n for n in numbers for _ in range(n % 3 + 1)]
    assert lengths == [n % 3 + 1 for n in numbers]


def test_shuffles_repeat_with_a_seed_and_differ_from_each_other(files):
    def two_shuffles():
        dataset, orders = dataset_of("InMemoryDataset", files, 13), []
        for _ in range(2):
            dataset.load_into_memory(is_shuffle=True)
            orders.append(numbers_of(dataset))
        return orders

    with settings.override(FLEET_MPI_SEED=4):
        first, second = two_shuffles(), two_shuffles()
    assert first == second and first[0] != first[1]
    with settings.override(FLEET_MPI_SEED=0):
        runs = []
        for _ in range(2):
            random.seed(9)
            runs.append(two_shuffles())
    assert runs[0] == runs[1]


def test_slots_shuffle_leaves_the_other_slots_alone(files):
    dataset = dataset_of("InMemoryDataset", files, 13)
    with pytest.raises(UsageError, match="set_fea_eval"):
        dataset.slots_shuffle(["words"])
    dataset.set_fea_eval(100, True)
    dataset.slots_shuffle(["words"])
    (feed,) = dataset.batches()
    assert feed["number"][:, 0].tolist() == list(range(13))
    assert sorted(set(feed["words"][0][:, 0].tolist())) == list(range(13))
    assert feed["words"][1] != [n % 3 + 1 for n in range(13)]


def test_ids_in_front_of_the_slots_are_dropped_when_announced(tmp_path):
    (tmp_path / "a").write_text("1 ins7 1 5 1 5\n")
    dataset = InMemoryDataset()
    dataset.set_use_var([NUMBER, WORDS])
    dataset.set_filelist([str(tmp_path / "a")])
    dataset.set_parse_ins_id(True)
    dataset.load_into_memory()
    assert numbers_of(dataset) == [[5]]


@pytest.mark.parametrize("name", ["local_shuffle", "global_shuffle"])
def test_a_queue_cannot_be_shuffled(name):
    with pytest.raises(NotBuilt, match="InMemoryDataset"):
        getattr(QueueDataset(), name)()


def test_what_is_missing_or_wrong_is_said_at_once():
    with pytest.raises(UsageError, match="set_batch_size"):
        QueueDataset().set_batch_size(0)
    with pytest.raises(UsageError, match="list of paths"):
        QueueDataset().set_filelist("a.txt")
    with pytest.raises(UsageError, match="needs a shell"):
        QueueDataset().set_pipe_command("python a.py > b")
    dataset = QueueDataset()
    dataset.set_use_var([NUMBER])
    with pytest.raises(UsageError, match="set_filelist"):
        numbers_of(dataset)


def test_the_factory_knows_two_kinds_and_says_so():
    assert type(DatasetFactory().create_dataset()) is QueueDataset
    with pytest.raises(NotBuilt, match="BoxPSDataset"):
        DatasetFactory().create_dataset("BoxPSDataset")
    with pytest.raises(UsageError, match="InMemoryDataset"):
        DatasetFactory().create_dataset("MemoryDataset")


def test_leaving_a_queue_early_leaves_no_reader_waiting(tmp_path):
    (tmp_path / "a").write_text("1 1 1 1\n" * 20000)
    batches = dataset_of("QueueDataset", [tmp_path / "a"] * 3, 10, 2).batches()
    next(batches)
    batches.close()


def test_the_description_names_the_settings(files):
    text = dataset_of("QueueDataset", files, command="grep .").desc()
    assert "grep ." in text and "number, words" in text and "batch_size 4" in text
