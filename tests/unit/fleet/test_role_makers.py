"""Role makers: who a process is, from arguments and from the environment."""

import random

import numpy as np
import pytest

from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.fleet.facade import TranspilerFleet
from fleet_mpi.fleet.paddle2 import Fleet2
from fleet_mpi.fleet.role_makers import (
    GeneralRoleMaker,
    MPISymetricRoleMaker,
    MPISymmetricRoleMaker,
    PaddleCloudRoleMaker,
    Role,
    UserDefinedCollectiveRoleMaker,
    UserDefinedRoleMaker,
    UserDefinedRoleMaker2,
)
from fleet_mpi.ranks import cluster
from fleet_mpi.ranks.cluster import Cluster, Member, World
from fleet_mpi.ranks.roles import roles_for

SERVERS = ["127.0.0.1:6001", "127.0.0.1:6002"]


def test_roles_have_the_numbers_of_the_original():
    assert (Role.WORKER, Role.SERVER, Role.HETER_WORKER, Role.ALL) == (1, 2, 3, 4)


def test_a_worker_by_arguments():
    role = UserDefinedRoleMaker(current_id=2, role=Role.WORKER, worker_num=3, server_endpoints=SERVERS)
    assert role.is_worker() and not role.is_server() and not role.is_first_worker()
    assert (role.worker_index(), role.worker_num(), role.server_num()) == (2, 3, 2)
    assert role.get_pserver_endpoints() == SERVERS


def test_a_server_by_arguments():
    role = UserDefinedRoleMaker(current_id=1, role=Role.SERVER, worker_num=3, server_endpoints=SERVERS)
    assert role.is_server() and role.server_index() == 1
    assert role.to_string().startswith("role: SERVER, index: 1, workers: 3")


@pytest.mark.parametrize("wrong, said", (
    (dict(server_endpoints=None), "server_endpoints: expected a list"),
    (dict(server_endpoints=[]), "server_endpoints: expected a list"),
    (dict(server_endpoints=SERVERS * 2), "the same endpoint twice"),
    (dict(current_id=-1), "current_id: expected a whole number of at least 0, got -1"),
    (dict(current_id=3), "current_id 3 is out of range: there are 3"),
    (dict(current_id=2, role=Role.SERVER), "current_id 2 is out of range: there are 2"),
    (dict(worker_num=0), "worker_num: expected a whole number of at least 1, got 0"),
    (dict(role=7), "role: expected Role.WORKER or Role.SERVER, got 7")))
def test_impossible_arguments_are_refused(wrong, said):
    given = dict(current_id=0, role=Role.WORKER, worker_num=3, server_endpoints=SERVERS)
    with pytest.raises(UsageError, match=said):
        UserDefinedRoleMaker(**{**given, **wrong})


def test_a_collective_worker_by_arguments():
    role = UserDefinedCollectiveRoleMaker(current_id=1, worker_endpoints=["a:1", "b:1"])
    assert role.is_worker() and role.worker_num() == 2 and role.get_trainer_endpoints() == ["a:1", "b:1"]
    with pytest.raises(UsageError, match="current_id 2 is out of range"):
        UserDefinedCollectiveRoleMaker(2, ["a:1", "b:1"])


def test_the_2x_arguments_are_keywords():
    role = UserDefinedRoleMaker2(current_id=1, role=Role.WORKER, worker_endpoints=["a:1", "b:1"],
                                 server_endpoints=SERVERS)
    assert (role.worker_index(), role.worker_num(), role.server_num()) == (1, 2, 2)
    assert UserDefinedRoleMaker2(is_collective=True, worker_num=2, server_endpoints=SERVERS).server_num() == 0
    with pytest.raises(UsageError, match="give worker_num or worker_endpoints"):
        UserDefinedRoleMaker2()


@pytest.mark.parametrize("make", (MPISymetricRoleMaker, PaddleCloudRoleMaker, GeneralRoleMaker,
                                  lambda: PaddleCloudRoleMaker(is_collective=True)))
