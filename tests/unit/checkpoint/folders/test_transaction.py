"""A save is complete or absent, whenever its writer is killed; a folder may have files of several saves."""

import os
import shutil

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.checkpoint.folders import manifest, parts, storage
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles, read_settled
from fleet_mpi.checkpoint.folders.transaction import part_folder, saving_into
from fleet_mpi.checkpoint.loading import load_persistables, load_vars
from fleet_mpi.checkpoint.models import model_files
from fleet_mpi.checkpoint.models.inference_model import load_inference_model
from fleet_mpi.checkpoint.saving import save_inference_model, save_persistables, save_vars
from fleet_mpi.errors import CheckpointDamaged, Stalled
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers.plain import Momentum
from tests.unit.checkpoint.killing import calls_of, killed


class Network:
    """A network of five persistable variables; ``fill`` gives each element of them one value."""

    def __init__(self):
        self.out = fc(data(name="x", shape=[3]), 2, name="a/fc")
        Momentum(0.1, 0.9).minimize(mean(self.out))
        self.program = default_main_program()
        Executor().run(default_startup_program())
        self.names = sorted(var.name for var in self.program.list_vars() if var.persistable)

    def fill(self, value):
        for name in self.names:
            global_scope().array(name)[...] = value

    def values(self):
        """All values there are among all variables."""
        return {float(value) for name in self.names for value in global_scope().array(name).ravel()}


@pytest.fixture
def network(programs):
    return Network()


WAYS = {
    "a file each": (lambda net, path: save_persistables(None, path, net.program),
                    lambda net, path: load_persistables(None, path, net.program)),
    "one for all": (lambda net, path: save_persistables(None, path, net.program, "all"),
                    lambda net, path: load_persistables(None, path, net.program, "all")),
    "fluid.save": (lambda net, path: model_files.save(net.program, path + "/model"),
                   lambda net, path: model_files.load(net.program, path + "/model")),
}


def loaded(net, load, path):
    """The values that loading gives."""
    net.fill(0)
    load(net, path)
    return net.values()


@pytest.mark.parametrize("way", WAYS)
def test_killed_at_any_call_a_save_is_the_old_one_or_the_new_one(network, tmp_path, way):
    save, load = WAYS[way]
    base, folder = str(tmp_path / "base"), str(tmp_path / "folder")
    network.fill(1)
    save(network, base)

    def save_new():
        network.fill(2)
        save(network, folder)
    shutil.copytree(base, folder)
    calls, seen = calls_of(save_new), []
    assert loaded(network, load, folder) == {2}
    for at in range(1, calls + 1):
        shutil.rmtree(folder)
        shutil.copytree(base, folder)
        assert killed(save_new, at)
        before = sorted(os.walk(folder))
        found = loaded(network, load, folder)
        assert found in ({1}, {2}), f"killed at call {at} of {calls}: {found}"
        assert sorted(os.walk(folder)) == before, "loading changed the folder"
        seen.append(found.pop())
        # The next save, of another variable, finishes what was begun and removes the rests.
        network.fill(3)
        with saving_into(folder) as other:
            with other.open("other") as stream:
                stream.write(b"other")
        assert loaded(network, load, folder) == {seen[-1]}
        assert not [name for name in os.listdir(folder) if name.endswith(".part")]
        assert all(os.path.isfile(os.path.join(folder, name)) for name in SavedFiles(folder).manifest.files)
    # Both happen, and there is one moment from which on the new one counts.
    assert sorted(seen) == seen and {*seen} == {1, 2} and calls > 10


def test_killed_at_any_call_a_first_save_is_whole_or_not_there(network, tmp_path):
    save, load = WAYS["a file each"]
    network.fill(1)
    calls = calls_of(lambda: save(network, str(tmp_path / "first")))
    seen = []
    for at in range(2, calls + 1):
        folder = str(tmp_path / str(at))
        assert killed(lambda: save(network, folder), at)
        network.fill(0)
        try:
            load(network, folder)
            assert network.values() == {1}
            seen.append(True)
        except (CheckpointDamaged, FileNotFoundError):
            assert network.values() == {0}
            seen.append(False)
        network.fill(1)
    assert seen == sorted(seen) and {*seen} == {True, False}


