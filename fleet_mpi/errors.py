"""The kinds of error, and the exit code of a job that ends with each.

Every text says who, what, expected, got and the remedy. Knows nothing of the rest of the package.
"""

from __future__ import annotations

import difflib
import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, NoReturn


class FleetError(Exception):
    """Base of all errors raised on purpose by this package."""

    exit_code = 1
    reported_by_peer = False  # of an instance: another rank says the same, so that this one ends without a word


class UsageError(FleetError, ValueError, TypeError):
    """An argument, option or call that cannot mean anything.

    Both kinds of built-in error: where the original raises one of them, a script that catches it catches this.
    """

    exit_code = 2


class EnvironmentProblem(FleetError, RuntimeError):
    """The machine, the launcher or an environment variable does not allow this."""

    exit_code = 3


class StorageProblem(EnvironmentProblem, OSError):
    """A file or folder cannot be written or read: a full disk, no permission, a file in the place of a folder."""


class PeerLost(FleetError, RuntimeError):
    """Another rank has ended, or cannot be reached any more."""

    exit_code = 4


class Stalled(FleetError, TimeoutError):
    """Another rank did not come, or did not answer, within the deadline; the text names it."""

    exit_code = 5


class CheckpointDamaged(FleetError, ValueError):
    """A saved file is not what it should be."""

    exit_code = 6


class CheckpointMissing(UsageError, FileNotFoundError):
    """There is nothing to load at the given path."""


class Diverged(FleetError, ArithmeticError):
    """A value became NaN or infinite where that was to be watched."""

    exit_code = 7


class Preempted(FleetError):
    """The machine is wanted for something else; the state was saved: please start the job again."""

    exit_code = 75  # "try again later" of sysexits.h


class ProgramError(UsageError):
    """A program that cannot be built or run: wrong shapes, dtypes, names."""


class MissingFeed(ProgramError):
    """A variable that the program reads was neither fed, computed nor initialised."""


class NotBuilt(FleetError, NotImplementedError):
    """A feature of the original that does not exist here (yet); the text says what to use instead."""


class UnknownName(FleetError, AttributeError):
    """A name that does not exist; the text has the nearest one that does."""


class EndOfData(FleetError):
    """A non-iterable loader has no more batches: call ``reset()``, then ``start()``."""


def nearest(name: object, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown ``name``: the closest of the ``known`` ones, or all of them."""
    known = sorted(set(known))
    close = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(repr(word) for word in close) + "?"
    return "known are: " + ", ".join(known[:40])


def installing(*extras: str) -> str:
    """How any one of these extras is installed, for remedies: from a checkout, since no package index has fleet_mpi."""
    return "pip install " + " or ".join(f"'.[{extra}]'" for extra in extras) + " in a checkout of fleet_mpi"


def missing_name(module: str, namespace: dict[str, Any], late: Mapping[str, str] | None = None,
                 refused: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """A module's ``__getattr__``: an unknown name is refused with the nearest one that exists.

    ``late`` has names that are imported when they are first asked for: each with the module that defines it, the module
    that it is itself (``"module:"`` where that has another name), or ``"module:other_name"``. ``refused`` has names of
    the original that are not built, with the sentence of their first use. All of these are in the module's ``__all__``
    and ``dir``, helpers that it imports are not.
    """
    late, refused = late or {}, refused or {}
    namespace.setdefault("__dir__", lambda: sorted({*namespace, *late, *refused, "__all__"}))

    def find(name: str) -> Any:
        if name in late:
            namespace[name] = _imported(name, late[name])
        elif name in refused:
            namespace[name] = not_built(f"{module}.{name}", refused[name])
        elif name == "__all__":
            # When it is asked for: what the module defines after this call belongs to it.
            namespace[name] = sorted({*_offered(namespace), *(word for word in (*late, *refused) if word[0] != "_")})
        else:
            known = [word for word in (*namespace, *late) if not word.startswith("_")]
            raise UnknownName(f"{module} has no {name!r} (or not yet); {nearest(name, known)}")
        return namespace[name]
    return find


# Modules of this package that a module of names may use, and that are none of its names.
_HELPERS = ("fleet_mpi.arrays", "fleet_mpi.errors", "fleet_mpi.notices", "fleet_mpi.settings", "fleet_mpi.ranks.")


def _offered(namespace: Mapping[str, Any]) -> Iterator[str]:
    """The names in a module of names that are its own: none of a helper, nor of a kind of error that it raises."""
    for name, value in namespace.items():
        is_helper = isinstance(value, ModuleType) and (
            not value.__name__.startswith("fleet_mpi.") or value.__name__.startswith(_HELPERS))
        is_raised = isinstance(value, type) and issubclass(value, FleetError) and value.__name__ == name
        if not name.startswith("_") and not is_helper and not is_raised:
            yield name


def not_built(name: str, sentence: str) -> type:
    """Something to import, to pass on and to inherit from, that raises NotBuilt as soon as it is called."""
    def refuse(cls: type, *args: object, **kwargs: object) -> NoReturn:
        raise NotBuilt(f"{name}: {sentence}")
    return type(name.rpartition(".")[2], (),
                {"__new__": refuse, "__doc__": f"Not built: {sentence}.", "__module__": __name__,
                 "sentence": sentence})


def _imported(name: str, path: str) -> Any:
    """What a name stands for: an attribute of a module, or the module of that name itself."""
    module, colon, attribute = path.partition(":")
    found = importlib.import_module(module)
    if colon and not attribute:
        return found
    return found if not attribute and module.rpartition(".")[2] == name else getattr(found, attribute or name)
