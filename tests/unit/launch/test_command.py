"""From jobs to the words of each launcher: a table. What runs on real hosts is in tests/mpi/test_launcher.py."""

import pytest

from fleet_mpi.launch import watched
from fleet_mpi.launch.command import command, told
from fleet_mpi.launch.job import Allocation, parse
from fleet_mpi.launch.mpirun import MPICH, OPEN_MPI, SLURM, Launcher

OPEN_5, OPEN_4 = Launcher("mpirun", OPEN_MPI, 5), Launcher("mpirun", OPEN_MPI, 4)
MPICH_5, MPICH_4 = Launcher("mpiexec", MPICH, 5), Launcher("mpiexec", MPICH, 4)
SRUN, SRUN_PMIX = Launcher("srun", SLURM, 0, "pmi2"), Launcher("srun", SLURM, 0, "pmix")
PROGRAM = f"py -I -S {watched.__file__} py -m fleet_mpi train.py -x"

BLOCKS = "--ips a,b --nproc_per_node 2"
TURNS = "--servers a:1,b:1 --workers a,b"
UNEVEN = "--servers a:1 --workers b,b"


def line(words, found, around=Allocation(8), environ=()):
    """The command's words; the program as PROGRAM, and -x NAME left out where they are not looked at."""
    made = command(parse([*words.split(), "train.py", "-x"], around), found, around, "py", dict(environ), root=False)
    return " ".join(made.words).replace(PROGRAM, "PROGRAM")


@pytest.mark.parametrize("words, found, cores, made", (
    ("-np 1", OPEN_5, 8, "mpirun --map-by :OVERSUBSCRIBE --bind-to none -np 1 PROGRAM"),
    ("-np 2", OPEN_5, 8, "mpirun --map-by :OVERSUBSCRIBE --bind-to none -np 2 PROGRAM"),
    ("-np 4", OPEN_5, 8, "mpirun --map-by :OVERSUBSCRIBE -np 4 PROGRAM"),
    ("-np 9", OPEN_5, 8, "mpirun --map-by :OVERSUBSCRIBE --bind-to none -np 9 PROGRAM"),
    ("-np 4", OPEN_4, 8, "mpirun --oversubscribe -np 4 PROGRAM"),
    ("-np 2", OPEN_4, 8, "mpirun --oversubscribe --bind-to none -np 2 PROGRAM"),
    ("-np 9", MPICH_5, 8, "mpiexec -np 9 PROGRAM"),
    ("-np 9", SRUN, 8, "srun --mpi=pmi2 --kill-on-bad-exit=1 --export=ALL -n 9 PROGRAM"),
    ("-np 9", SRUN_PMIX, 8, "srun --mpi=pmix --kill-on-bad-exit=1 --export=ALL -n 9 PROGRAM"),
    ("--gpus 0,1,2", OPEN_5, 8, "mpirun --map-by :OVERSUBSCRIBE -np 3 PROGRAM"),
    ("--server_num 1 --worker_num 2", MPICH_4, 8, "mpiexec -np 3 PROGRAM"),
    ("--ips 10.0.0.1 --nproc_per_node 2", MPICH_5, 8, "mpiexec -np 2 PROGRAM"),
))
def test_a_job_on_one_machine(words, found, cores, made):
    assert line(words, found, Allocation(cores, names=("10.0.0.1",))) == made


def test_a_job_on_one_other_machine():
    assert line("--ips 10.0.0.1 --nproc_per_node 2", MPICH_5,
                Allocation(8)) == "mpiexec -hosts 10.0.0.1:2 -np 2 PROGRAM"


