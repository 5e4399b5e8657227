"""What a mode may be told: values are checked where they are used, and a wrong one is refused with a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.errors import UsageError

if TYPE_CHECKING:
    from typing import Any


def whole(name: str, value: Any, least: int) -> int:
    """A whole number from ``least`` up."""
    if isinstance(value, bool) or not _is_number(value) or value != value or value in (_INFINITE, -_INFINITE) \
            or int(value) != value or value < least:
        raise UsageError(f"{name}: expected a whole number from {least} up, got {value!r}")
    return int(value)


def number(name: str, value: Any, least: float, most: float = float("inf")) -> float:
    """A number from ``least`` up to ``most``."""
    if isinstance(value, bool) or not _is_number(value) or not least <= value <= most:
        raise UsageError(f"{name}: expected a number from {least} to {most}, got {value!r}")
    return float(value)


def yes_or_no(name: str, value: Any) -> bool:
    """A truth value; 0 and 1 count."""
    if not _is_number(value) or value not in (0, 1):
        raise UsageError(f"{name}: expected True or False, got {value!r}")
    return bool(value)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and hasattr(value, "__lt__")


_INFINITE = float("inf")
