"""``--dry-run``: the command, the roles, and what servers would keep, on stdout; nothing is started."""

import pytest

import fleet_mpi.launch
from fleet_mpi import fluid
from fleet_mpi.launch import main
from fleet_mpi.launch.mpirun import MPICH, Launcher


@pytest.fixture
def said(capsys, monkeypatch, tmp_path):
    """Run the launcher where ``train.py`` is; its exit code and stdout."""
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(fleet_mpi.launch.mpirun, "find_launcher", lambda name: Launcher(name, MPICH))
    monkeypatch.setattr(fleet_mpi.launch.running, "run", lambda *_: pytest.fail("nothing is to be started"))

    def run(*words):
        code = main([*words, "train.py"])
        return code, capsys.readouterr().out
    return run


def test_the_command_and_every_rank_are_shown_and_nothing_is_made(said, tmp_path):
    code, out = said("--dry-run", "--launcher", "mpiexec", "--servers", "a:1", "--workers", "a,b", "--gpus", "0")
    line, _, rest = out.partition("\n\n")
    assert code == 0 and " mpiexec -hosts a:2,b:1 -np 3 " in line and "PADDLE_TRAINER_ENDPOINTS=a:6171,b:6172" in line
    assert rest.splitlines()[:5] == [
        "rank  role      host  label   device", "0     server 0  a     a:1", "1     worker 0  a     a:6171  0",
        "2     worker 1  b     b:6172  0", "logs: log, on the host of each rank"]
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_it_is_told_how_to_see_what_servers_would_keep(said):
    _, out = said("--dry-run", "--server_num", "2", "--worker_num", "2")
    assert "only the script makes" in out and "python -m fleet_mpi plan --servers 2 --model FOLDER" in out
    assert "plan" not in said("--dry-run", "--nproc_per_node", "2")[1]


def test_of_a_saved_model_the_placement_is_shown(said, tmp_path):
    x = fluid.layers.data(name="x", shape=[13])
    y = fluid.layers.fc(x, 2000)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [y], exe)
    code, out = said("--dry-run", "--server_num", "2", "--worker_num", "2", "--model", "model")
    assert code == 0 and "fc_0.w_0.block1" in out and "on 2 servers" in out
    assert said("--dry-run", "--server_num", "2", "--worker_num", "2", "--model", "nowhere")[0] == 2


def test_roles_that_the_script_gives_are_not_guessed(said):
    assert "0     as the script says  this machine" in said("--dry-run", "-np", "2")[1]


def test_on_several_nodes_mpi_spreads_ranks(said, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    assert "1     as the script says  as MPI spreads them" in said("--dry-run", "-np", "2")[1]
    assert "1     worker 1  n2    n2:6171" in said("--dry-run", "--nproc_per_node", "1")[1]
