"""The Job: alone, with others, declarations, what cannot be said, and the end."""

import array
import subprocess
import sys

import numpy as np
import pytest

import fleet_mpi
from fleet_mpi.door import gate, joining
from fleet_mpi.door.joining import current, join
from fleet_mpi.errors import NotBuilt, UsageError
from tests.unit.door.loopback_job import run


@pytest.fixture
def no_job(monkeypatch):
    """As in a process that has joined nothing."""
    monkeypatch.setattr(joining, "_current", None)


def test_alone_servers_are_embedded(no_job):
    for servers in (None, 0, 1, 3):
        with fleet_mpi.join(servers=servers) as job:
            assert current() is job and (job.role, job.worker, job.workers) == ("worker", 0, 1)
            params = [np.ones((200, 100), "float32")]
            server = job.parameter_server(params, lr=0.5)
            server.grads["0"][...] = 1
            server.push_pull()
            assert (params[0] == 0.5).all() and params[0] is server.params["0"] and server.steps == job.steps == 1
            assert job.all_reduce(np.ones(2)).tolist() == [1.0, 1.0]
            job.barrier()
        assert job.has_left


def test_a_process_joins_once(no_job):
    with join(), pytest.raises(UsageError, match="this process has joined a job already"):
        join()


def test_without_a_job_there_is_none(no_job):
    with pytest.raises(UsageError, match="this process has joined no job: call fleet_mpi.join"):
        current()


def test_an_error_is_not_hidden(no_job):
    with pytest.raises(ZeroDivisionError), join() as job:
        job.parameter_server({"w": np.zeros(2)}).push_pull({"w": np.ones(2)})
        1 / 0
    assert not job.has_left
    job.leave()
    with pytest.raises(UsageError, match="push_pull|step: this worker has left the job"):
        job.step()


def test_the_package_has_no_other_name():
    with pytest.raises(AttributeError, match="no attribute 'joint'"):
        fleet_mpi.joint


def test_the_door_knows_no_programs(tmp_path):
    program = ("import sys; import fleet_mpi; fleet_mpi.join; import numpy as np; print([name for name in sys.modules "
               "if name.startswith(('fleet_mpi.program', 'fleet_mpi.transpile', 'fleet_mpi.runtime'))])\n"
               "with fleet_mpi.join() as job:\n"
               "    server = job.parameter_server({'w': np.zeros(2)})\n"
               "    server.push_pull({'w': np.ones(2)})\n"
               "    job.save(sys.argv[1]); job.load(sys.argv[1])\n"
               "print([name for name in sys.modules if name.startswith(('fleet_mpi.program', 'fleet_mpi.transpile', "
               "'fleet_mpi.runtime'))])")

    found = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, timeout=120)
    assert (found.stdout, found.stderr) == ("[]\n[]\n", "")


# ---------------------------------------------------------------------- declarations

def test_worker_0_gives_the_first_values():
    def work(job):
        params = {"w": np.full(3, 1.0 + job.worker)}
        job.parameter_server(params).pull()
        return params["w"].tolist()
    assert run(work, 3, 2) == [[1.0] * 3] * 3


def test_callers_arrays_may_stay_and_be_filled():
    def work(job):
        big = np.zeros((4, 6), "float32")
        mine = array.array("d", [1.0, 2.0])
        params = {"strided": big[:, ::2], "buffer": mine}
        server = job.parameter_server(params, lr=1.0, in_place=True)
        server.push_pull({"strided": np.ones((4, 3), "float32"), "buffer": memoryview(array.array("d", [1.0, 1.0]))})
        assert params["buffer"] is mine
        return big.sum(), list(mine)
    assert run(work, 2, 1) == [(-12.0, [0.0, 1.0])] * 2


def test_a_rate_can_be_set_and_groups_have_their_own():
    def work(job):
        params = {"a": np.zeros(1), "b": np.zeros(1)}
        server = job.parameter_server(params, lr={"slow": 1.0, "fast": lambda step: 10.0 * (step + 1)},
                                      rates={"a": "slow", "b": "fast"})
        ones = {"a": np.ones(1), "b": None}
        server.push_pull(ones)
        server.lr = {"slow": 2.0}
        server.push_pull({"a": np.ones(1), "b": np.ones(1)})
        return params["a"].item(), params["b"].item()
    assert run(work, 1, 2) == [(-3.0, -20.0)]


def test_a_parameter_may_have_a_rule_of_its_own():
    def work(job):
        params = {"a": np.zeros(2), "b": np.zeros(2)}
        server = job.parameter_server(params, "momentum", 1.0, mu=0.5, clip_value=1.0,
                                      each={"b": {"rule": "sgd", "l2": 0.5}})
        for _ in range(2):
            server.push_pull({"a": np.full(2, 3.0), "b": np.full(2, 3.0)})
        return params["a"][0], params["b"][0]
    assert run(work, 1, 1) == [(-2.5, -1.5)]


