"""Who a rank is: the variables of its role, and none of another."""

from fleet_mpi.launch import rank_roles

COLLECTIVE = {rank_roles.SERVERS: "0", rank_roles.WORKER_LIST: "a:1,a:2,b:1,b:2", rank_roles.PER_NODE: "2",
              rank_roles.DEVICES: "0;1;0;1"}
WITH_SERVERS = {rank_roles.SERVERS: "1", rank_roles.WORKER_LIST: "a:2,b:2", rank_roles.SERVER_LIST: "10.0.0.1:6170"}


def test_a_collective_rank_learns_its_number_its_label_and_its_device():
    assert rank_roles.rank_variables(COLLECTIVE, "3") == {
        "PADDLE_TRAINER_ID": "3", "PADDLE_CURRENT_ENDPOINT": "b:2", "FLAGS_selected_gpus": "1",
        "PADDLE_GLOBAL_RANK": "3",
        "PADDLE_GLOBAL_SIZE": "4", "PADDLE_LOCAL_RANK": "1", "PADDLE_RANK_IN_NODE": "1", "PADDLE_LOCAL_SIZE": "2",
        "PADDLE_NNODES": "2"}


def test_servers_and_workers_learn_their_roles():
    assert rank_roles.rank_variables(WITH_SERVERS, "0") == {
        "TRAINING_ROLE": "PSERVER", "PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_PSERVER_ID": "0", "POD_IP": "10.0.0.1",
        "PADDLE_PORT": "6170"}
    assert rank_roles.rank_variables(WITH_SERVERS, "2") == {
        "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1",
        "PADDLE_CURRENT_ENDPOINT": "b:2"}


def test_where_the_script_gives_roles_nothing_is_told():
    assert rank_roles.rank_variables({rank_roles.WORKER_LIST: "a:1"}, "0") == {}


def test_variables_of_another_role_are_not_inherited(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    strange = {"TRAINING_ROLE": "PSERVER", "POD_IP": "x", "PADDLE_TRAINER_ID": "9", rank_roles.SERVER_LIST: "x:1"}
    assert set(rank_roles.inherited({**strange, **COLLECTIVE})) == {"TRAINING_ROLE", "POD_IP", rank_roles.SERVER_LIST}
    assert set(rank_roles.inherited({**strange, **WITH_SERVERS})) == {"POD_IP"}
    assert rank_roles.inherited(strange) == []


def test_the_variables_reach_the_rank(start):
    process = start("import os; print(os.environ['PADDLE_TRAINER_ID'], os.environ.get('POD_IP'))", POD_IP="x",
                    **COLLECTIVE)
    assert process.communicate(timeout=30)[0] == "2 None\n"
