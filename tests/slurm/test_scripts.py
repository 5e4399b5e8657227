"""The scripts of slurm/, submitted to a real Slurm: they run, make room when asked to, come back and finish."""

import json
import os
import re
from pathlib import Path

import pytest

from fleet_mpi.launch.mpirun import MPICH
from fleet_mpi.program.engine.places import why_no_gpu
from tests.gpu import device_jobs
from tests.mpi.jobs import mpirun, run_job

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[1] / "slurm"
STEPS = HERE / "steps.py"
SEED = {"FLEET_MPI_SEED": "11"}
NEEDS_GPU = pytest.mark.skipif(why_no_gpu() is not None, reason="needs a GPU, or the emulation of one")
# The emulation's, where env.sh says that it is.
FINDS_CUPY = {"PYTHONPATH": f"{SCRIPTS.parent}:{os.environ.get('PYTHONPATH', '')}"}
# This Slurm has no GPUs to give, and nodes of four CPUs.
WITHOUT_GPUS = "--gpus-per-node=0", "--ntasks-per-node=2", "--cpus-per-task=1"


class Training:
    """A training by steps.py in a folder of its own."""

    def __init__(self, folder, *words):
        self.folder = folder
        self.words = [STEPS, "--model-dir", folder / "model", "--result-dir", folder / "result", *words]

    def submit(self, slurm, script, *options):
        """sbatch it; returns the job's number."""
        return slurm.submit(f"--output={self.folder}/%j.out", *options, SCRIPTS / script, *self.words, **SEED)

    def without_a_stop(self, ranks):
        """What the model is after the same steps in one go, by mpirun alone."""
        ended = run_job(ranks, self.words, env=SEED, cwd=self.folder)
        assert ended.code == 0, ended.story()
        return re.search(r"model (\w{64})", ended.out)[1]


@pytest.fixture(scope="session")
def limited(slurm, tmp_path_factory):
    """(training, job) that cannot finish within its limit of two minutes; submitted early, looked at late."""
    training = Training(tmp_path_factory.mktemp("limited"), "--steps", "600", "--pause", "0.25")
    # Slurm looks at limits every half minute: the signal comes when half a minute to a minute has passed.
    return training, training.submit(slurm, "parameter_server.sbatch", "--time=2", "--signal=B:USR1@60")


def check_that_it_came_back(slurm, job, training, ranks):
    """A job stopped once, after the same step on both workers, resumed there, and ended as if never stopped."""
    assert slurm.wait(job) == {"COMPLETED"}, slurm.story(job)
    told = slurm.output(job)
    stopped = re.findall(r"worker (\d) stops after step (\d+)", told)
    begun = re.findall(r"worker (\d) begins at step (\d+)", told)
    assert sorted(worker for worker, _ in stopped) == ["0", "1"], told
    step, = {step for _, step in stopped}
    assert sorted(begun) == sorted([("0", "0"), ("1", "0"), ("0", step), ("1", step)]), told
    assert 0 < int(step), told
    assert f"job {job}: exit code 75" in told and f"job {job}: exit code 0" in told, told
    assert re.search(r"model (\w{64})", told)[1] == training.without_a_stop(ranks), told


def test_a_job_with_servers_runs(slurm, limited, tmp_path):
    job = slurm.submit(f"--output={tmp_path}/%j.out", "--ntasks=2", "--nodes=1", SCRIPTS / "parameter_server.sbatch",
                       "-m",
                       "fleet_mpi.examples.fit_a_line", **SEED)
    assert slurm.wait(job) == {"COMPLETED"}, slurm.story(job)
    assert "\r" not in slurm.output(job) and "\x1b" not in slurm.output(job), slurm.story(job)
    assert ": converged" in slurm.output(job) and f"job {job}: exit code 0" in slurm.output(job), slurm.story(job)


def test_a_job_that_fails_is_not_requeued(slurm, tmp_path):
    (tmp_path / "train.py").write_text("import sys\nsys.exit(7)\n")
    job = slurm.submit(f"--output={tmp_path}/%j.out", "--ntasks=2", "--nodes=1", SCRIPTS / "parameter_server.sbatch",
                       tmp_path / "train.py")
    assert slurm.wait(job) == {"FAILED"}, slurm.story(job)
    assert slurm.state(job)["Restarts"] == "0" and slurm.state(job)["ExitCode"] == "7:0", slurm.story(job)


def test_a_collective_job_that_is_asked_to_stop_comes_back_and_finishes(slurm, tmp_path):
    training = Training(tmp_path, "--collective", "--steps", "60", "--pause", "0.3")
    job = training.submit(slurm, "collective.sbatch")
    slurm.signal(job)
    slurm.start_again(job)
    check_that_it_came_back(slurm, job, training, ranks=2)


def test_a_job_that_is_cancelled_does_not_come_back(slurm, tmp_path):
    job = Training(tmp_path, "--collective", "--steps", "1000", "--pause", "0.3").submit(slurm, "collective.sbatch")
    slurm.until_it_trains(job)
    slurm.run("scancel", job)
    assert slurm.wait(job) == {"CANCELLED"} and slurm.state(job)["Restarts"] == "0", slurm.story(job)


