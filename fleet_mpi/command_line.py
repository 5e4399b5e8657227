"""The parser of all commands of this package: ``--version``, and a misspelt flag is refused with the nearest one.

Knows form only; what the words of a command mean is the command's business. Misuse ends with code 2, as argparse has
it.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from fleet_mpi import __version__
from fleet_mpi.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class CommandLine(argparse.ArgumentParser):
    """An ArgumentParser; ``hint``: what else to say of an unknown flag."""

    def __init__(self, *args: Any, hint: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.hint = hint
        self.add_argument("--version", action="version", version=f"fleet_mpi {__version__}",
                          help="show the version, and end")

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:
        """As argparse does, but an unknown flag comes before a missing argument: it may be the same one, misspelt."""
        args = list(sys.argv[1:] if args is None else args)
        for word in args[:args.index("--")] if "--" in args else args:
            flag = word.partition("=")[0]
            if flag.startswith("--") and not self._knows(flag):
                known = [name for name in self._option_string_actions if name.startswith("--")]
                self.error(f"unknown flag {flag}; {nearest(flag, known)}{self.hint}")
        return super().parse_args(args, namespace)

    def _knows(self, flag):
        """Whether it is a flag, or the beginning of one where that is allowed."""
        return any(flag == name or self.allow_abbrev and name.startswith(flag) for name in self._option_string_actions)


def whole(text: str) -> int:
    """A whole number from 1 up, as the type of an argument."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {text}")
    return number


def seconds(text: str) -> float:
    """A time above 0, as the type of an argument."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds, more than 0, got {text!r}")
    return number