def test_one_process_without_a_launcher_is_worker_0_of_1(make):
    role = make()
    assert role.is_first_worker() and role.worker_num() == 1 and role.server_num() == 0


def job(monkeypatch, **variables):
    """A launcher's environment."""
    given = dict(PADDLE_PSERVERS_IP_PORT_LIST=",".join(SERVERS), PADDLE_TRAINERS_NUM="3", TRAINING_ROLE="TRAINER",
                 PADDLE_TRAINER_ID="0")
    for name, value in {**given, **variables}.items():
        monkeypatch.setenv(name, value) if value is not None else monkeypatch.delenv(name, raising=False)


def test_a_worker_by_the_environment(monkeypatch):
    job(monkeypatch, PADDLE_TRAINER_ID="2")
    role = PaddleCloudRoleMaker()
    assert (role.worker_index(), role.worker_num(), role.server_num()) == (2, 3, 2)


def test_a_server_by_the_environment(monkeypatch):
    job(monkeypatch, TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1", PADDLE_PORT="6002")
    role = PaddleCloudRoleMaker()
    assert role.is_server() and role.server_index() == 1


def test_a_collective_job_by_the_environment(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "a:1,b:1")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    role = PaddleCloudRoleMaker(is_collective=True)
    assert (role.worker_index(), role.worker_num()) == (1, 2)


@pytest.mark.parametrize("variables, said", (
    (dict(TRAINING_ROLE="BOSS"), "TRAINING_ROLE='BOSS': expected TRAINER or PSERVER"),
    (dict(TRAINING_ROLE=None), "TRAINING_ROLE is not set"),
    (dict(PADDLE_TRAINERS_NUM=None), "PADDLE_TRAINERS_NUM is not set"),
    (dict(PADDLE_TRAINERS_NUM="many"), "PADDLE_TRAINERS_NUM='many': expected int"),
    (dict(PADDLE_TRAINER_ID=None), "PADDLE_TRAINER_ID is not set"),
    (dict(TRAINING_ROLE="PSERVER", POD_IP="9.9.9.9", PADDLE_PORT="1"), "9.9.9.9:1 .* is not among"),
    (dict(TRAINING_ROLE="PSERVER", PADDLE_PSERVER_ID="2"), "PADDLE_PSERVER_ID=2: there are 2 servers")))
def test_an_incomplete_environment_is_named(monkeypatch, variables, said):
    job(monkeypatch, **variables)
    with pytest.raises(EnvironmentProblem, match=said):
        PaddleCloudRoleMaker()


def test_what_one_process_computes_with_itself():
    role, output = PaddleCloudRoleMaker(), np.zeros(2)
    role.all_reduce_worker(np.array([1.0, 2.0]), output)
    assert output.tolist() == [1, 2] and role.all_gather(3) == [3] and role._node_type_comm is None
    with pytest.raises(UsageError, match="mode must be sum, max or min, got 'median'"):
        role.all_reduce_worker(output, output, "median")


def letters(roles):
    """The roles of all ranks, a letter each."""
    return "".join("s" if role == Role.SERVER else "w" for role, _ in roles)


@pytest.mark.parametrize("size, servers, ratio, expected", (
    (1, 0, "", "w"), (2, 0, "", "sw"), (3, 0, "", "sws"), (4, 0, "", "swsw"), (5, 0, "", "swsws"), (6, 0, "", "swswsw"),
    (5, 1, "", "swwww"), (5, 2, "", "sswww"), (5, 4, "", "ssssw"), (1, 3, "", "w"),
    (8, 0, "1:3", "swwwswww"), (7, 0, "2:1", "sswssws"), (6, 0, "1 : 1", "swswsw"), (2, 0, "1:5", "sw"),
    (1, 0, "2:1", "w"),
    (3, 0, "0:1", "www")))
def test_mpi_gives_roles_by_rank(size, servers, ratio, expected):
    roles = roles_for(size, servers, ratio)
    assert letters(roles) == expected
    for role in Role.SERVER, Role.WORKER:
        assert [index for one, index in roles if one == role] == list(range(letters(roles).count(
            "s" if role == Role.SERVER else "w")))


@pytest.mark.parametrize("size", range(2, 40))
def test_odd_worlds_have_one_server_more_than_workers(size):
    """B7: counted right, for every size."""
    found = letters(roles_for(size))
    assert (found.count("s"), found.count("w")) == ((size + 1) // 2, size // 2)


@pytest.mark.parametrize("size, servers, ratio, said", (
    (4, 4, "", "FLEET_MPI_SERVERS=4: expected 1 to 3 of 4 ranks"), (4, -1, "", "FLEET_MPI_SERVERS=-1: expected 1 to 3"),
    (4, 1, "1:3", "are both set"), (4, 0, "1:0", "FLEET_MPI_SERVER_RATIO='1:0': expected servers:workers"),
    (4, 0, "half", "FLEET_MPI_SERVER_RATIO='half'"), (2, 0, "2:1", "with 2 ranks none is left to work")))
def test_worlds_without_a_worker_are_refused(size, servers, ratio, said):
    with pytest.raises(EnvironmentProblem, match=said):
        roles_for(size, servers, ratio)


class Rank(Cluster):
    """A member of a made-up job; together its members have 1, 2, 3, ... of everything."""

    def all_reduce(self, array, mode="sum", among="worker"):
        """As if each member had come with its number."""
        self._group(among)
        return np.asarray(array) * 0 + sum(range(1, len(self._groups[among]) + 1))

    def all_gather(self, value, among="worker"):
        """Who was there."""
        self._group(among)
        return [str(member) for member in self._groups[among]]

    def barrier(self, among="worker"):
        """Notes that it was called."""
        self.waited.append(among)

    waited = ()


@pytest.fixture
def on_rank(monkeypatch):
    """Let this process be a rank of a larger world; what joins is noted."""
    class Comm:
        def Dup(self):
            return self

        def Split(self, color, key):
            return self

    def on_rank(rank, size):
        def join(role, index, endpoint="", workers=None, servers=None):
            join.told = (role, index, endpoint, workers, servers)
            members = [Member(at, "server" if one == Role.SERVER else "worker", number, f"h:{at}", "h")
                       for at, (one, number) in enumerate(roles_for(size))]
            join.cluster = Rank(members, rank, Comm())
            join.cluster.waited = []
            return join.cluster
        monkeypatch.setattr(cluster, "world", lambda: World(rank, size, None))
        monkeypatch.setattr(cluster, "join", join)
        return join
    return on_rank


@pytest.mark.parametrize("make", (MPISymetricRoleMaker, MPISymmetricRoleMaker, PaddleCloudRoleMaker, GeneralRoleMaker))
@pytest.mark.parametrize("size", (2, 3, 4, 5))
def test_every_getter_is_whole_and_the_same_on_every_rank(on_rank, size, make):
    """B3: no 2.0 workers, no worker 0.5; B5: no 0 workers on servers; and never N separate trainings."""
    first = 0
    for rank in range(size):
        on_rank(rank, size)
        role = make()
        numbers = (role.worker_num(), role.server_num(), role.worker_index(), role.server_index(), role.role_id())
        assert {type(number) for number in numbers} == {int}
        assert numbers[:2] == (size // 2, (size + 1) // 2) and numbers[2:] == (rank // 2,) * 3
        assert role.is_worker() == (rank % 2 == 1) != role.is_server()
        first += role.is_first_worker()
    assert first == 1


def test_settings_choose_who_serves(on_rank, monkeypatch):
    on_rank(1, 4)
    assert MPISymetricRoleMaker().is_worker()
    monkeypatch.setenv("FLEET_MPI_SERVERS", "2")
    role = PaddleCloudRoleMaker()
    assert role.is_server() and (role.server_index(), role.server_num(), role.worker_num()) == (1, 2, 2)


def test_collective_ranks_are_all_workers(on_rank):
    """B33: and they say so."""
    join = on_rank(2, 3)
    role = PaddleCloudRoleMaker(is_collective=True)
    role.generate_role()
    assert role.is_worker() and (role.worker_index(), role.worker_num(), role.server_num()) == (2, 3, 0)
    assert join.told == ("worker", 2, "", 3, 0)
    assert UserDefinedRoleMaker2(is_collective=True, worker_num=2).is_worker()


def test_labels_are_those_the_ranks_told_each_other_and_nothing_is_drawn(on_rank):
    """B4: no port for two servers to share, and the script's random numbers stay as they were."""
    state = random.getstate()
    on_rank(0, 4)
    role = MPISymetricRoleMaker()
    role.generate_role()
    assert role.get_pserver_endpoints() == ["h:0", "h:2"] and role.get_trainer_endpoints() == ["h:1", "h:3"]
    assert random.getstate() == state


def test_init_without_a_role_maker_takes_the_one_for_mpi():
    """B6."""
    fleet = TranspilerFleet()
    fleet.init()
    assert isinstance(fleet.role, MPISymetricRoleMaker)


def test_a_role_is_joined_once_however_often_it_is_generated(on_rank):
    """B7: the second call raised."""
    join, role = on_rank(1, 2), MPISymetricRoleMaker()
    role.generate_role()
    joined = join.cluster
    role.generate_role()
    assert role._together() is joined is join.cluster


def test_the_end_of_a_worker_leaves_mpi_alone(on_rank):
    """B8: the original ended MPI before the servers had heard of it."""
    on_rank(1, 2)
    role = MPISymetricRoleMaker()
    role._finalize()
    role.barrier_worker()
    assert role._cluster.waited == ["worker"]


@pytest.mark.parametrize("make, told", (
    (lambda: UserDefinedRoleMaker(1, Role.SERVER, 2, SERVERS), ("server", 1, SERVERS[1], 2, SERVERS)),
    (lambda: UserDefinedRoleMaker(1, Role.WORKER, 2, SERVERS), ("worker", 1, "", 2, SERVERS)),
    (lambda: UserDefinedRoleMaker2(current_id=1, worker_endpoints=["a:1", "b:1"], server_endpoints=SERVERS),
     ("worker", 1, "b:1", 2, SERVERS)),
    (lambda: UserDefinedCollectiveRoleMaker(0, ["a:1", "b:1"]), ("worker", 0, "a:1", 2, 0)),
    (MPISymetricRoleMaker, ("worker", 0, "", 2, 2))))
def test_the_others_are_told_role_number_label_and_counts(on_rank, make, told):
    join = on_rank(1, 4)
    make().generate_role()
    assert join.told == told


def test_variables_tell_the_others_too(on_rank, monkeypatch):
    job(monkeypatch, TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1", PADDLE_PORT="6002")
    join = on_rank(0, 5)
    GeneralRoleMaker(path="/tmp", init_timeout_seconds=1).generate_role()
    assert join.told == ("server", 1, SERVERS[1], 3, SERVERS)


def test_a_servers_number_may_be_given_and_workers_counted_by_their_labels(monkeypatch):
    job(monkeypatch, TRAINING_ROLE="PSERVER", PADDLE_PSERVER_ID="1", PADDLE_TRAINERS_NUM=None,
        PADDLE_TRAINER_ENDPOINTS="a:1,b:1")
    role = GeneralRoleMaker()
    assert role.is_server() and (role.server_index(), role.worker_num()) == (1, 2)


def test_a_job_without_servers_has_no_server(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "a:1,b:1")
    monkeypatch.setenv("PADDLE_TRAINING_ROLE", "PSERVER")
    with pytest.raises(EnvironmentProblem, match="PADDLE_TRAINING_ROLE='PSERVER': a job without servers"):
        PaddleCloudRoleMaker(is_collective=True)


def test_collectives_go_over_all_ranks_of_the_group(on_rank):
    """B32: not the local value, and there is a group of servers and one of all."""
    on_rank(3, 5)
    role, output = MPISymetricRoleMaker(), np.zeros(2)
    role.all_reduce_worker(np.ones(2), output)
    assert output.tolist() == [3, 3] and role._all_reduce(np.ones(1), "sum", "all").tolist() == [15]
    everyone = ["worker 0 (rank 1, host h)", "worker 1 (rank 3, host h)", "server 0 (rank 0, host h)",
                "server 1 (rank 2, host h)", "server 2 (rank 4, host h)"]
    assert role.all_gather(0) == everyone == role._all_gather(0) and role._worker_gather(0) == everyone[:2]
    assert PaddleCloudRoleMaker()._all_gather(0) == everyone[:2]
    role.barrier_worker(), role.barrier_all(), role._barrier_server()
    assert role._cluster.waited == ["worker", "all"] and role._node_type_comm is not None


def test_util_reaches_every_group(on_rank):
    """B32, through fleet.util: on a server too."""
    on_rank(2, 3)
    fleet = Fleet2()
    fleet._role_maker = PaddleCloudRoleMaker()
    util = fleet.util
    assert util.all_reduce([1.0], comm_world="server").tolist() == [3] and util.all_reduce(1, comm_world="all") == 6
    assert util.all_gather(0, "server") == ["server 0 (rank 0, host h)", "server 1 (rank 2, host h)"]
    util.barrier("server"), util.barrier("all")
    assert fleet._role_maker._cluster.waited == ["server", "all"]
    with pytest.raises(UsageError, match="is no worker and takes no part"):
        util.all_reduce([1.0])


def test_a_server_that_calls_what_workers_do_is_told_once_and_goes_on(on_rank, capsys):
    on_rank(0, 3)
    role, output = MPISymetricRoleMaker(), np.zeros(2)
    for _ in range(2):
        role.all_reduce_worker(np.ones(2), output)
        role.barrier_worker()
    assert output.tolist() == [0, 0] and role._worker_gather(1) is None and role._cluster.waited == []
    assert capsys.readouterr().err.count("means nothing to server 0 (rank 0, host h)") == 2


@pytest.mark.parametrize("make", (PaddleCloudRoleMaker, MPISymetricRoleMaker))
def test_a_role_that_is_none_is_refused_also_where_the_rank_decides(make, monkeypatch):
    monkeypatch.setenv("TRAINING_ROLE", "FOO")
    with pytest.raises(EnvironmentProblem, match="TRAINING_ROLE='FOO': expected TRAINER or PSERVER"):
        make()


@pytest.mark.parametrize("variables",
                         (dict(PADDLE_TRAINER_ID="3"), dict(PADDLE_TRAINERS_NUM="1", PADDLE_TRAINER_ID="1")))
def test_a_worker_beyond_the_count_is_refused(variables, monkeypatch):
    job(monkeypatch, **variables)
    with pytest.raises(UsageError, match="says that it is worker [13], but there are [13], numbered from 0"):
        PaddleCloudRoleMaker().generate_role()


@pytest.mark.parametrize("launched, collective, lines", ((True, False, 1), (True, True, 0), (False, False, 0)))
def test_one_rank_under_a_launcher_says_that_it_trains_alone(launched, collective, lines, monkeypatch, capfd):
    monkeypatch.setattr(cluster, "launched", lambda: launched)
    monkeypatch.setattr(cluster, "world", lambda: World(0, 1, None))
    for _ in range(2):
        PaddleCloudRoleMaker(is_collective=collective)
    told = capfd.readouterr().err.splitlines()
    assert len(told) == lines and all("it trains alone" in line and "mpirun -np 4" in line for line in told)