def test_servers_and_workers_in_partitions_of_their_own_come_back_too(slurm, tmp_path):
    training = Training(tmp_path, "--steps", "60", "--pause", "0.3")
    said = slurm.run("bash", SCRIPTS / "heterogeneous.sbatch", *training.words, cwd=tmp_path, CPU_PARTITION="main",
                     GPU_PARTITION="main", **SEED)
    job = int(re.fullmatch(r"Submitted batch job (\d+)\n", said)[1])
    slurm.signal(job)
    slurm.start_again(job)
    check_that_it_came_back(slurm, job, training, ranks=4)
    assert re.search(r"2 servers on n\d, 2 workers on n\d", slurm.output(job)), slurm.story(job)


def test_a_job_that_reaches_its_time_limit_saves_comes_back_and_finishes(slurm, limited):
    training, job = limited
    slurm.start_again(job)
    check_that_it_came_back(slurm, job, training, ranks=4)


def test_an_array_job_measures_one_size_in_each_task(slurm, tmp_path):
    job = slurm.submit(f"--output={tmp_path}/%a.json", f"--error={tmp_path}/%a.err", "--array=0-1",
                       f"--chdir={SCRIPTS.parent}", SCRIPTS / "sweep.sbatch", SIZES="1024 4096", ROUNDS="1")
    assert slurm.wait(job) == {"COMPLETED"}, slurm.story(job)
    for task, floats in enumerate((1024, 4096)):
        line, = (tmp_path / f"{task}.json").read_text().splitlines()
        told = json.loads(line)
        assert (told["benchmark"], told["floats"], told["ranks"], told["job"]) == ("push_pull", floats, 2,
                                                                                   f"{job}_{task}")
        assert all(second > 0 for second in told["measured"]["ours"])


def test_without_a_gpu_the_acceptance_job_says_so_and_ends(slurm, tmp_path):
    report = tmp_path / "report.txt"
    job = slurm.submit(f"--output={tmp_path}/%j.out", "--nodes=1", *WITHOUT_GPUS, f"--chdir={SCRIPTS.parent}",
                       SCRIPTS / "gpu_acceptance.sbatch", REPORT=report, CUDA_VISIBLE_DEVICES="")
    assert slurm.wait(job) == {"FAILED"} and slurm.state(job)["ExitCode"] == "3:0", slurm.story(job)
    told = report.read_text()
    assert "FAIL device" in told and "no GPU can be used: " in told, told


@pytest.mark.slow
@NEEDS_GPU
def test_the_acceptance_job_tries_every_way_of_summing_and_a_lost_rank(slurm, tmp_path):
    report = tmp_path / "report.txt"
    job = slurm.submit(f"--output={tmp_path}/%j.out", "--nodes=1", *WITHOUT_GPUS, f"--chdir={SCRIPTS.parent}",
                       SCRIPTS / "gpu_acceptance.sbatch", REPORT=report, PARTS="doctor amp ranks lost", QUICK="1",
                       **FINDS_CUPY)
    slurm.wait(job, seconds=900)
    told = report.read_text()
    for line in ("doctor", "amp", "amp-exact", "amp, exact, ranks alike", "amp-nccl", "default", "default, ranks alike",
                 "exact-aware-no", "exact, aware or not", "fast-aware-no", "nccl", "nccl, ranks alike",
                 "device per rank", "lost-exact", "lost-fast", "lost-nccl"):
        assert re.search(rf"^ok +{re.escape(line)} ", told, re.MULTILINE), told


def test_ranks_that_srun_starts_as_singletons_refuse_to_train_alone(slurm, tmp_path):
    ended = run_job(None, ["-m", "fleet_mpi.examples.fit_a_line"], via="command", env=slurm.environ, cwd=tmp_path,
                    python=("srun", "--mpi=none", "--ntasks=2", slurm.environ["PYTHON"]))
    assert ended.code == 3, ended.story()
    said = "2 processes were started together (SLURM_STEP_NUM_TASKS), but MPI sees a world of 1"
    assert said in ended.err, ended.story()


@pytest.fixture
def srun(slurm):
    """A function of a number of ranks: what comes before a script so that srun starts them, on one node."""
    if mpirun().family != MPICH:
        pytest.skip("srun starts ranks of Open MPI by its plugin pmix only, which does not load with Debian's packages "
                    "that are installed")
    return lambda ranks: ("srun", "--mpi=pmi2", f"--ntasks={ranks}", "--nodes=1", slurm.environ["PYTHON"])


@NEEDS_GPU
def test_srun_gives_every_rank_a_device_of_its_own(slurm, srun, tmp_path):
    ended = run_job(None, [device_jobs.HERE / "own_device_rank.py", tmp_path], via="command", cwd=tmp_path,
                    env={**slurm.environ, **device_jobs.environment(2), **FINDS_CUPY}, python=srun(2))
    assert ended.code == 0, ended.story()
    assert device_jobs.own_devices(tmp_path, 2) == [0, 1]


def test_a_rank_of_srun_that_is_stopped_is_named(slurm, srun, tmp_path):
    (tmp_path / "train.py").write_text("import os, signal\nfrom fleet_mpi.ranks import cluster\n"
                                       "cluster.join('worker')\n"
                                       "if os.environ['SLURM_PROCID'] == '1':\n    os.kill(os.getpid(), "
                                       "signal.SIGSTOP)\n")
    ended = run_job(None, ["train.py"], via="command", env={**slurm.environ, "FLAGS_rpc_deadline": "4000"},
                    cwd=tmp_path, python=srun(3))
    assert ended.code == 5, ended.story()
    assert "rank 1 (worker 1, host " in ended.err, ended.story()
    assert "Stalled: this process was stopped by a signal" in ended.err, ended.story()
