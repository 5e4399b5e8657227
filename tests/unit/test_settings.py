"""Environment variables: their types, the values that are allowed, and names that nobody reads."""

import pytest

from fleet_mpi import notices, settings
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.program.engine.executor import Executor


@pytest.mark.parametrize("name, text, expected", (
    ("FLEET_MPI_THREADS", "-1", "a number from 0 up"), ("FLEET_MPI_THREADS", "two", "int"),
    ("CPU_NUM", "-4", "a number from 0 up"),
    ("TRAINING_ROLE", "FOO", "TRAINER or PSERVER"), ("PADDLE_TRAINING_ROLE", "trainer", "TRAINER or PSERVER"),
    ("FLEET_MPI_SHARED_MEMORY", "maybe", "0 or 1")))
def test_a_value_that_is_not_allowed_is_refused(monkeypatch, name, text, expected):
    monkeypatch.setenv(name, text)
    with pytest.raises(EnvironmentProblem, match=f"environment variable {name}='{text}': expected {expected}"):
        settings.get(name)


@pytest.mark.parametrize("name, text, value", (("FLEET_MPI_THREADS", "3", 3), ("TRAINING_ROLE", "PSERVER", "PSERVER"),
                                               ("TRAINING_ROLE", "", ""), ("FLEET_MPI_STALENESS", "-1", -1)))
def test_others_are_taken(monkeypatch, name, text, value):
    monkeypatch.setenv(name, text)
    assert settings.get(name) == value


@pytest.mark.parametrize("name, meant", (
    ("FLEET_MPI_THREDS", "did you mean FLEET_MPI_THREADS?"), ("FLEET_MPI_SERVER", "did you mean FLEET_MPI_SERVERS?"),
    ("FLEET_MPI_XYZ", "the page of settings in docs/reference lists all of them"),
    ("FLAGS_rpc_dealine", "did you mean FLAGS_rpc_deadline?"),
    ("FLAGS_communicator_max_merge_var", "did you mean FLAGS_communicator_max_merge_var_num?")))
def test_a_name_that_nobody_reads_is_told_with_the_nearest(name, meant):
    assert list(settings.strangers({name: "1", "FLEET_MPI_SEED": "1", "HOME": "/"})) == [(name, meant)]


@pytest.mark.parametrize("name",
                         (*sorted(settings.NAMES), "FLEET_MPI_LAUNCH_DIR", "FLAGS_check_nan_inf_level",
                          "FLAGS_selected_xpus",
                          "FLAGS_cudnn_deterministic", "FLAGS_eager_delete_tensor_gb", "FLAGS_allocator_strategy",
                          "FLAGS_fraction_of_gpu_memory_to_use", "FLAGS_rpc_retry_times"))
def test_known_names_and_flags_of_the_original_are_no_strangers(name):
    assert not list(settings.strangers([name]))


@pytest.fixture
def misspelt(monkeypatch):
    """The environment has one stranger."""
    for name in [name for name, _ in settings.strangers(settings.os.environ)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FLEET_MPI_THREDS", "1")


def test_an_executor_warns_once(misspelt, capfd):
    Executor()
    Executor()
    assert capfd.readouterr().err == ("fleet_mpi: environment variable FLEET_MPI_THREDS means nothing here; did you "
                                      "mean FLEET_MPI_THREADS?\n")


def test_an_executor_refuses_a_wrong_value_every_time(monkeypatch):
    monkeypatch.setenv("FLEET_MPI_THREADS", "-1")
    for _ in range(2):
        with pytest.raises(EnvironmentProblem, match="FLEET_MPI_THREADS='-1': expected a number from 0 up"):
            Executor()


def test_one_rank_warns_for_the_job(misspelt, capfd):
    with settings.override(PMIX_RANK=1):
        notices.check_environment()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("words, counts", (
    ("", ()), ("4", (4,)), ("2(x3),1", (2, 2, 2, 1)), ("1,16(x2)", (1, 16, 16)), ("2,?", ())))
def test_srun_says_how_many_tasks_each_node_has(words, counts):
    assert settings.counts_by_node(words) == counts
