"""What is trained on servers is saved as one process saves it, and loads into any cut of it."""

import os

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.checkpoint import loading, saving
from fleet_mpi.checkpoint.folders import manifest
from fleet_mpi.checkpoint.formats import tensor_files
from fleet_mpi.checkpoint.formats.tensor_stream import read_tensor, write_tensor
from fleet_mpi.checkpoint.models.inference_model import load_inference_model
from fleet_mpi.checkpoint.sources import Source
from fleet_mpi.checkpoint.values import BlockValues, ServerValues
from fleet_mpi.errors import CheckpointDamaged, UsageError
from fleet_mpi.parameter_server.description import Inventory
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.program.engine.scope import Scope, scope_guard
from fleet_mpi.program.graph.program import prune
from fleet_mpi.runtime import sessions
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig
from fleet_mpi.transpile.distributing import distribute, rewrite
from fleet_mpi.wire.loopback import Loopback, Network
from tests.unit.program.building import from_scratch

SCHEDULED = "@LR_DECAY_COUNTER@"


def model():
    """A network with rows, statistics, a schedule and Adam; (loss, prediction)."""
    x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1])
    ids = fluid.data("ids", [None, 1], dtype="int64")
    rows = fluid.layers.embedding(ids, [50, 4], is_sparse=True, param_attr="table")
    hidden = fluid.layers.fc([x, rows], 16, act="relu")
    predicted = fluid.layers.fc(fluid.layers.batch_norm(hidden), 1)
    loss = fluid.layers.mean(fluid.layers.square(predicted - y))
    fluid.optimizer.Adam(fluid.layers.exponential_decay(0.05, 3, 0.5)).minimize(loss)
    return loss, predicted


def batch(step):
    rng = np.random.default_rng(step)
    return {"x": rng.normal(size=(8, 6)).astype("float32"), "y": rng.normal(size=(8, 1)).astype("float32"),
            "ids": rng.integers(0, 50, (8, 1))}


class Training:
    """One worker with its servers inside, or (servers None) one process alone."""

    def __init__(self, servers=2, method=None, slice_up=True, load=None, filename=None, **config):
        with from_scratch() as (main, startup):
            self.loss, self.predicted = model()
            self.origin = main.clone()
            self.main, self.startup, self.scope, self.exe = main, startup, Scope(), fluid.Executor()
            if servers is not None:
                chosen = DistributeTranspilerConfig()
                # Past the rule for scripts: a small model shall be cut too.
                vars(chosen).update({"split_method": method, "slice_var_up": slice_up, "min_block_size": 10, **config})
                self.distribution, _ = distribute(main, startup, chosen, [f"h:{n}" for n in range(servers)], 1)
                rewrite(main, startup, self.distribution)
                if load is not None:
                    self.connect_to_resumed(servers, Source(load, [filename] if filename else ()))
            with scope_guard(self.scope):
                self.exe.run(startup)
                if servers is None and load is not None:
                    loading.load_persistables(None, load, self.origin, filename)

    def connect_to_resumed(self, servers, source):
        """Servers that load before they serve, each its own."""
        scopes = [sessions.started_scope(self.distribution, index) for index in range(servers)]
        for index, scope in enumerate(scopes):
            BlockValues(self.distribution, index, scope).load(source)
        sessions.connect(self.distribution, self.scope, sessions.embedded(self.distribution, scopes))

    @property
    def client(self):
        return sessions.session_of(self.scope).client

    @property
    def values(self):
        return ServerValues(ServerState(self.client), self.distribution)

    def run(self, first, last):
        """Losses of some steps."""
        with scope_guard(self.scope):
            return [self.exe.run(self.main, batch(step), [self.loss])[0].tobytes() for step in range(first, last)]

    def save(self, folder, filename=None):
        with scope_guard(self.scope):
            if hasattr(self, "distribution"):
                saving.save_all(self.values, folder, filename)
            else:
                saving.save_persistables(None, folder, self.origin, filename)


