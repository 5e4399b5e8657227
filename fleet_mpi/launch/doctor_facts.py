"""What one process can see of its surroundings, as plain values that travel as JSON; judges nothing.

Looking may hang (a dead file server, a broken GPU driver), so this runs in a process that somebody else can end:
see ``doctor_probe``. Starts no MPI.
"""

from __future__ import annotations

import glob
import importlib.metadata
import os
import platform
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import fleet_mpi
from fleet_mpi.checkpoint.folders.replacing import replacing
from fleet_mpi.collective import device_reducers, nccl_backend
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.kernels import threads
from fleet_mpi.kernels.numba import cache_folder
from fleet_mpi.launch import mpirun
from fleet_mpi.program.engine import places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

SHARED_MEMORY = "/dev/shm"
SEGMENTS = ("mpich_shm_", "sm_segment.", "vader_segment.", "psm2_shm.", "psm3_shm.", "ucx_shm_")
THREAD_LIMITS = ("FLEET_MPI_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
SLURM = ("SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS",
         "SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_MPI_TYPE")
ROOT_MAY = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
DRIVER = ("/proc/driver/nvidia/version", "/dev/nvidia0")
ASKING_S = 5        # for another command's answer; a step that asks three still ends in its time
_REPLACED = 40      # times; what is not atomic shows in the first few
_QUOTA = "/sys/fs/cgroup/cpu.max"
Facts: TypeAlias = "dict[str, Any]"  # by name, what JSON can say


def steps(environ: Mapping[str, str], alone: bool) -> tuple[tuple[str, Callable[[], Facts]], ...]:
    """(name, function) of everything there is to look at; each function gives a dict, and may take its time.

    ``alone``: whether this process has no launcher, so that it looks for one too.
    """
    for_all = (("software", software), ("cores", cores), ("compute threads", lambda: compute_threads(environ)),
               ("shared memory", shared_memory), ("GPU", gpu), ("cache folder", cache), ("rename", rename),
               ("Slurm", lambda: slurm(environ)), ("MPI library", library))
    return (*for_all, ("mpirun", lambda: launcher_at_hand(environ))) if alone else for_all


def software() -> Facts:
    """Who this is, and the versions of everything that ranks have to agree on."""
    versions = {"Python": platform.python_version(), "fleet_mpi": fleet_mpi.__version__, "numpy": np.__version__}
    for name in ("numba", "mpi4py"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "none"
    return {"host": socket.gethostname(), "versions": versions, "prefix": sys.prefix}


def cores() -> Facts:
    """The cores that this process may run on, those of the machine, and a container's limit (None: none)."""
    may = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return {"cores": sorted(may), "machine_cores": os.cpu_count(), "quota": quota()}


def quota(path: str = _QUOTA) -> float | None:
    """How many cores' worth of time the container gets; None where it has no limit."""
    try:
        with open(path) as file:
            share, period = file.read().split()[:2]
        return None if share == "max" else int(share) / int(period)
    except (OSError, ValueError):
        return None


def compute_threads(environ: Mapping[str, str]) -> Facts:
    """How many threads this rank computes with, how many BLAS would take, and what the environment says of it."""
    from threadpoolctl import threadpool_info

    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    try:
        own = threads.threads()
    except EnvironmentProblem as problem:
        return {"threads": 0, "threads_problem": str(problem), "blas": max(blas, default=1), "limits": {}}
    return {"threads": own, "threads_problem": "", "blas": max(blas, default=1),
            "limits": {name: environ[name] for name in THREAD_LIMITS if environ.get(name)}}


def shared_memory(folder: str = SHARED_MEMORY) -> Facts:
    """Bytes of the folder through which ranks of one machine talk, and what killed jobs of this user left there."""
    try:
        room = os.statvfs(folder)
        left = left_over(folder)
    except OSError as error:
        return {"shm_problem": str(error)}
    return {"shm_problem": "", "shm_free": room.f_bavail * room.f_frsize,
            "left_over": len(left), "left_over_bytes": sum(left)}


def left_over(folder: str) -> list[int]:
    """Sizes on disk of the segments of MPI libraries in the folder that are this user's and in nobody's memory."""
    paths = [path for start in SEGMENTS for path in glob.glob(os.path.join(folder, start + "*"))]
    if not paths:
        return []
    used = _mapped(folder)
    sizes = []
    for path in paths:
        try:
            about = os.stat(path)
        except OSError:
            continue  # a job has just ended
        if about.st_uid == os.geteuid() and stat.S_ISREG(about.st_mode) and path not in used:
            sizes.append(about.st_blocks * 512)
    return sizes


def _mapped(folder: str) -> set[str]:
    """The files of the folder that some process which this one may look at has in its memory."""
    found: set[str] = set()
    for path in glob.glob("/proc/[0-9]*/maps"):
        try:
            with open(path) as maps:
                found.update(line.split(maxsplit=5)[-1].strip() for line in maps if f" {folder}/" in line)
        except OSError:
            pass  # ended, or another user's
    return found


def gpu() -> Facts:
    """Whether there is a driver, why cupy cannot use a device (empty: it can), how many there are, which one is this
    rank's, and why NCCL cannot be used on it.
    """
    about = {"has_driver": any(os.path.exists(path) for path in DRIVER), "no_gpu": places.why_no_gpu() or "",
             "gpus": places.cuda_device_count(), "device": "", "no_nccl": ""}
    if about["gpus"]:
        xp = places.CUDAPlace().array_module()
        about.update(device=device_reducers.address(xp), no_nccl=nccl_backend.why_not(xp))
    return about


def cache() -> Facts:
    """The folder where compiled kernels are kept, its kind of file system, why it cannot be written to, and whether it
    is but a temporary one, since no other can be.
    """
    try:
        from fleet_mpi.kernels.numba.elementary import _exp32
    except (ImportError, RuntimeError) as error:  # a numba that does not work
        return {"cache": "", "cache_kind": "", "cache_problem": " ".join(str(error).split()), "is_temporary": False}
    folder = _exp32.stats.cache_path
    if folder is None:
        return {"cache": "", "cache_kind": "", "cache_problem": "", "is_temporary": True}
    return {"cache": folder, "cache_kind": kind_of_file_system(folder), "cache_problem": _why_not_writable(folder),
            "is_temporary": cache_folder.is_used()}


def _why_not_writable(folder: str) -> str:
    path = os.path.join(folder, f".doctor.{secrets.token_hex(8)}")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(path, "xb") as file:
            file.write(b"x")
        os.unlink(path)
    except OSError as error:
        return str(error)
    return ""


def rename(folder: str = ".") -> Facts:
    """Whether a file in the working folder can be replaced while another process reads it, as checkpoints are."""
    path = os.path.join(os.path.abspath(folder), f".doctor.{secrets.token_hex(8)}")
    about = {"folder": os.path.dirname(path), "folder_kind": kind_of_file_system(folder)}
    try:
        seen = _replaced_while_read(path)
    except OSError as error:
        return {**about, "is_torn": False, "rename_problem": str(error)}
    finally:
        if os.path.exists(path):
            os.unlink(path)
    wrong = sorted(seen - {b"old" * 1000, b"new" * 1000})
    return {**about, "is_torn": bool(wrong),
            "rename_problem": f"a reader got {wrong[0][:30]!r}, neither the old file nor the new" if wrong else ""}


def _replaced_while_read(path: str) -> set[bytes]:
    """Everything that a reader saw while the file was replaced again and again; that it was missing, too."""
    seen: set[bytes] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            try:
                with open(path, "rb") as file:
                    seen.add(file.read())
            except OSError as error:
                seen.add(str(error.strerror).encode())
    with open(path, "wb") as file:
        file.write(b"old" * 1000)
    reader = threading.Thread(target=look, daemon=True)
    reader.start()
    try:
        for turn in range(_REPLACED):
            with replacing(path) as stream:
                stream.write((b"new", b"old")[turn % 2] * 1000)
    finally:
        ended.set()
        reader.join(ASKING_S)
    with open(path, "rb") as last:
        seen.add(last.read())
    return seen


def kind_of_file_system(folder: str, mounts: str = "/proc/mounts") -> str:
    """As the kernel calls it, e.g. ext4 or nfs4; empty where it does not say."""
    folder = os.path.realpath(folder)
    best = ("", "")
    try:
        with open(mounts) as lines:
            for line in lines:
                _, place, kind = line.split()[:3]
                place = place.replace("\\040", " ")
                if (folder + "/").startswith(place.rstrip("/") + "/") and len(place) >= len(best[0]):
                    best = (place, kind)  # of two on one place, the later covers the earlier
    except (OSError, ValueError):
        pass
    return best[1]


def library() -> Facts:
    """What the MPI that mpi4py would load calls itself, asked without starting it, or why it cannot be loaded."""
    told, problem = ask([sys.executable, "-m", "mpi4py", "--mpi-lib-version"])
    return {"library": first_line(told), "library_problem": problem}


def first_line(text: str) -> str:
    """Of what a library says of itself; some end it by a zero byte."""
    return " ".join(text.replace("\0", "").strip().partition("\n")[0].split())


def launcher_at_hand(environ: Mapping[str, str]) -> Facts:
    """The mpirun that fleetrun would take, why it takes none, and the one that a user gets who types mpirun."""
    search = environ.get("PATH", "")
    about = {"mpirun": "", "mpirun_family": "", "mpirun_problem": "", "typed": "", "typed_family": "",
             "is_root": os.geteuid() == 0, "root_may": all(environ.get(name) for name in ROOT_MAY)}
    try:
        about["mpirun"], about["mpirun_family"] = mpirun.find_mpirun(search=search)
    except (EnvironmentProblem, OSError, subprocess.TimeoutExpired) as error:
        about["mpirun_problem"] = str(error)
    typed = shutil.which("mpirun", path=search)
    if typed is not None and typed != about["mpirun"]:
        try:
            about.update(typed=typed, typed_family=mpirun.family_of(mpirun.version_of(typed)))
        except (EnvironmentProblem, OSError, subprocess.TimeoutExpired):
            pass  # of no family we know: nobody can say whether it fits
    return about


def slurm(environ: Mapping[str, str]) -> Facts:
    """What Slurm says of the job (empty: this is none), and what its srun offers as --mpi."""
    about = {name: environ[name] for name in SLURM if environ.get(name)}
    if environ.get("SLURM_PROCID", "0") != "0" or shutil.which("srun") is None:
        return {"slurm": about, "has_srun": False, "plugins": [], "broken": {}, "srun_problem": ""}
    told, problem = ask(["srun", "--mpi=list"])
    words = [line.strip() for line in told.splitlines()]
    plugins = [word for word in words if word and " " not in word]
    broken = {name: _why_srun_cannot(name) for name in mpirun.PLUGINS.values() if name in plugins}
    return {"slurm": about, "has_srun": True, "srun_problem": problem, "plugins": plugins,
            "broken": {name: why for name, why in broken.items() if why}}


def _why_srun_cannot(plugin: str) -> str:
    """srun lists what lies in a folder; whether it loads shows when it is asked for. Nothing is started."""
    try:
        said = _run(["srun", f"--mpi={plugin}", "--test-only", "-n", "1", "true"]).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if "Invalid MPI type" not in said:
        return ""  # other reasons not to start now (no such partition, no more hours) are no fault of the plugin
    return next(line for line in said.splitlines() if "error:" in line).partition("error:")[2].strip()


def ask(command: Sequence[str]) -> tuple[str, str]:
    """(what a command says on both its outputs, what went wrong: the last line of its errors)."""
    try:
        asked = _run(command)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    if asked.returncode == 0:
        return (asked.stdout + asked.stderr).strip(), ""
    said = asked.stderr.strip() or asked.stdout.strip()
    return "", said.splitlines()[-1] if said else f"exit code {asked.returncode}"


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          timeout=ASKING_S)
