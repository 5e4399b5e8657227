"""Which switches of a 2.x strategy apply, and together: the rest is switched off, each with a sentence.

As in the original: a switch needs workers, an optimizer or a setting; of those that may, the longest list that goes
together wins. Unlike there, nothing is switched off without a word.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fleet_mpi import notices
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.program.optimizers.plain import SGD, Adam, Momentum

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fleet_mpi.program.optimizers.base import Optimizer

# In the order in which the original looks at them: among lists of one length the first wins.
ORDER = ("amp", "adaptive_localsgd", "dgc", "fp16_allreduce", "gradient_merge", "lamb", "lars", "localsgd", "recompute")

_GOES_WITH = {
    "amp": {"gradient_merge", "lamb", "lars", "recompute"},
    "fp16_allreduce": {"adaptive_localsgd", "gradient_merge", "lamb", "lars", "localsgd", "recompute"},
    "gradient_merge": {"lamb", "lars", "recompute"},
    "recompute": {"dgc", "lamb", "lars"},
}
_OPTIMIZERS = {"localsgd": (SGD, Momentum), "adaptive_localsgd": (SGD, Momentum), "dgc": (Momentum,),
               "lars": (Momentum,), "lamb": (Adam,)}
BETWEEN_WORKERS = {"localsgd", "adaptive_localsgd", "dgc", "fp16_allreduce", "sync_batch_norm"}


def valid_strategy(chosen: Any, optimizer: Optimizer, workers: int = 1, has_servers: bool = False) -> Any:
    """A 2.x strategy with only those switches on that apply; others are given back as they are."""
    if not isinstance(chosen, DistributedStrategy):
        return chosen
    wanted = [name for name in (*ORDER, "sync_batch_norm") if getattr(chosen, name)]
    lacking = {name: why for name, why in ((one, _lack(one, chosen, optimizer, workers, has_servers)) for one in wanted)
               if why}
    able = [name for name in wanted if name in ORDER and name not in lacking]
    together = _longest(able)
    lacking.update({name: f"it does not go together with {' and '.join(together)}"
                    for name in able if name not in together})
    for name, why in lacking.items():
        _say(f"DistributedStrategy.{name} is not applied: {why}", workers)
    return chosen.without(lacking)


def go_together(one: str, other: str) -> bool:
    """Whether two switches of ORDER may apply to one job."""
    return other in _GOES_WITH.get(one, ()) or one in _GOES_WITH.get(other, ())


def _longest(able: Sequence[str]) -> tuple[str, ...]:
    for length in range(len(able), 0, -1):
        for some in itertools.combinations(able, length):
            if all(go_together(*pair) for pair in itertools.combinations(some, 2)):
                return some
    return ()


def _lack(name: str, chosen: Any, optimizer: Optimizer, workers: int, has_servers: bool) -> str | None:
    """What a switch needs and does not have, as the end of a sentence; None: it may apply."""
    if name in BETWEEN_WORKERS and has_servers:
        return "it is for training without servers"
    if name in BETWEEN_WORKERS and workers == 1:
        return "there is one worker"
    kinds = _OPTIMIZERS.get(name)
    if kinds and not isinstance(optimizer, kinds):
        return f"it needs {' or '.join(one.__name__ for one in kinds)}, the optimizer is {type(optimizer).__name__}"
    if name == "gradient_merge" and chosen.gradient_merge_configs["k_steps"] <= 1:
        return f"it needs k_steps from 2 up, got {chosen.gradient_merge_configs['k_steps']}"
    return None


def _say(text: str, workers: int) -> None:
    """One worker has nobody to send things to: that is no reason to worry."""
    if workers == 1:
        notices.log().info(text)
    else:
        notices.once(text, text)