def files(folder):
    return {name: (folder / name).read_bytes() for name in os.listdir(folder) if name != manifest.NAME}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder that a training with two servers wrote after two steps."""
    folder = tmp_path_factory.mktemp("saved")
    training = Training(2)
    training.run(0, 2)
    training.save(folder)
    return folder


def test_the_files_are_those_that_one_process_writes(saved, tmp_path):
    alone = Training(None)
    alone.run(0, 2)
    alone.save(tmp_path)
    assert files(saved) == files(tmp_path)
    assert {"table", SCHEDULED} < set(files(saved)) and len(files(saved)) > 20


@pytest.mark.parametrize("servers, method, slice_up", [
    (None, None, True), (1, None, True), (3, None, True), (3, fluid.transpiler.HashName, True), (4, None, False)])
def test_training_goes_on_with_equal_bits_in_any_cut_and_in_one_process(saved, tmp_path, servers, method, slice_up):
    whole = Training(2)
    whole.run(0, 2)
    losses = whole.run(2, 4)
    other = Training(servers, method, slice_up, load=saved)
    assert other.run(2, 4) == losses
    whole.save(tmp_path / "one")
    other.save(tmp_path / "other")
    assert files(tmp_path / "one") == files(tmp_path / "other")


@pytest.mark.parametrize("servers", (None, 3))
def test_one_file_for_all_loads_too(saved, tmp_path, servers):
    training = Training(2)
    training.run(0, 2)
    training.save(tmp_path, "all")
    assert list(files(tmp_path)) == ["all"]
    other = Training(servers, load=tmp_path, filename="all")
    other.save(tmp_path / "apart")
    assert files(tmp_path / "apart") == files(saved)


def test_running_servers_take_over_what_was_saved(saved, tmp_path):
    training = Training(3)
    training.run(5, 6)
    with scope_guard(training.scope):
        training.values.load(Source(saved))
    training.save(tmp_path)
    assert files(tmp_path) == files(saved)


def test_in_geo_the_optimizer_is_the_workers(saved, tmp_path):
    training = Training(2, geo_sgd_mode=True, sync_mode=False, geo_sgd_need_push_nums=1)
    training.run(0, 2)
    training.save(tmp_path)
    moment = next(name for name in files(saved) if name.startswith("fc_0.w_0_moment1"))
    with open(tmp_path / moment, "rb") as stream:
        assert read_tensor(stream)[0].any()
    assert files(tmp_path)[SCHEDULED] == files(saved)[SCHEDULED]


def test_a_model_for_inference_has_whole_parameters(tmp_path):
    training = Training(3)
    training.run(0, 2)
    with scope_guard(training.scope):
        names = saving.save_model(training.values, tmp_path, ["x", "ids"], [training.predicted])
    assert names == [training.predicted.name]
    alone = Training(None)
    alone.run(0, 2)
    feed = {name: values for name, values in batch(9).items() if name != "y"}
    with scope_guard(alone.scope):
        expected = alone.exe.run(prune(alone.origin.clone(for_test=True), [alone.predicted.name], list(feed)),
                                 feed, [alone.predicted])
    with scope_guard(Scope()):
        program, feeds, fetches = load_inference_model(tmp_path, None)
        assert feeds == ["x", "ids"]
        found = fluid.Executor().run(program, feed, fetches)
    np.testing.assert_array_equal(found[0], expected[0])


def test_a_save_that_fails_leaves_the_old_files_and_running_servers(saved, tmp_path, monkeypatch):
    training = Training(2)
    training.save(tmp_path)
    before = files(tmp_path)
    training.run(0, 1)
    written = []

    def failing(stream, array, lod=()):
        written.append(array)
        if len(written) == 9:
            raise OSError("no space left")
        write_tensor(stream, array, lod)
    monkeypatch.setattr(tensor_files, "write_tensor", failing)
    with pytest.raises(OSError):
        training.save(tmp_path)
    assert files(tmp_path) == before
    monkeypatch.undo()
    training.run(1, 2)
    training.save(tmp_path)
    assert files(tmp_path) == files(saved)


def test_a_variable_without_a_value_is_named_before_servers_are_stopped(tmp_path):
    training = Training(2)
    mean = "batch_norm_0.w_1"
    training.scope.erase([mean])
    with pytest.raises(UsageError, match=mean):
        training.save(tmp_path)
    assert os.listdir(tmp_path) == []


def damage(folder, saved, name, change):
    os.makedirs(folder)
    for one, content in files(saved).items():
        (folder / one).write_bytes(content)
    change(folder / name)


def rewritten(values):
    def change(path):
        with open(path, "wb") as stream:
            write_tensor(stream, values)
    return change


@pytest.mark.parametrize("name, change, words", [
    ("table", os.unlink, "no file for 1 of .*: table"),
    ("table", rewritten(np.zeros((4, 50), "float32")), r"table: program float32\[50, 4\], file float32\[4, 50\]"),
    ("table", rewritten(np.zeros((50, 4))), r"table: program float32\[50, 4\], file float64"),
    ("fc_0.w_0", lambda path: path.write_bytes(path.read_bytes()[:-1]), "fc_0.w_0.*expected .* bytes"),
    ("fc_0.w_0", lambda path: path.write_bytes(path.read_bytes() + b"x"), "fc_0.w_0.*more in the file"),
    (SCHEDULED, rewritten(np.zeros(2, "int64")), r"COUNTER@: program int64\[1\], file int64\[2\]"),
])
def test_servers_refuse_files_that_are_missing_or_do_not_fit_by_name(saved, tmp_path, name, change, words):
    damage(tmp_path / "damaged", saved, name, change)
    with pytest.raises(CheckpointDamaged, match=words):
        Training(2, load=tmp_path / "damaged")


def test_numbers_that_variables_share_must_be_equal(saved, tmp_path):
    power = next(name for name in sorted(files(saved)) if name.startswith("fc_1.b_0_beta1_pow"))
    damage(tmp_path / "damaged", saved, power, rewritten(np.array([0.25], "float32")))
    with pytest.raises(CheckpointDamaged, match="were both saved by the same training"):
        Training(1, load=tmp_path / "damaged")
    training = Training(1)
    with pytest.raises(CheckpointDamaged, match="were both saved by the same training"):
        with scope_guard(Scope()):
            training.values.load(Source(tmp_path / "damaged"))


def test_the_inventory_knows_the_programs_names():
    described = Training(2).client.description
    kept = Inventory(described).by_program_name([SCHEDULED])
    assert kept["table"] == ("param", "table", "")
    assert kept[SCHEDULED].kind == "counter"
    states = {one.state for one in kept.values() if one.variable == "table" and one.kind == "state"}
    assert states == {"moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"}
    assert [one.kind for name, one in kept.items() if name.startswith("learning_rate")] == ["rate"]


class TwoWorkers:
    """Two workers and two servers in one thread: whoever waits lets the servers go on."""

    def __init__(self, **config):
        with from_scratch() as (main, startup):
            model()
            chosen = DistributeTranspilerConfig()
            vars(chosen).update({"min_block_size": 10, **config})
            self.distribution, _ = distribute(main, startup, chosen, ["h:0", "h:1"], 2)
            rewrite(main, startup, self.distribution)
            network = Network()
            self.servers = [sessions.new_server(self.distribution, index, network.transport(index), [2, 3], [0, 1],
                                                sessions.started_scope(self.distribution, index)) for index in (0, 1)]
            self.scope, exe = Scope(), fluid.Executor()
            scopes = self.scope, Scope()
            self.clients = [sessions.connect(self.distribution, scope, sessions.Uplink(
                worker, Loopback(network, 2 + worker, on_wait=self.serve), [0, 1])).client
                for worker, scope in enumerate(scopes)]
            exe.run(startup, scope=self.scope)

    def serve(self):
        """Let every server do what is ready."""
        return any([server.advance() for server in self.servers])

    def save(self, folder):
        """Worker 0's."""
        with scope_guard(self.scope):
            saving.save_all(ServerValues(ServerState(self.clients[0]), self.distribution), folder)
        return files(folder)


@pytest.mark.parametrize("is_sync", (False, True))
def test_others_push_while_a_saver_is_slow_to_write_and_what_it_writes_is_of_one_moment(tmp_path, monkeypatch, is_sync):
    job = TwoWorkers(sync_mode=is_sync)
    before, other, tickets = job.save(tmp_path / "before"), job.clients[1], []
    other.grads[...] = 1
    other.rates[...] = 0.1

    def slow(stream, array, lod=()):
        if not tickets or other.is_answered(tickets[-1]):
            for ticket in tickets[-1:]:
                other.collect(ticket)
            tickets.append(other.push(rows=[None]))
        job.serve()
        write_tensor(stream, array, lod)
    monkeypatch.setattr(tensor_files, "write_tensor", slow)
    assert job.save(tmp_path / "meanwhile") == before
    monkeypatch.undo()
    # In a synchronous job the first push waits for the saver's own: it is taken, and not applied.
    assert len(tickets) == 1 if is_sync else len(tickets) > 10
    assert [server.applied[1] >= 10 for server in job.servers] == [not is_sync] * 2
    assert (job.save(tmp_path / "later") == before) == is_sync