def test_workers_that_declare_different_things_are_told():
    def work(job):
        params = {"w": np.zeros(3 + job.worker)}
        with pytest.raises(UsageError, match=r"worker 1 and worker 0 do not run the same job: w \(parameter\) is "
                                             r"float64 \[4\] by sgd\(\) at lr float64 with worker 1 and float64 \[3\]"):
            job.parameter_server(params).pull()
        job._training = None
    run(work, 2, 1)


def test_a_call_that_was_refused_leaves_nothing_behind(no_job):
    with join() as job:
        with pytest.raises(UsageError, match="'v': expected float32 or float64, got int64"):
            job.parameter_server({"w": np.zeros(2), "v": np.zeros(2, int)}, lr=0.01)
        with pytest.raises(UsageError, match="a tuple cannot be given other arrays"):
            job.parameter_server((np.zeros(2),), lr=0.02)
        params = {"w": np.zeros(2)}
        server = job.parameter_server(params, lr=0.5)
        server.push_pull({"w": np.ones(2)})
        server.lr = 0.25
        server.push_pull({"w": np.ones(2)})
        assert params["w"].tolist() == [-0.75, -0.75] and list(server.fetch()) == ["w"]


@pytest.mark.parametrize("servers", (1, 2))
def test_a_worker_without_data_leaves_and_the_others_go_on(servers):
    def work(job):
        params = {"w": np.zeros(2)}
        server = job.parameter_server(params, lr=1.0)
        for _ in range(3 * job.worker):
            server.push_pull({"w": np.ones(2)})
        return params["w"].tolist()
    assert run(work, 2, servers)[1] == [-3.0, -3.0]


def test_workers_that_declare_nothing_end_in_order():
    assert run(lambda job: job.all_reduce([np.ones(2), np.ones(3)], "mean")[1].tolist(), 2, 2) == [[1.0] * 3] * 2


def declare(job, *words, **said):
    """Parameters, and a first step."""
    return job.parameter_server(*words, **said)


@pytest.mark.parametrize("say, kind, sentence", (
    (lambda job: declare(job, {}), UsageError, "no parameters were given"),
    (lambda job: declare(job, {"w": 3.0}), UsageError, "'w': expected an array .*got float"),
    (lambda job: declare(job, {"w": np.zeros(3, "int32")}), UsageError, "'w': expected float32 or float64, got int32"),
    (lambda job: declare(job, {3: np.zeros(3)}), UsageError, "names are texts, got 3"),
    (lambda job: declare(job, 7), UsageError, "expected {name: array} or a list of arrays, got int"),
    (lambda job: declare(job, (np.zeros(3),)), UsageError, "a tuple cannot be given other arrays"),
    (lambda job: declare(job, {"w": np.zeros(3)}, "adma"), UsageError, "no update rule is called 'adma'; did you mean"),
    (lambda job: declare(job, {"w": np.zeros(3)}, "adam", beta=1), UsageError, "neither update rule 'adam' nor mode"),
    (lambda job: declare(job, {"w": np.zeros(3)}, "adam", beta1="x"), UsageError, "beta1: expected a number, got 'x'"),
    (lambda job: declare(job, {"w": np.zeros(3)}, "dgc_momentum"), NotBuilt, "use momentum"),
    (lambda job: declare(job, {"w": np.zeros(3)}, lr=float("nan")), UsageError, "lr: expected a finite number"),
    (lambda job: declare(job, {"w": np.zeros(3)}, lr=lambda step: float("inf")).push_pull({"w": None}), UsageError,
     r"lr\(0\): expected a finite number"),
    (lambda job: declare(job, {"w": np.zeros(3)}, rates={"v": 2}), UsageError, "rates: there is no 'v'"),
    (lambda job: declare(job, {"w": np.zeros(3)}, rates={"w": "slow"}), UsageError, "'w' is in group 'slow', which lr"),
    (lambda job: declare(job, {"w": np.zeros(3)}, lr={"a": 1.0}), UsageError, "say in rates which group 'w' is in"),
    (lambda job: declare(job, {"w": np.zeros(3)}, clip_norm=0), UsageError, "clip_norm: expected a number above 0"),
    (lambda job: declare(job, {"w": np.zeros(3)}, clip_value=(1, -1)), UsageError, "clip_value: expected a number, or"),
    (lambda job: declare(job, {"w": np.zeros(3)}, l2=-1), UsageError, "l2: expected a finite number from 0 up, got -1"),
    (lambda job: declare(job, {"w": np.zeros(3)}, split="round"), UsageError, "no way to split is called 'round'"),
    (lambda job: declare(job, {"w": np.zeros(3), "w_moment_0": np.zeros(1)}, "adagrad"), UsageError,
     "would both be called 'w_moment_0'"),
    (lambda job: [declare(job, {"w": np.zeros(3)}), declare(job, {"v": np.zeros(3)})], UsageError,
     "this job has its parameters: declare all of them in one call"),
    (lambda job: declare(job, {"w": np.zeros(3)}).push_pull({"w": np.zeros(3, "float32")}), UsageError,
     r"gradient of 'w': expected float64 \[3\], got float32 \[3\]"),
    (lambda job: declare(job, {"w": np.zeros(3), "v": np.zeros(3)}).push_pull({"w": np.zeros(3)}), UsageError,
     "there is no gradient for 'v'"),
    (lambda job: declare(job, {"w": np.zeros(3)}).push_pull({"wo": np.zeros(3)}), UsageError, "there is no 'wo'"),
    (lambda job: declare(job, {"w": np.frombuffer(bytes(24))}, in_place=True), UsageError, "its memory is read-only"),
    (lambda job: [declare(job, {"w": np.zeros(3)}).pull(), job.table("t", 2, 3)], UsageError,
     "table: the servers have been told what to keep"),
    (lambda job: job.step(), UsageError, "step: nothing was declared: call job.parameter_server"),
    (lambda job: job.all_reduce([np.ones(3)], "max"), UsageError, "op: expected sum or mean, got 'max'"),
    (lambda job: job.all_reduce(np.ones(3, int), "mean"), UsageError, "a mean of int64 cannot be written to its place"),
    (lambda job: job.all_reduce(np.frombuffer(bytes(8))), UsageError, "all_reduce: its memory is read-only"),
    (lambda job: job.serve(), UsageError, "serve: this process is a worker"),
    (lambda job: job.table(5, 2, 3), UsageError, "table: name: expected a text, got 5"),
    (lambda job: declare(job, {"w": np.zeros(3)}, ["sgd"]), UsageError, r"no update rule is called \['sgd'\]"),
))
def test_what_cannot_be_is_a_sentence(say, kind, sentence):
    with pytest.raises(kind, match=sentence):
        run(say, 1, 0)


