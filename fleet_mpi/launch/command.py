"""From the words after ``fleetrun`` to a job, and from the job to mpirun's command line: plain functions."""

import argparse
from pathlib import Path
from typing import NamedTuple

from fleet_mpi.errors import UsageError
from fleet_mpi.launch import mpirun, watched

USAGE = """fleetrun -np N SCRIPT.py [ARGS...]
       fleetrun --server_num S --worker_num W SCRIPT.py [ARGS...]
       fleetrun ... -m MODULE [ARGS...]"""
ABOUT = """Starts a job of N ranks, or of S servers and W workers (the first S ranks serve), with the mpirun that
belongs to this Python. SCRIPT.py may be written for paddle.fluid (1.x) or paddle (2.x).
The same as python -m fleet_mpi.launch."""
LOCAL = {"127.0.0.1", "localhost"}


class Job(NamedTuple):
    """What is to be started: the number of ranks, how many of them serve (None: the script decides), and the script."""

    ranks: int
    servers: "int | None"
    script: tuple
    notes: tuple = ()


def parse(argv, unsaid=None):
    """The job that a command line asks for. Words after the script (or ``-m module``) are the script's own.

    ``unsaid``: (ranks, servers) where the words say neither.
    """
    ours, script = _split(list(argv))
    told = _parser().parse_args(ours)
    if not script or script == ["-m"]:
        raise UsageError("no script to run; fleetrun --help")
    ranks, servers = _counts(told, unsaid)
    notes = ["--log_dir: output is not written to files yet, it stays here"] if told.log_dir else []
    return Job(ranks, servers, tuple(script), tuple(notes))


def command_line(job, found, python, cores):
    """The words that start the job by the Mpirun ``found``, with the interpreter ``python``, on so many ``cores``."""
    watcher = [python, "-I", "-S", str(Path(watched.__file__))]
    return [found.path, *mpirun.options(found.family, job.ranks, cores), "-np", str(job.ranks), *watcher,
            python, "-m", "fleet_mpi", *job.script]


def environment(job, found, environ, folder, root=None):
    """The environment of the job: that of the launcher, and what the MPI and the ranks have to be told."""
    added = {watched.FOLDER: folder, **mpirun.environment(found.family, environ, root)}
    if job.servers is not None:
        added["FLEET_MPI_SERVERS"] = str(job.servers)
    return {**environ, **added}


def _split(argv):
    """The launcher's own words, and those from the script on."""
    end = 0
    while end < len(argv) and argv[end].startswith("-") and argv[end] != "-m":
        end += 1 if "=" in argv[end] or argv[end] in ("-h", "--help") else 2
    return argv[:end], argv[end:]


def _parser():
    parser = argparse.ArgumentParser("fleetrun", usage=USAGE, description=ABOUT, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    def option(*names, **fields):
        parser.add_argument(*names, **fields)

    option("-np", "-n", "--nproc_per_node", dest="np", type=_count, metavar="N", help="ranks")
    option("--server_num", type=int, metavar="S", help="ranks that serve")
    option("--worker_num", "--trainer_num", type=_count, metavar="W", help="ranks that work")
    option("--servers", "--endpoints", type=_hosts, metavar="IP:PORT,...", help="the servers' labels, to be counted")
    option("--workers", "--trainers", type=_hosts, metavar="IP:PORT,...", help="the workers' labels, to be counted")
    option("--gpus", "--selected_gpus", "--devices", type=_words, metavar="0,1,...", help="one rank for each")
    option("--log_dir", metavar="DIR", help="no effect yet")
    option("--ips", "--cluster_node_ips", "--node_ip", "--host", type=_hosts, metavar="IP", help="this machine's")
    for name in ("--start_port", "--started_port", "--http_port", "--print_config", "--log_level", "--run_mode"):
        option(name, help=argparse.SUPPRESS)  # there are no ports here, and nothing to print
    return parser


def _count(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {text}")
    return number


def _words(text):
    return [word for word in text.replace(";", ",").split(",") if word]


def _hosts(text):
    """A list of host:port or hosts, all of them the same machine, which is taken for this one."""
    labels = _words(text)
    hosts = {label.partition(":")[0] for label in labels}
    if len(hosts) > 1 and not hosts <= LOCAL:
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(hosts))}: several hosts are not built yet; expected one, "
                                         "or start the job by mpirun --host ... python -m fleet_mpi SCRIPT.py")
    return labels


def _counts(told, unsaid):
    """(ranks, servers) from all the ways to say them; what contradicts itself is refused."""
    servers = _agreed("servers", told.server_num, told.servers)
    workers = _agreed("workers", told.worker_num, told.workers)
    ranks = _agreed("ranks", told.np, told.gpus)
    if servers is None and workers is None:
        if ranks is None and unsaid is not None:
            return unsaid
        if ranks is None:
            raise UsageError("how many ranks? expected -np N, or --server_num S --worker_num W; fleetrun --help")
        return ranks, None
    if servers is not None and workers is None and ranks is not None:
        workers = ranks - servers
    if servers is None or workers is None:
        raise UsageError("--server_num and --worker_num (or -np) belong together; got only one of them")
    if servers < 1 or workers < 1:
        raise UsageError(f"expected at least one server and one worker, got {servers} and {workers}; a job without "
                         "servers is started by -np N")
    if ranks not in (None, servers + workers):
        raise UsageError(f"{servers} servers and {workers} workers are {servers + workers} ranks, but {ranks} are "
                         "asked for; leave one number out")
    return servers + workers, servers


def _agreed(what, number, labels):
    """A number that may be given as such, as a list, or both."""
    if number is not None and labels is not None and number != len(labels):
        raise UsageError(f"{number} {what} are asked for, but {len(labels)} are listed: {','.join(labels)}")
    return len(labels) if number is None and labels is not None else number