def test_an_inference_model_is_replaced_with_its_parameters(network, tmp_path):
    base, folder = tmp_path / "base", tmp_path / "folder"
    small = network.program.global_block().var("a/fc.tmp_0")

    def save_small():
        network.fill(1)
        save_inference_model(str(base), ["x"], [small], None, network.program)

    def save_large():
        network.fill(2)
        save_inference_model(str(folder), ["x"], [network.out], None, network.program)
    save_small()
    shutil.copytree(base, folder)
    for at in range(1, calls_of(save_large) + 1):
        shutil.rmtree(folder)
        shutil.copytree(base, folder)
        assert killed(save_large, at)
        network.fill(0)
        _, _, (target,) = load_inference_model(str(folder), None)
        assert (target.name, global_scope().array("a/fc.w_0").flat[0]) in {(small.name, 1), (network.out.name, 2)}


def test_each_file_is_bound_to_the_save_that_wrote_it_last(network, tmp_path):
    network.fill(1)
    save_persistables(None, str(tmp_path), network.program)
    network.fill(2)
    save_vars(None, str(tmp_path), network.program, vars=["a/fc.w_0"])
    network.fill(0)
    load_persistables(None, str(tmp_path), network.program)
    assert global_scope().array("a/fc.w_0").flat[0] == 2 and network.values() == {1, 2}
    saves = {name: entry.save for name, entry in SavedFiles(str(tmp_path)).manifest.files.items()}
    assert list(saves.values()).count(saves["a/fc.w_0"]) == 1 and len(set(saves.values())) == 2


def test_a_folder_without_a_manifest_loads_as_it_is(network, tmp_path):
    network.fill(1)
    save_persistables(None, str(tmp_path), network.program)
    os.remove(tmp_path / manifest.NAME)
    assert loaded(network, WAYS["a file each"][1], str(tmp_path)) == {1}