def test_joining_with_too_many_servers_is_a_sentence(no_job, monkeypatch):
    monkeypatch.setattr(joining.cluster, "world", lambda: joining.cluster.World(0, 3, None))
    with pytest.raises(UsageError, match="servers=3: expected 0 to 2 of 3 ranks to serve"):
        join(3)
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "a:1,b:2")
    monkeypatch.setenv("PADDLE_PSERVERS_IP_PORT_LIST", "c:3")
    monkeypatch.setenv("TRAINING_ROLE", "TRAINER")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "0")
    with pytest.raises(UsageError, match="servers=2, but the launcher says 1"):
        join(2)


# ---------------------------------------------------------------------- what workers do together

def test_sums_means_and_broadcasts_of_any_arrays():
    def work(job):
        me = job.worker + 1
        strided = np.full((3, 8), me, "float32")[:, ::2]
        found = job.all_reduce({"a": np.full(3, me), "b": strided, "c": np.full(70000, me, "float64")})
        mean = job.all_reduce([np.full(2, me, "float32"), np.full(2, me, "float64")], "mean", "exact")
        first = job.broadcast([np.full(2, me), strided, np.full(1 << 17, me, "uint8")])
        return [one.sum().item() for one in (*found.values(), *mean, *first)]
    assert run(work, 3, 1) == [[18, 72.0, 420000.0, 4.0, 4.0, 2, 72.0, 1 << 17]] * 3


# ---------------------------------------------------------------------- the gate

class ByInterface:
    """Shows its memory as numpy's arrays do."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.kept = array


class ByCapsule:
    """Shows its memory by DLPack only."""

    def __init__(self, array):
        self.kept = array

    def __dlpack__(self, **words):
        return self.kept.__dlpack__(**words)

    def __dlpack_device__(self):
        return self.kept.__dlpack_device__()


@pytest.mark.parametrize("wrap", (lambda one: one, ByInterface, ByCapsule, memoryview),
                         ids=("numpy", "array interface", "dlpack", "buffer"))
def test_the_gate_shows_memory_without_a_copy(wrap):
    mine = np.arange(6.0).reshape(2, 3)
    view = gate.view_of(wrap(mine), "it")
    assert view.shape == (2, 3) and np.shares_memory(view, mine)


def test_the_gate_refuses_devices():
    thing = type("OnDevice", (), {"__cuda_array_interface__": {}})()
    with pytest.raises(UsageError, match="it: it lies on a device"):
        gate.view_of(thing, "it")