@pytest.mark.parametrize("words, found, made", (
    (BLOCKS, OPEN_5, "mpirun --map-by :OVERSUBSCRIBE --bind-to none X -np 4 --host a:2,b:2 PROGRAM"),
    (BLOCKS, OPEN_4, "mpirun --oversubscribe --bind-to none X -np 4 --host a:2,b:2 PROGRAM"),
    (BLOCKS, MPICH_5, "mpiexec -hosts a:2,b:2 -np 4 PROGRAM"),
    (BLOCKS, MPICH_4, "mpiexec -hosts a:2,b:2 -np 4 PROGRAM"),
    (BLOCKS, SRUN,
     "srun --mpi=pmi2 --kill-on-bad-exit=1 --export=ALL -n 4 --distribution=arbitrary --nodelist=a,a,b,b PROGRAM"),
    (UNEVEN, OPEN_5, "mpirun --map-by :OVERSUBSCRIBE --bind-to none X -np 3 --host a:1,b:2 PROGRAM"),
    (UNEVEN, MPICH_5, "mpiexec -hosts a:1,b:2 -np 3 PROGRAM"),
    (UNEVEN, SRUN_PMIX,
     "srun --mpi=pmix --kill-on-bad-exit=1 --export=ALL -n 3 --distribution=arbitrary --nodelist=a,b,b PROGRAM"),
    (TURNS, OPEN_5,
     "mpirun --map-by :OVERSUBSCRIBE --bind-to none X -np 1 --host a:1 PROGRAM : -np 1 --host b:1 PROGRAM "
                    ": -np 1 --host a:1 PROGRAM : -np 1 --host b:1 PROGRAM"),
    (TURNS, MPICH_5, "mpiexec -rankmap 0,1,0,1 -hosts a:2,b:2 -np 4 PROGRAM"),
    (TURNS, MPICH_4, "mpiexec -hosts a:1,b:1,a:1,b:1 -np 4 PROGRAM"),
    (TURNS, SRUN,
     "srun --mpi=pmi2 --kill-on-bad-exit=1 --export=ALL -n 4 --distribution=arbitrary --nodelist=a,b,a,b PROGRAM"),
    (f"--rsh /bin/own {UNEVEN}", OPEN_5,
     "mpirun --prtemca plm_ssh_agent /bin/own --map-by :OVERSUBSCRIBE --bind-to none X -np 3 --host a:1,b:2 PROGRAM"),
    (f"--rsh /bin/own {UNEVEN}", OPEN_4,
     "mpirun --mca plm_rsh_agent /bin/own --oversubscribe --bind-to none X -np 3 --host a:1,b:2 PROGRAM"),
    (f"--rsh /bin/own {UNEVEN}", MPICH_5, "mpiexec -launcher ssh -launcher-exec /bin/own -hosts a:1,b:2 -np 3 PROGRAM"),
))
def test_a_job_on_several_hosts_keeps_the_order_of_ranks(words, found, made):
    words = line(words, found).split()
    while "-x" in words:
        at = words.index("-x")
        words[at:at + 2] = [] if words[at - 1] == "X" else ["X"]
    assert " ".join(words) == made


def test_open_mpi_hands_variables_on_to_other_hosts_by_name():
    environ = {"FLAGS_rpc_deadline": "7", "PYTHONPATH": "/x", "SECRET": "s", "HOME": "/home"}
    handed = line(UNEVEN, OPEN_5, environ=environ).split(" -np ")[0].split(" -x ")[1:]
    assert handed == sorted(handed) and {"FLAGS_rpc_deadline", "PYTHONPATH", "PADDLE_TRAINER_ENDPOINTS",
                                         "FLEET_MPI_LAUNCH_SERVERS"} <= set(handed)
    assert not {"SECRET", "HOME"} & set(handed)
    assert "-x" not in line("--server_num 1 --worker_num 2", OPEN_5, environ=environ).replace(PROGRAM, "").split()[:-1]


def test_nodes_of_a_slurm_job_are_the_hosts_of_a_collective_one():
    around = Allocation(8, nodes=("n1", "n2"), tasks=2)
    assert line("--nproc_per_node 2", SRUN, around) == (
        "srun --mpi=pmi2 --kill-on-bad-exit=1 --export=ALL -n 4 --overcommit --distribution=arbitrary "
        "--nodelist=n1,n1,n2,n2 PROGRAM")
    assert line("--nproc_per_node 2 --nnodes 1", MPICH_5, around) == "mpiexec -hosts n1:2 -np 2 PROGRAM"
    assert line("--server_num 1 --worker_num 1", MPICH_5, around) == "mpiexec -np 2 PROGRAM"
    assert line("-np 2", MPICH_5, around) == "mpiexec -np 2 PROGRAM"


