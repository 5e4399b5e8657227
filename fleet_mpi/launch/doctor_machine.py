"""What the facts of all ranks mean, the machines' part: cores, threads, memory, GPUs, folders, Slurm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fleet_mpi.collective.device_reducers import Ability, why_no_nccl
from fleet_mpi.errors import installing
from fleet_mpi.launch.doctor_checks import FAIL, OK, WARN, Finding, named, srun_plugin
from fleet_mpi.launch.mpirun import MPICH, OPEN_MPI

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.launch.doctor_checks import Case
    from fleet_mpi.launch.doctor_facts import Facts

MB = 1 << 20
_OWN_CACHE = "export NUMBA_CACHE_DIR=/tmp/numba-$USER (a folder of each host's own)"
MUCH_LEFT_OVER = 100 * MB
NETWORK = ("nfs", "lustre", "gpfs", "beegfs", "cifs", "smb", "ceph", "fuse.", "panfs", "afs", "9p", "glusterfs",
           "wekafs")


def slots(case: Case) -> Finding | None:
    """Whether every rank has a core."""
    for host, ranks in case.hosts().items():
        have, count = _cores(case, ranks), case.count_on(ranks)
        if count > have:
            return Finding(WARN, f"{count} ranks share {have} core{'s' if have > 1 else ''} of {host} (it has "
                                 f"{ranks[0]['machine_cores']}): they take turns",
                           "start fewer ranks, or ask for more cores (srun and sbatch: --cpus-per-task; mpirun of Open "
                           "MPI: --bind-to none)")
    if case.pair is None:
        return Finding(OK, "; ".join(f"{case.count_on(ranks)} on {_cores(case, ranks)} cores of {host}"
                                     for host, ranks in case.hosts().items()))
    have, refuses = _cores(case, case.ranks), case.family == OPEN_MPI
    text = f"{have} core{'s' if have > 1 else ''}" + _of_quota(case.first)
    if refuses and case.first.get("is_root") and not case.first.get("root_may"):
        return Finding(WARN, f"{text}; Open MPI's mpirun, typed by hand, refuses root",
                       "use fleetrun, or export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
    more = "; mpirun, typed by hand, needs --map-by :OVERSUBSCRIBE for more ranks, fleetrun does not" if refuses else ""
    return Finding(OK, text + more)


def _cores(case: Case, ranks: Sequence[Facts]) -> int:
    """How many cores the ranks of one machine have together; where not all could be asked, those of the machine."""
    together = len({core for facts in ranks for core in facts["cores"]})
    if len(ranks) < case.count_on(ranks):
        together = ranks[0]["machine_cores"]
    limits = [math.ceil(facts["quota"]) for facts in ranks if facts.get("quota")]
    return max(1, min([together, *limits]))


def _of_quota(facts: Facts) -> str:
    return f" (the container may use {facts['quota']:g} of {len(facts['cores'])})" if facts.get("quota") else ""


def binding(case: Case) -> Finding | None:
    """Whether ranks are held to fewer cores than their threads need."""
    for host, ranks in case.hosts().items():
        share = ranks[0]["machine_cores"] // case.count_on(ranks)
        given = _whole(ranks[0].get("slurm", {}).get("SLURM_CPUS_PER_TASK", "1"))
        share = min(share, given) if ranks[0].get("slurm") else share  # Slurm binds to what was asked for
        held = [facts for facts in ranks if len(facts["cores"]) == 1]
        if held and share > 1:
            return Finding(WARN, f"{named(held)} on {host}: bound to one core each, of {share} that a rank could have; "
                                 "threads have nothing to run on",
                           "mpirun of Open MPI: --bind-to none (fleetrun says it), or --map-by slot:PE=N; srun: "
                           "--cpus-per-task=N, and export SRUN_CPUS_PER_TASK in the batch script")
    counts = sorted({len(facts["cores"]) for facts in case.ranks})
    words = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return Finding(OK, f"each rank may run on {words} of {case.first['machine_cores']} cores" if case.pair is None else
                   f"free to run on {words} of {case.first['machine_cores']} cores")


def compute_threads(case: Case) -> Finding | None:
    """Whether the ranks of a machine have more threads than it has cores."""
    for facts in case.ranks:
        if facts.get("threads_problem"):
            return Finding(FAIL, facts["threads_problem"], "correct or unset that variable")
    for host, ranks in case.hosts().items():
        have, count = _cores(case, ranks), case.count_on(ranks)
        wanted = sum(facts["threads"] for facts in ranks) * count // len(ranks)
        share = max(1, have // count)
        if wanted > max(have, count):
            return Finding(WARN, f"{count} rank{'s' if count > 1 else ''} on {host} compute with {wanted} "
                                 f"threads on {have} cores", f"export FLEET_MPI_THREADS={share}")
        for facts in ranks:
            high = {name: value for name, value in facts["limits"].items()
                    if name != "FLEET_MPI_THREADS" and _whole(value) > share}
            if high:
                said = ", ".join(f"{name}={value}" for name, value in high.items())
                return Finding(WARN, f"{said} on {host}, where a rank's share is {share}: numpy's own threads fight "
                                     "before fleet_mpi holds BLAS to one", f"export {next(iter(high))}={share}")
    first = case.first
    return Finding(OK,
                   f"{first['threads']} for fleet_mpi's kernels in each rank; BLAS (now {first['blas']}) is held to 1 "
                       "while it trains")


def _whole(text: str | int) -> int:
    """The first number of a list such as OMP_NUM_THREADS=4,2; 0 for what is none."""
    word = str(text).partition(",")[0].strip()
    return int(word) if word.isdigit() else 0


def needed_bytes(family: str, ranks: int) -> int:
    """Of shared memory for so many ranks on one machine.

    Tried with Open MPI 5.0.11 and MPICH 5.0.2: a rank of Open MPI wants a segment of 16 MB to fit, though it fills
    little of it, else it hangs or falls back to TCP; MPICH fills 5.2 MB for each, and crashes below 24 MB with two
    ranks, below 28 MB with four.
    """
    return max(24, 6 * ranks + 4) * MB if family == MPICH else 20 * MB


def shared_memory(case: Case) -> Finding | None:
    """Whether the ranks of a machine can talk through memory."""
    texts = []
    for host, ranks in case.hosts().items():
        count = case.count_on(ranks) if case.pair is None else max(2, _cores(case, ranks))
        need = needed_bytes(case.family, count)
        if ranks[0]["shm_problem"]:
            return Finding(WARN, f"/dev/shm on {host}: {ranks[0]['shm_problem']}", "mount a tmpfs there")
        free = min(facts["shm_free"] for facts in ranks)
        if free < need:
            return Finding(FAIL,
                           f"/dev/shm on {host} has {free // MB} MB free, {count} ranks need {need // MB}: they hang, "
                                 "crash or fall back to TCP",
                           "docker: --shm-size=1g; Kubernetes: an emptyDir of medium Memory; elsewhere: "
                                             "mount -o remount,size=1g /dev/shm" + _remove(ranks[0], "; and "))
        if ranks[0]["left_over_bytes"] > MUCH_LEFT_OVER:
            return Finding(WARN,
                           f"/dev/shm on {host}: {free // MB} MB free; {ranks[0]['left_over']} segments of killed "
                                 f"jobs hold {ranks[0]['left_over_bytes'] // MB} MB", _remove(ranks[0]))
        texts.append(f"{free // MB} MB free on {host} for {count} ranks that need {need // MB}")
    return Finding(OK, "; ".join(texts))


def _remove(facts: Facts, before: str = "") -> str:
    if not facts["left_over"]:
        return ""
    return before + "while no job of yours runs there: rm /dev/shm/mpich_shm_* /dev/shm/sm_segment.*"


def gpu(case: Case) -> Finding | None:
    """Whether devices are there, usable, and enough."""
    for host, ranks in case.hosts().items():
        facts = ranks[0]
        if facts["has_driver"] and facts["no_gpu"]:
            return Finding(WARN, f"{host} has a GPU driver, but {facts['no_gpu']}; CUDAPlace falls back to the CPU",
                           f"install cupy for the driver's CUDA: {installing('cuda12', 'cuda13')}; in a container: "
                           "--gpus all")
        if facts["gpus"] and len(ranks) > facts["gpus"]:
            return Finding(WARN, f"{len(ranks)} ranks on {host} share {facts['gpus']} GPUs",
                           "start one rank for each: fleetrun --gpus 0,1,...; srun --gpus-per-task=1")
    if not case.first["gpus"]:
        return Finding(OK, f"none: {case.first['no_gpu']}; CUDAPlace falls back to the CPU")
    return Finding(OK, "; ".join(f"{ranks[0]['gpus']} on {host}" for host, ranks in case.hosts().items()))


def cuda_aware(case: Case) -> Finding | None:
    """Whether MPI takes device memory; a yes was tried."""
    says = case.first["cuda_aware_by"]
    if not any(facts["gpus"] for facts in case.ranks):
        return Finding(OK, f"not needed without a GPU ({says})")
    apart = [facts for facts in case.ranks if facts["is_cuda_aware"] != case.first["is_cuda_aware"]]
    if apart:
        return Finding(FAIL, f"{named(apart)} and rank 0 do not agree on it",
                       "set FLEET_MPI_CUDA_AWARE=no for all ranks")
    if case.first["is_cuda_aware"]:
        return Finding(OK, f"yes ({says})")
    return Finding(WARN, f"no ({says}): gradients pass through pinned host memory",
                   "load an MPI that was built with CUDA, or use NCCL; FLEET_MPI_CUDA_AWARE=yes if the library is "
                   "wrong")


def sums_on_devices(case: Case) -> Finding | None:
    """Which way a collective job's sums would take; None without GPUs."""
    if not all(facts["gpus"] for facts in case.ranks):
        return None
    problem = why_no_nccl([Ability(facts["device"], facts["no_nccl"]) for facts in case.ranks],
                          [facts["host"] for facts in case.ranks], "rank")
    if not problem:
        return Finding(OK, "by NCCL, from device to device; FLEET_MPI_ALLREDUCE=exact for the same bits at every run")
    path = "straight from device memory" if case.first.get("is_cuda_aware") else "through pinned host memory"
    return Finding(WARN, f"by the MPI library, {path}; not by NCCL: {problem}",
                   f"{installing('cuda12', 'cuda13')} brings NCCL; one rank for each GPU")


