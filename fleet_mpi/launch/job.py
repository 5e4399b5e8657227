"""From the words after ``fleetrun`` to a job: who there is, where everyone runs, and where the output goes.

Plain functions of the words and of what is around (``Allocation``). Knows no MPI.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.launch import flags

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

LOCAL = ("127.0.0.1", "localhost")
FIRST_PORT = 6170
PS, COLLECTIVE, MPI = "ps", "collective", "mpi"


class Allocation(NamedTuple):
    """What a job finds around it: this machine's cores and GPUs, and the nodes and tasks of the Slurm job, if any."""

    cores: int = 1
    gpus: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    tasks: int = 0
    names: tuple[str, ...] = ()   # of this machine

    def is_here(self, host: str) -> bool:
        """Whether a host is this machine: by its name, or since an address of its own can be bound."""
        if host in (*LOCAL, *self.names):
            return True
        try:
            with socket.socket() as probe:
                probe.bind((str(ipaddress.IPv4Address(host)), 0))
                return True
        except (OSError, ValueError):
            return False


class Job(NamedTuple):
    """What is to be started.

    ``kind``: PS (``servers`` first ranks serve), COLLECTIVE (all work), or MPI (roles are the script's business).
    ``hosts``: the host of every rank; empty where all run on this machine, or where the launcher of MPI spreads them.
    ``server_labels`` and ``worker_labels``: host:port of each, empty in kind MPI. ``devices``: of every worker, as
    text.
    """

    kind: str
    ranks: int
    servers: int
    script: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    server_labels: tuple[str, ...] = ()
    worker_labels: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    per_node: int = 0
    log_dir: str = ""
    append: bool = False
    echo: str = "all"
    told: Any = None
    given: tuple[str, ...] = ()

    @property
    def roles(self) -> list[tuple[str, int]]:
        """(role, number) of every rank; in kind MPI there is no more to say than "rank"."""
        if self.kind == MPI:
            return [("rank", rank) for rank in range(self.ranks)]
        return [("server", rank) if rank < self.servers else ("worker", rank - self.servers)
                for rank in range(self.ranks)]

    @property
    def shows(self) -> bool:
        """Whether the arguments and variables are shown at the start."""
        return (self.kind != MPI) if self.told.print_config is None else self.told.print_config


def parse(argv: Sequence[str], around: Allocation = Allocation(), environ: Mapping[str, str] | None = None,
          unsaid: tuple[int, int] | None = None, log_dir: str = "log") -> Job:
    """The job that a command line asks for. Words after the script (or ``-m module``) are the script's own.

    ``unsaid``: (servers, workers) where the words say nothing; ``log_dir``: where they do not say another.
    """
    ours, script = flags.split(argv)
    told = flags.read(ours)
    if not script or script == ["-m"]:
        raise UsageError("no script to run; fleetrun --help")
    kind = _kind(told, unsaid, around)
    make = {PS: _with_servers, COLLECTIVE: _collective, MPI: _plain}[kind]
    job = make(told, around, environ or {}, unsaid)
    return job._replace(script=tuple(script), told=told, given=flags.given(ours),
                        log_dir=log_dir if told.log_dir is None else told.log_dir,
                        append=kind == COLLECTIVE and not told.log_overwrite,
                        echo=told.echo or ("first" if kind == COLLECTIVE else "all"))


def _kind(told: argparse.Namespace, unsaid: tuple[int, int] | None, around: Allocation) -> str:
    asked = (told.run_mode or "").lower()
    if asked not in ("", PS, COLLECTIVE):
        raise NotBuilt(f"--run_mode {told.run_mode}: expected collective or ps; others are not built")
    speaks_of_servers = told.server_num is not None or told.servers
    if asked == COLLECTIVE and speaks_of_servers:
        raise UsageError("--run_mode collective: a collective job has no servers; leave --server_num and --servers out")
    if asked:
        return asked
    if speaks_of_servers or told.worker_num is not None or told.workers:
        return PS
    if told.ips or told.gpus is not None or told.nproc_per_node or told.nnodes:
        return COLLECTIVE
    if told.np:
        return MPI
    return PS if unsaid else COLLECTIVE if around.gpus else MPI


def _plain(told: argparse.Namespace, around: Allocation, environ: Mapping[str, str],
           unsaid: tuple[int, int] | None) -> Job:
    ranks = told.np or around.tasks
    if not ranks:
        raise UsageError("how many ranks? expected -np N, --gpus 0,1, or --server_num S --worker_num W; fleetrun "
                         "--help")
    return Job(MPI, ranks, 0, ())