@pytest.mark.parametrize("damage, words", [
    (lambda path: path.write_bytes(path.read_bytes()[:-3]), "1 of 5 files are not what was saved: a/fc.w_0"),
    (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\1"), "1 of 5 files are not what was saved: a/fc.w_0"),
    (os.remove, "no file for 1 of 5 variables: a/fc.w_0")])
def test_a_file_that_was_changed_or_removed_by_hand_is_refused_by_name(network, tmp_path, damage, words):
    network.fill(1)
    save_persistables(None, str(tmp_path), network.program)
    damage(tmp_path / "a/fc.w_0")
    with pytest.raises(CheckpointDamaged, match=words):
        loaded(network, WAYS["a file each"][1], str(tmp_path))
    assert network.values() == {0}


def test_a_mixture_of_two_copied_folders_is_refused_with_all_names(network, tmp_path):
    for value in (1, 2):
        network.fill(value)
        save_persistables(None, str(tmp_path / str(value)), network.program)
    for name in network.names[:4]:
        shutil.copy(tmp_path / "2" / name, tmp_path / "1" / name)
    with pytest.raises(CheckpointDamaged, match="4 of 5 files.*" + ", ".join(network.names[:4])):
        load_vars(None, str(tmp_path / "1"), network.program, vars=network.names)


@pytest.mark.parametrize("content", (b"{}", b"fleet_mpi saves 1 00000000\n{}", b"fleet_mpi saves 9 00000000\n{}"))
def test_a_damaged_manifest_is_a_sentence_and_keeps_nobody_from_saving(network, tmp_path, content):
    network.fill(1)
    save_persistables(None, str(tmp_path), network.program)
    (tmp_path / manifest.NAME).write_bytes(content)
    with pytest.raises(CheckpointDamaged, match="remove this file to load the others unchecked"):
        loaded(network, WAYS["a file each"][1], str(tmp_path))
    network.fill(2)
    save_persistables(None, str(tmp_path), network.program)
    assert loaded(network, WAYS["a file each"][1], str(tmp_path)) == {2}


def add(folder, **files):
    """Save some files with these contents."""
    with saving_into(folder) as save:
        for name, content in files.items():
            with save.open(name) as stream:
                stream.write(content)


def test_a_reader_that_is_overtaken_by_a_save_begins_again(tmp_path):
    add(tmp_path, one=b"old", two=b"old")
    seen = []

    def read(files):
        for name in ("one", "two"):
            yield name, files.read(name)
            seen.append(name)
            if len(seen) == 1:
                add(tmp_path, one=b"new", two=b"new")
    assert dict(read_settled(tmp_path, read)) == {"one": b"new", "two": b"new"}
    assert seen == ["one", "one", "two"]


def test_a_first_save_that_overtakes_a_reader_of_plain_files_is_seen(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"old")
    once = iter([True])

    def read(files):
        for name in ("one", "two"):
            yield name, files.read(name)
            if next(once, False):
                add(tmp_path, one=b"new", two=b"new")
    assert dict(read_settled(tmp_path, read)) == {"one": b"new", "two": b"new"}


def test_a_folder_that_is_never_still_is_given_up(tmp_path):
    add(tmp_path, one=b"0")

    def read(files):
        yield files.read("one")
        add(tmp_path, one=b"1")
    with pytest.raises(CheckpointDamaged, match="saved to 20 times while it was read"):
        list(read_settled(tmp_path, read))


def test_saves_at_the_same_time_do_not_lose_each_other(tmp_path):
    with saving_into(tmp_path) as first, saving_into(tmp_path) as second:
        for save, name in ((first, "one"), (second, "two")):
            for file in (name, "both"):
                with save.open(file) as stream:
                    stream.write(name.encode())
    files = SavedFiles(tmp_path)
    # The inner block ends first.
    assert [files.read(name) for name in ("one", "two", "both")] == [b"one", b"two", b"one"]
    assert sorted(os.listdir(tmp_path)) == [manifest.NAME, "both", "one", "two"]


def test_a_saver_that_hangs_is_not_waited_for_in_silence(tmp_path):
    add(tmp_path, one=b"old")
    with settings.override(FLAGS_rpc_deadline=50), pytest.raises(Stalled, match="another process has been saving"):
        with saving_into(tmp_path) as save:
            with save.open("one") as stream:
                stream.write(b"new")
            handle = os.open(tmp_path, os.O_RDONLY)
            parts._lock(handle)
    os.close(handle)
    assert SavedFiles(tmp_path).read("one") == b"old" and sorted(os.listdir(tmp_path)) == [manifest.NAME, "one"]


def test_an_interrupt_right_after_the_manifest_was_replaced_loses_nothing(tmp_path, monkeypatch):
    add(tmp_path, one=b"old")
    replace = os.replace

    def interrupted(source, target):
        replace(source, target)
        if os.path.basename(target) == manifest.NAME:
            raise KeyboardInterrupt
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        add(tmp_path, one=b"new")
    monkeypatch.undo()
    files = SavedFiles(tmp_path)
    assert files.read("one") == b"new" and os.path.isdir(part_folder(tmp_path, files.manifest.files["one"].save))
    add(tmp_path, two=b"more")
    assert (tmp_path / "one").read_bytes() == b"new" and sorted(os.listdir(tmp_path)) == [manifest.NAME, "one", "two"]


def test_an_error_leaves_the_old_files_and_no_rests(tmp_path):
    add(tmp_path, one=b"old")
    with pytest.raises(KeyboardInterrupt):
        with saving_into(tmp_path) as save:
            with save.open("one") as stream:
                stream.write(b"new")
            raise KeyboardInterrupt
    assert SavedFiles(tmp_path).read("one") == b"old" and sorted(os.listdir(tmp_path)) == [manifest.NAME, "one"]


def test_what_was_saved_reaches_the_disk_before_it_counts(tmp_path, monkeypatch):
    calls, sync, replace = [], storage._sync, os.replace
    monkeypatch.setattr(storage, "_sync", lambda path: (calls.append(("sync", os.path.basename(path))), sync(path)))
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append(("rename", os.path.basename(paths[1]))),
                                                       replace(*paths)))
    add(tmp_path, one=b"1", two=b"2")
    counts = calls.index(("rename", manifest.NAME))
    assert {("sync", "one"), ("sync", "two"), ("sync", tmp_path.name)} < set(calls[:counts])
    assert calls[counts + 1] == ("sync", tmp_path.name) and ("rename", "one") in calls[counts:]


def test_modes_of_files_stay_and_a_link_is_replaced_by_the_file(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    folder = tmp_path / "folder"
    add(folder, one=b"1")
    (folder / "one").chmod(0o640)
    (folder / "two").symlink_to(outside)
    add(folder, one=b"11", two=b"22")
    assert (folder / "one").stat().st_mode & 0o777 == 0o640 and outside.read_bytes() == b"mine"
    assert (folder / "two").read_bytes() == b"22" and not (folder / "two").is_symlink()


def test_a_thousand_small_variables_take_no_time(tmp_path):
    values = np.zeros(10, "float32").tobytes()
    add(tmp_path, **{f"v{number}": values for number in range(1000)})
    assert len(os.listdir(tmp_path)) == 1001
    assert len(SavedFiles(tmp_path).manifest.files) == 1000