def cache_folder(case: Case) -> Finding | None:
    """Whether kernels are compiled once, or at every start."""
    for facts in case.ranks:
        finding = _cache_of(facts)
        if finding is not None:
            return finding
    kind = case.first["cache_kind"]
    nodes = max(len(case.hosts()), _whole(case.first.get("slurm", {}).get("SLURM_JOB_NUM_NODES", "1")))
    if kind.startswith(NETWORK) and nodes > 1:
        return Finding(WARN,
                       f"numba's cache {case.first['cache']} is on {kind}, for {nodes} hosts at once: slow starts",
                       _OWN_CACHE)
    return Finding(OK, f"{case.first['cache']}{f' ({kind})' if kind else ''} can be written to")


def _cache_of(facts: Facts) -> Finding | None:
    """What is wrong with one rank's folder, or None."""
    if facts["cache_problem"] and not facts["cache"]:
        return Finding(FAIL, f"kernels cannot be compiled on {facts['host']}: {facts['cache_problem']}",
                       "install numba again: pip install --force-reinstall numba")
    if facts["cache_problem"]:
        return Finding(WARN,
                       f"numba's cache {facts['cache']} on {facts['host']} cannot be used: {facts['cache_problem']}; "
                             f"every start compiles anew", _OWN_CACHE)
    if facts["is_temporary"]:
        kept = f"compiled kernels go to {facts['cache']}" if facts["cache"] \
            else "every rank compiles anew at every start"
        return Finding(WARN, f"neither the package nor ~/.cache on {facts['host']} can be written to: {kept}",
                       _OWN_CACHE)
    return None