def _collective(told: argparse.Namespace, around: Allocation, environ: Mapping[str, str],
                unsaid: tuple[int, int] | None) -> Job:
    hosts = [_host(name) for name in flags.words(told.ips)]
    hosts = _nodes(told, sorted(hosts) if told.sort_ip else hosts, around)
    devices = _devices(told.gpus, around, environ)
    per_node = told.nproc_per_node or (_shared_out(told.np, hosts) if told.np else len(devices))
    if not per_node:
        raise UsageError("how many ranks? expected --gpus 0,1, --nproc_per_node N or -np N; fleetrun --help")
    ranks = per_node * len(hosts)
    if told.np not in (None, ranks):
        raise UsageError(f"{per_node} ranks on each of {len(hosts)} host(s) are {ranks}, but -np asks for {told.np}; "
                         f"leave one number out")
    where = tuple(host for host in hosts for _ in range(per_node))
    labels = _labels([""] * ranks, where, _first_port(told, environ))
    return Job(COLLECTIVE, ranks, 0, (), _hosts(where, around), (), labels,
               _dealt(devices, per_node, told) * len(hosts), per_node)


def _with_servers(told: argparse.Namespace, around: Allocation, environ: Mapping[str, str],
                  unsaid: tuple[int, int] | None) -> Job:
    listed = flags.words(told.servers), flags.words(told.workers)
    servers, workers = _counts(told, *listed, unsaid)
    if told.nnodes not in (None, "1") or told.ips and len(set(flags.words(told.ips))) > 1:
        raise UsageError("--nnodes and --ips are of collective jobs; the hosts of a job with servers are those of "
                         "--servers HOST:PORT,... and --workers HOST,..., or the nodes of the Slurm job")
    named = [*(listed[0] or [""] * servers), *(listed[1] or [""] * workers)]
    where = _places(named)
    labels = _labels(named, where, _first_port(told, environ))
    _refuse_twins(labels)
    devices = _devices(told.gpus, around, environ) if told.gpus else ()
    seen: dict[str, int] = {}
    own = tuple(devices[_next(seen, host) % len(devices)] for host in where[servers:]) if devices else ()
    return Job(PS, servers + workers, servers, (), _hosts(where, around), labels[:servers],
               labels[servers:], own)


def _next(seen: dict[str, int], host: str) -> int:
    """How many of this host came before."""
    seen[host] = seen.get(host, -1) + 1
    return seen[host]


def _nodes(told: argparse.Namespace, hosts: list[str], around: Allocation) -> list[str]:
    """The hosts of a collective job, each once; this machine where none are said."""
    if len(set(hosts)) != len(hosts):
        raise UsageError(f"--ips {told.ips}: the same host twice; say --nproc_per_node for more ranks on each")
    if told.nnodes is not None and not told.nnodes.isdecimal():
        raise NotBuilt(f"--nnodes {told.nnodes}: expected a number; a job cannot change its size while it runs")
    asked = int(told.nnodes or 0)
    if hosts and asked not in (0, len(hosts)):
        raise UsageError(f"--nnodes {asked}, but --ips lists {len(hosts)} hosts: {told.ips}; leave one out")
    hosts = hosts or list(around.nodes)
    if asked > max(1, len(hosts)):
        raise UsageError(f"--nnodes {asked}: which hosts? expected --ips with as many, or a Slurm job of as many nodes "
                         f"(this is one of {len(around.nodes)}); one launcher starts the ranks of all")
    return hosts[:asked or None] or [LOCAL[0]]


def _shared_out(ranks: int, hosts: Sequence[str]) -> int:
    if ranks % len(hosts):
        raise UsageError(f"-np {ranks} on {len(hosts)} hosts: expected a multiple, since every host of a collective "
                         f"job has the same number of ranks")
    return ranks // len(hosts)


