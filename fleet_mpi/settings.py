"""Every environment variable the package reads: one table, typed.

Read when asked for, not at import: scripts set PADDLE_* variables in their own first lines. Knows names and types only;
what a setting means is the business of whoever asks for it.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from fleet_mpi.errors import EnvironmentProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Setting(NamedTuple):
    """One environment variable: its name, type, value when unset, meaning, and the values that are allowed.

    ``allowed``: the words there are, or the least number; None: any.
    """

    name: str
    kind: Callable[[str], Any]  # a type, or what makes the value of a text
    default: Any
    meaning: str
    allowed: Any = None


def counts_by_node(words: str) -> tuple[int, ...]:
    """How many tasks each node has: "2(x3),1" are 2 on each of three nodes, and 1; empty where it says something
    else."""
    counts: list[int] = []
    for word in words.split(","):
        part = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", word)
        if part is None:
            return ()
        counts += [int(part[1])] * int(part[2] or 1)
    return tuple(counts)


_ROLES = ("TRAINER", "PSERVER")
TABLE = (
    Setting("FLEET_MPI_THREADS", int, 0,
            "threads a rank computes with; 0: its share of the cores it may run on", 0),
    Setting("FLEET_MPI_SEED", int, 0,
            "seed of programs whose random_seed is 0; 0: a fresh one for every job"),
    Setting("FLEET_MPI_STRICT_DEVICE", bool, False,
            "refuse CUDAPlace where no GPU is usable, instead of falling back to the CPU"),
    Setting("FLEET_MPI_CUDA_AWARE", str, "auto",
            "whether MPI takes buffers in GPU memory: yes, no, or auto: if the library says so and a trial in a "
            "process of its own succeeds; else they pass through pinned host memory"),
    Setting("FLEET_MPI_LOG", str, "info",
            "least severe message written to stderr: debug, info, warning, error"),
    Setting("FLEET_MPI_ALLREDUCE", str, "",
            "collective training: exact (gradients are summed in rank order, the same bits at every run), fast (as the "
            "MPI library likes) or nccl (on GPUs, by NCCL); empty: on the host exact up to 8 workers, else fast; on "
            "GPUs nccl where all workers can, else fast"),
    Setting("FLEET_MPI_SHARED_MEMORY", bool, True,
            "collective training, exact: gradients of workers on one machine lie in memory that they share and are "
            "summed there, where that is possible; 0: they are sent as messages"),
    Setting("FLEET_MPI_STALENESS", int, -1,
            "asynchronous training: how many steps a worker may be ahead of the slowest one; -1: no bound"),
    Setting("FLAGS_communicator_max_merge_var_num", int, -1,
            "asynchronous training: the most batches that go in one push; -1: as the strategy says"),
    Setting("FLAGS_communicator_send_queue_size", int, -1,
            "asynchronous training: the most batches that wait to be sent; -1: as the strategy says"),
    Setting("FLAGS_communicator_independent_recv_thread", int, -1,
            "asynchronous training: 1: parameters are asked for apart from pushes; -1: as the strategy says"),
    Setting("FLAGS_communicator_min_send_grad_num_before_recv", int, -1,
            "asynchronous training: how many batches are sent before parameters are asked for apart; -1: as "
            "the strategy says"),
    Setting("FLAGS_communicator_thread_pool_size", int, -1,
            "asynchronous training: the most requests of a worker under way; -1: as the strategy says"),
    Setting("FLAGS_communicator_send_wait_times", int, -1,
            "asynchronous training: how long a push waits for more batches, in 10 ms; -1: as the strategy "
            "says"),
    Setting("FLAGS_communicator_is_sgd_optimizer", int, -1,
            "asynchronous training: 1: merged gradients are summed, 0: averaged; -1: as the strategy says"),
    Setting("FLAGS_check_nan_inf", bool, False,
            "look at every op's results and stop, naming the op, when one is not finite (read when a program is "
            "first run with some feeds and fetches; set_flags acts at any time)"),
    Setting("FLAGS_selected_gpus", str, "",
            "the device of this rank; of several, comma separated, the one with its number among the machine's ranks; "
            "where it is not set and GPUs are seen, ranks of a job find their own in it"),
    Setting("FLEET_MPI_SYNTHETIC_SAMPLES", int, 0,
            "the most pictures that a part of a made-up set (flowers, cifar, fashion-mnist, voc2012) has, for short "
            "runs; 0: no limit", 0),
    Setting("CPU_NUM", int, 0,
            "number of CPU places that cpu_places() lists; 0: one", 0),
    Setting("DATA_HOME", str, "",
            "folder of the data sets; empty: ~/.cache/paddle/dataset"),
    Setting("TRAINING_ROLE", str, "", "what this process is: a worker is TRAINER, a server PSERVER", _ROLES),
    Setting("PADDLE_TRAINERS_NUM", int, 0, "how many workers the job has"),
    Setting("PADDLE_TRAINER_ID", int, -1, "the number of this worker"),
    Setting("PADDLE_TRAINER_ENDPOINTS", str, "", "the workers' labels, host:port, comma separated"),
    Setting("PADDLE_PSERVERS_IP_PORT_LIST", str, "", "the servers' labels, host:port, comma separated"),
    Setting("POD_IP", str, "", "this server's host in that list"),
    Setting("PADDLE_PORT", str, "", "this server's port in that list"),
    Setting("PADDLE_PSERVER_ID", int, -1, "the number of this server; unset: its place in that list"),
    Setting("PADDLE_TRAINING_ROLE", str, "", "as TRAINING_ROLE, in jobs without servers (TRAINER) and in the examples",
            _ROLES),
    Setting("PADDLE_CURRENT_ENDPOINT", str, "", "the label of this worker"),
    Setting("PADDLE_PSERVER_IPS", str, "", "the servers' hosts, comma separated, for the examples"),
    Setting("PADDLE_PSERVER_PORT", str, "6174", "the servers' port, the same on every host, for the examples"),
    Setting("PADDLE_TRAINERS", int, 1, "how many workers the job has, for the examples"),
    Setting("PADDLE_CURRENT_IP", str, "", "this server's host among PADDLE_PSERVER_IPS, for the examples"),
    Setting("PADDLE_CURRENT_IPP", str, "", "PADDLE_CURRENT_IP, as a guide misspells it"),
    Setting("FLEET_MPI_SERVERS", int, 0,
            "where MPI gives the roles: this many first ranks serve, all others work; 0: every even rank serves"),
    Setting("FLEET_MPI_SERVER_RATIO", str, "",
            "where MPI gives the roles: servers to workers as 1:3, so that every fourth rank, from rank 0 on, serves "
            "(2:3: two servers, then three workers, and so on; 0:1: none serves, training is collective)"),
    Setting("FLAGS_rpc_deadline", int, 180000,
            "milliseconds that a rank waits for another one before it gives up and says for whom it waited"),
    Setting("FLAGS_rpc_send_thread_num", int, 12, "read, without effect: one thread of a rank polls all its messages"),
    Setting("FLAGS_rpc_get_thread_num", int, 12, "as FLAGS_rpc_send_thread_num"),
    Setting("FLAGS_rpc_prefetch_thread_num", int, 12, "as FLAGS_rpc_send_thread_num"),
    Setting("OMPI_COMM_WORLD_SIZE", int, 0, "how many processes Open MPI's mpirun started together"),
    Setting("PMI_SIZE", int, 0, "how many processes MPICH's mpirun started together"),
    Setting("PMI_RANK", int, -1, "set where MPICH's mpirun, or srun with pmi2, started this process"),
    Setting("PMIX_RANK", int, -1, "set where Open MPI's mpirun, or srun with pmix, started this process"),
    Setting("OMPI_COMM_WORLD_LOCAL_RANK", int, -1, "the number of this process on its machine, from Open MPI's mpirun"),
    Setting("MPI_LOCALRANKID", int, -1, "set where MPICH's or Intel's mpirun started this process"),
    Setting("OMPI_COMM_WORLD_LOCAL_SIZE", int, 1, "how many processes Open MPI's mpirun started on this machine"),
    Setting("MPI_LOCALNRANKS", int, 1, "how many processes MPICH's or Intel's mpirun started on this machine"),
    Setting("PMIX_NAMESPACE", str, "", "the name of the job, from Open MPI's mpirun"),
    Setting("PMI_FD", int, -1, "the line to MPICH's mpirun, by which a rank that fails before MPI starts ends the job"),
    Setting("PALS_RANKID", int, -1, "set where Cray's launcher started this process"),
    Setting("PALS_LOCAL_RANKID", int, -1, "the number of this process on its machine, from Cray's launcher"),
    Setting("MV2_COMM_WORLD_LOCAL_RANK", int, -1, "the same from MVAPICH 2"),
    Setting("MVP_COMM_WORLD_LOCAL_RANK", int, -1, "the same from MVAPICH 3 and later"),
    Setting("PMI_LOCAL_RANK", int, -1, "the same from some launchers that speak PMI"),
    Setting("MPICH_GPU_SUPPORT_ENABLED", str, "",
            "whether Cray's MPI may be given buffers in GPU memory: it is not without 1"),
    Setting("SLURM_JOB_ID", str, "", "the job, from Slurm"),
    Setting("SLURM_STEP_ID", str, "", "the step of it that srun started"),
    Setting("SLURM_HET_SIZE", int, 0, "how many parts a heterogeneous job has, each with numbers of its own"),
    Setting("SLURM_PROCID", int, -1, "the number of this process in its step, from srun"),
    Setting("SLURM_NODEID", int, -1, "the number of its machine"),
    Setting("SLURM_LOCALID", int, -1, "the number of this process on its machine, from srun"),
    Setting("SLURM_STEP_NUM_TASKS", int, 0, "how many processes srun started together"),
    Setting("SLURM_STEP_TASKS_PER_NODE", counts_by_node, (), "how many of them are on each machine"),
)

_BY_NAME = {setting.name: setting for setting in TABLE}
NAMES = frozenset(_BY_NAME)
_overrides: dict[str, Any] = {}
_MISSPELT = 0.8  # of difflib's measure: a letter or two are wrong
version = 0  # moves on with every override, so that whoever keeps what follows from a setting can tell


def get(name: str) -> Any:
    """The value of a setting of the table, as its type."""
    return _overrides[name] if name in _overrides else _read(name)


def check() -> None:
    """Read every setting of this package that the environment has, so that a wrong one is refused before it is
    needed."""
    for name in sorted(NAMES.intersection(os.environ)):
        if name.startswith(("FLEET_MPI_", "FLAGS_")):
            _read(name)


@contextmanager
def override(**values: Any) -> Iterator[None]:
    """Within the block, let settings have these values whatever the environment says."""
    for name in values:
        _find(name)
    before = dict(_overrides)
    _replace_overrides({**before, **values})
    try:
        yield
    finally:
        _replace_overrides(before)


def put(name: str, value: Any) -> None:
    """Let a setting have this value from now on, as ``set_flags`` of the original does."""
    _replace_overrides({**_overrides, _find(name).name: value})


def _replace_overrides(values: dict[str, Any]) -> None:
    global _overrides, version
    _overrides = values
    version += 1


def _find(name: str) -> Setting:
    if name not in _BY_NAME:
        raise EnvironmentProblem(f"no setting is called {name!r}; {nearest(name, _BY_NAME)}")
    return _BY_NAME[name]


def _read(name: str) -> Any:
    setting = _find(name)
    text = os.environ.get(name)
    if text is None or text == "":
        return setting.default
    if setting.kind is bool:
        return _as_bool(name, text)
    try:
        value = setting.kind(text)
    except ValueError:
        raise _refusal(setting, text, setting.kind.__name__) from None
    if isinstance(setting.allowed, tuple) and value not in setting.allowed:
        raise _refusal(setting, text, " or ".join(setting.allowed))
    if isinstance(setting.allowed, int) and value < setting.allowed:
        raise _refusal(setting, text, f"a number from {setting.allowed} up")
    return value


def _refusal(setting: Setting, text: str, expected: str) -> EnvironmentProblem:
    return EnvironmentProblem(f"environment variable {setting.name}={text!r}: expected {expected} ({setting.meaning})")


# Of the original, close to ones that are read here, and no misspelling of them.
_OTHER_FLAGS = {"FLAGS_check_nan_inf_level", "FLAGS_communicator_fake_rpc", "FLAGS_communicator_merge_sparse_grad",
                "FLAGS_communicator_merge_sparse_bucket", "FLAGS_rpc_retry_times", "FLAGS_rpc_retry_bind_port",
                "FLAGS_rpc_server_profile_path", "FLAGS_rpc_disable_reuse_port", "FLAGS_selected_xpus",
                "FLAGS_selected_npus", "FLAGS_selected_mlus", "FLAGS_selected_tpus"}
_OF_LAUNCHER = "FLEET_MPI_LAUNCH_"  # what it tells its ranks


def strangers(environ: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(variable, what was meant, as the end of a sentence) of all FLEET_MPI_* that are not read, and of all FLAGS_*
    that look like a misspelt one; other FLAGS_* belong to the original, and mean nothing here.
    """
    for name in sorted(environ):
        if name in NAMES or name in _OTHER_FLAGS or name.startswith(_OF_LAUNCHER):
            continue
        if name.startswith("FLEET_MPI_"):
            yield name, _meant(name, "FLEET_MPI_", 0.5) or "the page of settings in docs/reference lists all of them"
        elif name.startswith("FLAGS_") and _meant(name, "FLAGS_", _MISSPELT):
            yield name, _meant(name, "FLAGS_", _MISSPELT)


def _meant(name: str, prefix: str, cutoff: float) -> str:
    """The known name whose part after the prefix is most alike; empty where none is alike enough."""
    known = [one.removeprefix(prefix) for one in sorted(NAMES) if one.startswith(prefix)]
    close = difflib.get_close_matches(name.removeprefix(prefix), known, 1, cutoff)
    return f"did you mean {prefix}{close[0]}?" if close else ""


def _as_bool(name: str, text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise EnvironmentProblem(f"environment variable {name}={text!r}: expected 0 or 1")