def added(words, found=MPICH_5, environ=(), **more):
    """The variables that a command needs."""
    return command(parse([*words.split(), "train.py"]), found, Allocation(8), "py", dict(environ), **more).added


def test_ranks_of_a_plain_job_are_told_only_where_notes_go():
    assert added("-np 2 --log_dir=", folder="/dir") == {"FLEET_MPI_LAUNCH_DIR": "/dir"}


def test_ranks_with_servers_are_told_who_serves(tmp_path):
    assert added(f"--server_num 1 --worker_num 2 --log_dir {tmp_path}") == {
        "FLEET_MPI_LAUNCH_SERVERS": "1", "FLEET_MPI_SERVERS": "1", "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:6170",
        "PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:6171,127.0.0.1:6172", "PADDLE_TRAINERS_NUM": "2",
        "FLEET_MPI_LAUNCH_LOGS": str(tmp_path), "FLEET_MPI_LAUNCH_OPENED": "w", "FLEET_MPI_LAUNCH_ECHO": "all"}


def test_ranks_of_a_collective_job_are_told_their_devices(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert added("--gpus 0,1") == {
        "FLEET_MPI_LAUNCH_SERVERS": "0", "PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:6170,127.0.0.1:6171",
        "PADDLE_TRAINERS_NUM": "2", "FLEET_MPI_LAUNCH_DEVICES": "0;1", "FLEET_MPI_LAUNCH_PER_NODE": "2",
        "FLEET_MPI_LAUNCH_LOGS": str(tmp_path / "log"), "FLEET_MPI_LAUNCH_OPENED": "a",
        "FLEET_MPI_LAUNCH_ECHO": "first"}
    assert told(parse(["--gpus", "0,1", "train.py"])).keys() < added("--gpus 0,1").keys()


ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
NO_FABRIC = {"OMPI_MCA_btl": "^ofi", "OMPI_MCA_mtl": "^ofi"}


@pytest.mark.parametrize("words, environ, root, expected", (
    ("-np 2", {}, False, NO_FABRIC),
    ("-np 2", {}, True, {**NO_FABRIC, **ROOT}),
    ("-np 2", {"OMPI_MCA_pml": "ucx"}, False, {}),
    ("-np 2", {"OMPI_MCA_btl": "tcp,self"}, True, ROOT),
    ("-np 2", {"SLURM_JOB_NUM_NODES": "2"}, False, {}),
    ("-np 2", {"SLURM_JOB_NUM_NODES": "1"}, False, NO_FABRIC),
    ("--ips a,b -np 2 --log_dir=", {}, False, {}),
), ids=("user", "root", "fabric chosen", "transport chosen", "several nodes", "one node", "several hosts"))
def test_open_mpi_is_told_what_it_needs_unless_the_user_has_said_otherwise(words, environ, root, expected):
    made = added(words, OPEN_5, {"HOME": "/home", **environ}, root=root)
    assert {name: value for name, value in made.items() if name.startswith("OMPI")} == expected


def test_srun_needs_no_leave_for_root_but_open_mpis_ranks_need_its_way_of_speaking():
    made = added("-np 2 --log_dir=", SRUN_PMIX, root=True)
    assert made == {**NO_FABRIC, "PMIX_SECURITY_MODE": "native", "PMIX_GDS_MODULE": "hash"}
    assert added("-np 2 --log_dir=", SRUN, root=True) == {}


def test_a_command_is_shown_as_a_shell_would_take_it():
    made = command(parse(["-np", "1", "--log_dir=", "train.py", "a b"]), MPICH_5, Allocation(1), "py", {}, "/my dir")
    assert made.text().startswith("env FLEET_MPI_LAUNCH_DIR='/my dir' mpiexec -np 1 py ")
    assert made.text().endswith("train.py 'a b'")