def _devices(text: str | None, around: Allocation, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The devices asked for, else all there are, as numbers among those that this process may use."""
    asked = flags.words(text) or list(around.gpus)
    if any(not word.isdecimal() for word in asked):
        raise UsageError(f"--gpus {text}: expected numbers such as 0,1")
    if len(set(asked)) != len(asked):
        raise UsageError(f"--gpus {text}: the same device twice; say --nproc_per_node for more ranks than devices")
    visible = [word for word in flags.words(environ.get("CUDA_VISIBLE_DEVICES")) if word.isdecimal()]
    if not (visible and flags.words(text)):
        return tuple(asked)
    missing = sorted(set(asked) - set(visible))
    if missing:
        raise UsageError(f"--gpus {text}: {', '.join(missing)} not among CUDA_VISIBLE_DEVICES={','.join(visible)}")
    return tuple(str(visible.index(word)) for word in asked)


def _dealt(devices: tuple[str, ...], per_node: int, told: argparse.Namespace) -> tuple[str, ...]:
    """What each rank of a host gets: one device, its part of more, or one shared with others where none is asked
    for."""
    if not devices:
        return ()
    if len(devices) % per_node == 0:
        part = len(devices) // per_node
        return tuple(",".join(devices[part * rank:part * (rank + 1)]) for rank in range(per_node))
    if told.gpus:
        raise UsageError(f"--gpus {told.gpus} are {len(devices)} devices for {per_node} ranks on a host: expected as "
                         f"many, or a multiple")
    return tuple(devices[rank % len(devices)] for rank in range(per_node))


def _counts(told: argparse.Namespace, listed_servers: list[str], listed_workers: list[str],
            unsaid: tuple[int, int] | None) -> tuple[int, int]:
    """(servers, workers) from all the ways to say them; what contradicts itself is refused."""
    servers = _agreed("servers", told.server_num, listed_servers)
    workers = _agreed("workers", told.worker_num, listed_workers)
    if servers is None and workers is None and told.np is None and unsaid:
        return unsaid
    if servers is not None and workers is None and told.np is not None:
        workers = told.np - servers
    if servers is None or workers is None:
        raise UsageError("--server_num and --worker_num (or -np) belong together; got only one of them")
    if servers < 1 or workers < 1:
        raise UsageError(f"expected at least one server and one worker, got {servers} and {workers}; a job without "
                         "servers is started by -np N or --nproc_per_node N")
    if told.np not in (None, servers + workers):
        raise UsageError(f"{servers} servers and {workers} workers are {servers + workers} ranks, but {told.np} are "
                         "asked for; leave one number out")
    return servers, workers


def _agreed(what: str, number: int | None, listed: list[str]) -> int | None:
    """A number that may be given as such, as a list, or both."""
    if number is not None and listed and number != len(listed):
        raise UsageError(f"{number} {what} are asked for, but {len(listed)} are listed: {','.join(listed)}")
    return len(listed) if number is None and listed else number


def _places(named: Sequence[str]) -> tuple[str, ...]:
    """The host of every label; where only servers, or only workers, are listed, the others run beside them."""
    listed = [_host(label) for label in named if label]
    if listed and "" in named and len(set(listed)) > 1:
        raise UsageError(f"--servers and --workers: hosts {', '.join(sorted(set(listed)))} are listed for one of them; "
                         f"where do the others run? list both")
    return tuple(_host(label) if label else (listed or LOCAL)[0] for label in named)


def _hosts(where: tuple[str, ...], around: Allocation) -> tuple[str, ...]:
    """What the launcher of MPI has to be told of hosts: nothing of this machine, unless it has others to choose
    from."""
    several = len(set(where)) > 1 or len(around.nodes) > 1 and where[0] not in LOCAL
    return where if several or not around.is_here(where[0]) else ()


def _host(label: str) -> str:
    host = label.partition(":")[0]
    return LOCAL[0] if host in LOCAL else host


def _labels(named: Sequence[str], where: Sequence[str], port: int) -> tuple[str, ...]:
    """host:port of every rank; a port that is not said is the rank's own."""
    return tuple(label if ":" in label else f"{host}:{port + rank}"
                 for rank, (label, host) in enumerate(zip(named, where, strict=True)))


def _refuse_twins(labels: tuple[str, ...]) -> None:
    twins = sorted({label for label in labels if labels.count(label) > 1})
    if twins:
        raise UsageError(f"--servers and --workers: {', '.join(twins)} twice; give every process a port of its own")


def _first_port(told: argparse.Namespace, environ: Mapping[str, str]) -> int:
    port = told.start_port or environ.get("FLAGS_START_PORT") or FIRST_PORT
    if not str(port).isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"--start_port, FLAGS_START_PORT: expected a port, got {port!r}")
    return int(port)