def rename(case: Case) -> Finding | None:
    """Whether checkpoints in the working folder are whole at every moment."""
    for facts in case.ranks:
        if facts["is_torn"]:
            return Finding(FAIL, f"{facts['folder']} ({facts['folder_kind']}) on {facts['host']}: "
                                 f"{facts['rename_problem']}: a checkpoint may be read half written",
                           "save to another file system")
        if facts["rename_problem"]:
            return Finding(WARN,
                           f"nothing can be saved in {facts['folder']} on {facts['host']}: {facts['rename_problem']}",
                           "change to a folder that can be written to, or save elsewhere")
    kind = case.first["folder_kind"]
    return Finding(OK,
                   f"a file in {case.first['folder']}{f' ({kind})' if kind else ''} is replaced whole, while it is "
                   f"read")


def slurm(case: Case) -> Finding | None:
    """What a batch script has to know."""
    facts, about, (wanted, missing) = case.first, case.first["slurm"], srun_plugin(case)
    in_job = "SLURM_JOB_ID" in about
    if not in_job and not facts["has_srun"]:
        return Finding(OK, "none here")
    if facts["srun_problem"]:
        if in_job:
            return Finding(WARN, f"srun does not answer: {facts['srun_problem']}",
                           "ask your site; mpirun may still work")
        return Finding(OK, f"srun is installed, but there is no cluster: {facts['srun_problem']}")
    if missing and (case.pair is not None or case.launcher.name.startswith("srun")):
        return Finding(WARN, f"srun --mpi={wanted}, which {case.family} needs, does not work here: {missing}",
                       "start the ranks by mpirun (or fleetrun) in the batch script, not by srun")
    asked, passed_on = _whole(about.get("SLURM_CPUS_PER_TASK", "1")), "SRUN_CPUS_PER_TASK" in about
    if case.pair is not None and in_job and asked > 1 and not passed_on:
        return Finding(WARN,
                       f"--cpus-per-task={asked} was asked for, but srun (22.05 and later) does not take it from the "
                             "batch script", "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK")
    job = f"job {about['SLURM_JOB_ID']} on {about.get('SLURM_JOB_NUM_NODES', '?')} nodes; " if in_job else ""
    return Finding(OK,
                   f"{job}start ranks by mpirun, fleetrun"
                   + (f" or srun --mpi={wanted}" if wanted and not missing else ""))


MACHINE_CHECKS = (("slots", "cores", slots), ("binding", "cores", binding), ("threads", "threads", compute_threads),
                  ("shared memory", "shm_problem", shared_memory), ("GPU", "gpus", gpu),
                  ("CUDA-aware MPI", "cuda_aware_by", cuda_aware), ("sums on GPUs", "gpus", sums_on_devices),
                  ("cache folder", "cache", cache_folder),
                  ("rename", "rename_problem", rename), ("Slurm", "slurm", slurm))
