"""Role makers: who a process is, from arguments and from the environment."""

import numpy as np
import pytest

from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.fleet.role_makers import (GeneralRoleMaker, MPISymetricRoleMaker, PaddleCloudRoleMaker, Role,
                                         UserDefinedCollectiveRoleMaker, UserDefinedRoleMaker, UserDefinedRoleMaker2)

SERVERS = ["127.0.0.1:6001", "127.0.0.1:6002"]


def test_roles_have_the_numbers_of_the_original():
    assert (Role.WORKER, Role.SERVER, Role.HETER_WORKER, Role.ALL) == (1, 2, 3, 4)


def test_a_worker_by_arguments():
    role = UserDefinedRoleMaker(current_id=2, role=Role.WORKER, worker_num=3, server_endpoints=SERVERS)
    role.generate_role()
    role.generate_role()
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
    (dict(TRAINING_ROLE="PSERVER", POD_IP="9.9.9.9", PADDLE_PORT="1"), "9.9.9.9:1 .* is not among")))
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
