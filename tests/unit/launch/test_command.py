"""From the words on the command line to mpirun's words: a table of each."""

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.launch import watched
from fleet_mpi.launch.command import Job, command_line, environment, parse
from fleet_mpi.launch.mpirun import MPICH, OPEN_MPI, Mpirun

WATCHED = ["py", "-I", "-S", watched.__file__, "py", "-m", "fleet_mpi"]


@pytest.mark.parametrize("words, ranks, servers, script", (
    ("-np 4 train.py", 4, None, "train.py"),
    ("-n 4 train.py --epochs 3", 4, None, "train.py --epochs 3"),
    ("-np 2 -m pkg.train -np 3", 2, None, "-m pkg.train -np 3"),
    ("--server_num 1 --worker_num 2 train.py", 3, 1, "train.py"),
    ("--server_num=1 --worker_num=2 train.py --server_num=9", 3, 1, "train.py --server_num=9"),
    ("-np 5 --server_num 2 train.py", 5, 2, "train.py"),
    ("-np 3 --server_num 1 --worker_num 2 train.py", 3, 1, "train.py"),
    ("--servers=127.0.0.1:6170,127.0.0.1:6171 --workers=127.0.0.1:6172 train.py", 3, 2, "train.py"),
    ("--servers=127.0.0.1:6170 --server_num=1 --worker_num 1 train.py", 2, 1, "train.py"),
    ("--endpoints 127.0.0.1:1,127.0.0.1:2 --start_port 6170 --worker_num 2 train.py", 4, 2, "train.py"),
    ("--nproc_per_node=2 train.py", 2, None, "train.py"),
    ("--gpus=0,1,2 train.py", 3, None, "train.py"),
    ("--ips 127.0.0.1 --gpus 0,1 train.py", 2, None, "train.py"),
))
def test_words_make_a_job(words, ranks, servers, script):
    assert parse(words.split()) == Job(ranks, servers, tuple(script.split()))


def test_counts_that_are_not_said_may_have_been_agreed_on():
    assert parse(["train.py"], unsaid=(4, 2)) == Job(4, 2, ("train.py",))
    assert parse(["-np", "3", "train.py"], unsaid=(4, 2)) == Job(3, None, ("train.py",))


def test_a_log_folder_that_stays_empty_is_spoken_of():
    note, = parse(["-np", "1", "--log_dir=logs", "train.py"]).notes
    assert "--log_dir" in note


@pytest.mark.parametrize("words, said", (
    ("train.py", "how many ranks"),
    ("-np 2", "no script"),
    ("-np 2 -m", "no script"),
    ("--server_num 1 train.py", "belong together"),
    ("--worker_num 1 train.py", "belong together"),
    ("--server_num 2 -np 2 train.py", "at least one server and one worker, got 2 and 0"),
    ("--server_num=0 --worker_num=2 train.py", "got 0 and 2; a job without servers is started by -np N"),
    ("-np 4 --server_num 1 --worker_num 2 train.py", "1 servers and 2 workers are 3 ranks, but 4"),
    ("--servers 127.0.0.1:1 --server_num 2 --worker_num 2 train.py", "2 servers are asked for, but 1 are listed"),
))
def test_what_cannot_be_meant_is_refused(words, said):
    with pytest.raises(UsageError, match=said):
        parse(words.split())


@pytest.mark.parametrize("words, said", (
    ("-np 0 train.py", "expected 1 or more, got 0"),
    ("-np two train.py", "two"),
    ("--servers=10.0.0.1:1,10.0.0.2:1 --worker_num 1 train.py", "10.0.0.1, 10.0.0.2: several hosts are not built"),
    ("--no_such_option 1 train.py", "--no_such_option"),
))
def test_a_wrong_option_is_shown_with_the_usage(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(words.split())
    told = capsys.readouterr()
    assert ended.value.code == 2 and said in told.err and "fleetrun -np N" in told.err and told.out == ""


@pytest.mark.parametrize("family, ranks, cores, options", (
    (OPEN_MPI, 1, 8, "--map-by :OVERSUBSCRIBE --bind-to none"),
    (OPEN_MPI, 2, 8, "--map-by :OVERSUBSCRIBE --bind-to none"),
    (OPEN_MPI, 4, 8, "--map-by :OVERSUBSCRIBE"),
    (OPEN_MPI, 9, 8, "--map-by :OVERSUBSCRIBE --bind-to none"),
    (MPICH, 2, 8, ""),
    (MPICH, 9, 8, ""),
))
def test_a_job_makes_a_command_line(family, ranks, cores, options):
    line = command_line(Job(ranks, None, ("train.py", "-x")), Mpirun("/bin/mpirun", family), "py", cores)
    assert line == ["/bin/mpirun", *options.split(), "-np", str(ranks), *WATCHED, "train.py", "-x"]


def test_ranks_get_the_launchers_environment_and_are_told_who_serves():
    found = Mpirun("/bin/mpirun", MPICH)
    assert environment(Job(2, None, ("t.py",)), found, {"A": "1"}, "/dir") == {"A": "1", "FLEET_MPI_LAUNCH_DIR": "/dir"}
    told = environment(Job(3, 1, ("t.py",)), found, {"FLEET_MPI_SERVERS": "9"}, "/dir")
    assert told["FLEET_MPI_SERVERS"] == "1"


ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
NO_FABRIC = {"OMPI_MCA_btl": "^ofi", "OMPI_MCA_mtl": "^ofi"}


@pytest.mark.parametrize("environ, root, added", (
    ({}, False, NO_FABRIC),
    ({}, True, {**NO_FABRIC, **ROOT}),
    ({"OMPI_MCA_pml": "ucx"}, False, {}),
    ({"OMPI_MCA_btl": "tcp,self"}, True, ROOT),
    ({"SLURM_JOB_NUM_NODES": "2"}, False, {}),
    ({"SLURM_JOB_NUM_NODES": "1"}, False, NO_FABRIC),
), ids=("user", "root", "fabric chosen", "transport chosen", "several nodes", "one node"))
def test_open_mpi_is_told_what_it_needs_unless_the_user_has_said_otherwise(environ, root, added):
    environ = {"HOME": "/home", **environ}
    made = environment(Job(2, None, ("t.py",)), Mpirun("/bin/mpirun", OPEN_MPI), environ, "/dir", root)
    assert made == {**environ, "FLEET_MPI_LAUNCH_DIR": "/dir", **added}
