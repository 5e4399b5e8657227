"""Every flag that the launchers of the original know, and our own: one table, from which ``--help`` is made.

A flag is wired, taken without effect, or refused with a sentence when it is set; which of them, the table says.
Knows words and their form; what follows from them is the business of ``job``.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from fleet_mpi.command_line import CommandLine, whole
from fleet_mpi.errors import NotBuilt, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = """fleetrun --gpus 0,1 SCRIPT.py [ARGS...]                     one rank for each device; all of them work
       fleetrun --server_num S --worker_num W SCRIPT.py [ARGS...]  the first S ranks serve
       fleetrun -np N SCRIPT.py [ARGS...]                          N ranks; the script gives them roles
       fleetrun ... -m MODULE [ARGS...]"""
ABOUT = """\
Starts the ranks of a job with one command of the MPI that belongs to this Python, or with srun, keeps their logs and
ends with the code of the first rank that failed. SCRIPT.py may be written for paddle.fluid (1.x) or paddle (2.x).
The same as python -m fleet_mpi.launch. Addresses are labels, except that hosts say where ranks run: no port is opened.\
"""
HINT = """\
On several hosts, the script, this Python and the folder of the logs must be at the same paths everywhere (a shared
file system): a rank writes its log where it runs. Within a Slurm job, hosts are those of the allocation."""


def _claim(text: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(f"expected True or False, got {text!r}")
    return known[text.lower()]


def words(text: str | None) -> list[str]:
    """The parts of a list as the launchers write it: commas, or semicolons between devices."""
    return [word.strip() for word in (text or "").replace(";", ",").split(",") if word.strip()]


class Flag(NamedTuple):
    """One flag: its names (the first without dashes is its name here), its form, and what it does."""

    names: tuple[str, ...]
    form: str
    meaning: str
    kind: Any = str
    default: Any = None
    choices: tuple[str, ...] | None = None
    unset: tuple[str, ...] = ("",)  # what says that a refused flag is not asked for

    @property
    def name(self) -> str:
        """The name in the namespace, and in the block of configuration arguments."""
        return self.names[0].lstrip("-").replace("-", "_")


RANKS = (
    Flag(("--np", "-np", "-n"), "N", "ranks of the whole job", whole),
    Flag(("--gpus", "--selected_gpus", "--devices"), "0,1,...",
         "one worker for each on every host, which finds its own in FLAGS_selected_gpus; on the CPU where no GPU is"),
    Flag(("--nproc_per_node",), "N", "workers on every host", whole),
    Flag(("--nnodes",), "N", "hosts: as many as --ips lists, or the first N of the Slurm job (all of them)"),
    Flag(("--server_num",), "S", "ranks that serve", int),
    Flag(("--worker_num", "--trainer_num"), "W", "ranks that work", whole),
    Flag(("--run_mode",), "MODE", "collective (all ranks work) or ps; else the other flags decide"),
)
HOSTS = (
    Flag(("--ips", "--cluster_node_ips"), "HOST,...", "hosts of a collective job (127.0.0.1, which is this machine)"),
    Flag(("--servers", "--endpoints"), "HOST:PORT,...", "one rank that serves for each", str, ""),
    Flag(("--workers", "--trainers"), "HOST[:PORT],...", "one rank that works for each", str, ""),
    Flag(("--sort_ip",), "BOOL", "sort the hosts of --ips (False)", _claim),
    Flag(("--start_port", "--started_port"), "PORT", "first port in the labels that are made up (6170)", int),
    Flag(("--launcher",), "PROGRAM", "mpirun, mpiexec or srun, or the path of one (the mpirun beside this Python)"),
    Flag(("--rsh",), "PROGRAM", "what starts processes on other hosts instead of ssh"),
)
OUTPUT = (
    Flag(("--log_dir",), "DIR",
         "folder of workerlog.N and serverlog.N, ranklog.N with -np (log; launch_ps: logs; '' for none). "
         "Collective jobs append to them, others write them anew"),
    Flag(("--log_overwrite",), "BOOL", "write logs anew in any case (False)", _claim),
    Flag(("--echo",), "WHOM", "whose output is shown as it comes: first (worker 0; for jobs without servers), all (for "
         "others) or none", str, None, ("first", "all", "none")),
    Flag(("--log_level",), "LEVEL",
         "least severe line of the launcher: DEBUG, INFO, WARNING, ERROR or a number (INFO)"),
    Flag(("--print_config",), "BOOL", "show the arguments and the first rank's variables (True; False for -np)",
         _claim),
    Flag(("--dry-run",), "", "start nothing: print the command, the role of every rank, and what servers would keep"),
    Flag(("--model",), "FOLDER", "with --dry-run: a saved model whose placement is shown"),
)
IDLE = (
    Flag(("--master",), "HOST:PORT", "ranks of MPI find each other"),
    Flag(("--host", "--node_ip"), "HOST", "one launcher starts all hosts, and needs no name for its own"),
    Flag(("--rank",), "0", "as --host; above 0 it is refused: start the launcher once, on one host", int),
    Flag(("--job_id",), "NAME", "logs are told apart by --log_dir"),
    Flag(("--http_port",), "PORT", "there is no such server"),
    Flag(("--gloo_port",), "PORT", "there is no gloo"),
    Flag(("--with_gloo",), "BOOL", "there is no gloo"),
    Flag(("--enable_gpu_log",), "BOOL", "devices are not logged"),
    Flag(("--legacy",), "BOOL", "the flags of all versions are known here"),
    Flag(("--max_restart",), "N", "nothing is restarted: a job that was saved is started again by its script"),
    Flag(("--elastic_timeout",), "SECONDS", "as --max_restart"),
)
REFUSED = (
    Flag(("--heter_workers",), "HOST:PORT,...", "workers of another kind (heterogeneous mode) are not built: give all "
         "workers by --worker_num, and devices by --gpus", str, ""),
    Flag(("--heter_worker_num",), "N", "as --heter_workers", unset=("", "0")),
    Flag(("--xpus",), "0,1,...", "there are CPUs and CUDA devices only: use --gpus, or -np"),
    Flag(("--npus",), "0,1,...", "as --xpus"),
    Flag(("--elastic_level",), "N",
         "the number of ranks is fixed when MPI starts; the examples in slurm/ requeue instead",
         unset=("", "-1")),
    Flag(("--auto_parallel_config",), "FILE", "automatic parallelism is not built: give the number of ranks"),
    Flag(("--auto_tuner_json",), "FILE", "as --auto_parallel_config"),
    Flag(("--use_paddlecloud",), "",
         "the cloud's variables describe hosts without MPI: let its MPI operator run mpirun "
         "... python -m fleet_mpi SCRIPT.py, or give --ips"),
)
GROUPS = (("how many ranks", RANKS), ("where", HOSTS), ("output", OUTPUT), ("taken without effect", IDLE),
          ("known, and refused when set", REFUSED))
TABLE = tuple(flag for _, flags in GROUPS for flag in flags)


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The launcher's own words, and those from the script (or ``-m module``) on."""
    alone = {"-h", "--help", "--version", *(name for flag in TABLE if not flag.form for name in flag.names)}
    end = 0
    while end < len(argv) and argv[end].startswith("-") and argv[end] != "-m":
        end += 1 if "=" in argv[end] or argv[end] in alone else 2
    return list(argv[:end]), list(argv[end:])


