"""Two hosts on one machine: network namespaces with names of their own, joined by a pair of virtual cables.

What crosses the cable is counted, so a test can tell whether ranks really talked over it. Needs root. The names are
of this process alone, and are gone afterwards.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from fleet_mpi.launch.mpirun import MPICH, environment, find_mpirun

# Run a command on a host: in its network, and under its name. ssh's place is taken by a script that does this.
ON_HOST = 'hostname "$0"; exec "$@"'
REMOTE_SHELL = """#!/bin/sh
# In place of ssh: HOST COMMAND..., after options that do not matter here.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"
"""


def why_not():
    """A sentence on why hosts cannot be made here, or None."""
    if os.geteuid() != 0:
        return "network namespaces are for root only"
    missing = [program for program in ("ip", "unshare", "hostname") if shutil.which(program) is None]
    if missing:
        return f"no {', '.join(missing)} here (Debian's iproute2, util-linux, hostname)"
    probe = f"fm{os.getpid()}p"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    if made.returncode:
        return f"no network namespace can be made here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", probe], check=True)
    return None


class Hosts:
    """Two hosts; use as a context."""

    def __init__(self):
        self.names = [f"fm{os.getpid()}{letter}" for letter in "ab"]
        self.folder = Path(tempfile.mkdtemp(prefix="hosts-"))

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
            shutil.rmtree(_etc(name), ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, ranks_per_host):
        """The words that start ranks on both hosts, the first ones on the first; followed by what each of them runs."""
        found, first = find_mpirun(), self.names[0]
        here = ["ip", "netns", "exec", first, "unshare", "--uts", "sh", "-c", ON_HOST, first]
        hosts = ",".join(f"{name}:{ranks_per_host}" for name in self.names)
        where = (["-launcher", "ssh", "-launcher-exec", str(self.folder / "rsh"), "-hosts", hosts]
                 if found.family == MPICH else ["--host", hosts, "--bind-to", "none"])
        return [*here, found.path, *where, "-np", str(2 * ranks_per_host), sys.executable]

    def environment(self):
        """What the MPI at hand must be told."""
        return {**environment(find_mpirun().family, {}),
                "PRTE_MCA_plm_ssh_agent": str(self.folder / "rsh"),
                # A daemon that stays our child ends with us.
                "PRTE_MCA_prte_leave_session_attached": "1",
                # MPICH's UCX finds shared memory between namespaces, which hosts do not have.
                "UCX_TLS": "tcp,self"}

    def crossed(self):
        """Bytes that went over the cable so far, in both directions."""
        told = subprocess.run(["ip", "-n", self.names[0], "-stats", "-json", "link", "show", "eth0"], check=True,
                              capture_output=True, text=True).stdout
        counted = json.loads(told)[0]["stats64"]
        return counted["rx"]["bytes"] + counted["tx"]["bytes"]

    def kill_all(self):
        """End whatever still runs on the hosts, stopped or not; its memory in /dev/shm has nobody else to remove it."""
        for name in self.names:
            told = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout
            for process in map(int, told.split()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            for path in Path("/dev/shm").glob(f"sm_segment.{name}.*"):
                path.unlink(missing_ok=True)

    def _make(self):
        first, second = self.names
        for name in self.names:
            _run("ip", "netns", "add", name)
        _run("ip", "link", "add", "eth0", "netns", first, "type", "veth", "peer", "name", "eth0", "netns", second)
        known = "127.0.0.1 localhost\n" + "".join(f"10.77.0.{number} {name}\n"
                                                  for number, name in enumerate(self.names, 1))
        for number, name in enumerate(self.names, 1):
            for device in ("lo", "eth0"):
                _run("ip", "-n", name, "link", "set", device, "up")
            _run("ip", "-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            _etc(name).mkdir(parents=True)  # "ip netns exec" lays what is in it over /etc
            (_etc(name) / "hosts").write_text(known)
        agent = self.folder / "rsh"
        agent.write_text(REMOTE_SHELL)
        agent.chmod(0o755)


def _etc(name):
    return Path("/etc/netns", name)


def _run(*words):
    subprocess.run(words, check=True, capture_output=True, text=True)