def read(ours: Sequence[str]) -> argparse.Namespace:
    """The values of the launcher's words, by flag; None or the original's empty text where unset."""
    told = _parser().parse_args(ours)
    for flag in REFUSED:
        value = getattr(told, flag.name)
        if value not in (None, False, *flag.unset):
            raise NotBuilt(f"{flag.names[0]}{'' if value is True else f' {value}'}: {_meaning(flag)}")
    if told.rank is not None and told.rank > 0:
        raise UsageError(f"--rank {told.rank}: one launcher starts the ranks of all hosts; start it once, with --ips "
                         "HOST,HOST or within a Slurm job")
    return told


def given(ours: Sequence[str]) -> tuple[str, ...]:
    """Names of the flags that the launcher's words contain, for what the original says about them."""
    by_word = {word: flag.names[0] for flag in TABLE for word in flag.names}
    return tuple(dict.fromkeys(by_word[word.partition("=")[0]] for word in ours if word.partition("=")[0] in by_word))


def _meaning(flag: Flag) -> str:
    """The sentence of a flag, also where the table refers to another one."""
    other = flag.meaning.removeprefix("as ")
    return next((one.meaning for one in TABLE if one.names[0] == other), flag.meaning)


def _parser() -> CommandLine:
    parser = CommandLine("fleetrun", usage=USAGE, description=ABOUT, epilog=HINT, allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter,
                         hint=" (the script's own flags come after the script)")
    for title, flags in GROUPS:
        group = parser.add_argument_group(title)
        for flag in flags:
            if flag.form:
                group.add_argument(*flag.names, dest=flag.name, type=flag.kind, default=flag.default, metavar=flag.form,
                                   choices=flag.choices, help=flag.meaning)
            else:
                group.add_argument(*flag.names, dest=flag.name, action="store_true", help=flag.meaning)
    return parser
