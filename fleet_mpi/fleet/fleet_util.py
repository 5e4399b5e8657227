"""FleetUtil of 1.x: metrics of a whole job over MPI, words of its first worker, and models by day and pass.

What belongs to HDFS and to pslib's own model files is refused with a sentence.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import notices
from fleet_mpi.checkpoint.loading import load_persistables
from fleet_mpi.errors import UnknownName, UsageError, nearest, not_built
from fleet_mpi.fleet import metrics, saved_programs
from fleet_mpi.fleet.click_metrics import ClickMetrics, click_metrics
from fleet_mpi.fleet.facade import collective_fleet, transpiler_fleet
from fleet_mpi.fleet.pslib import pslib_fleet
from fleet_mpi.fleet.together import Util
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.runtime import sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fleet_mpi.program.engine.scope import Scope
    from fleet_mpi.program.graph.program import Program

FLEETS = {"pslib": pslib_fleet, "transpiler": transpiler_fleet, "collective": collective_fleet}
_FILES = "HDFS and pslib's own model files are not built; take save_model, load_model or fleet.save_persistables"
_NOT_BUILT = dict.fromkeys(
    ("write_model_donefile", "write_xbox_donefile", "write_cache_donefile", "save_batch_model", "save_delta_model",
     "save_xbox_base_model", "save_cache_model", "save_cache_base_model", "save_paddle_inference_model",
     "save_paddle_params", "get_last_save_xbox_base", "get_last_save_xbox", "get_last_save_model",
     "load_fleet_model_one_table"), _FILES)


class FleetUtil:
    """Beside one of the fleets of 1.x: "pslib", "transpiler" (or "collective")."""

    def __init__(self, mode: str = "pslib") -> None:
        if mode not in FLEETS:
            raise UsageError(f"FleetUtil: expected mode 'pslib' or 'transpiler', got {mode!r}")
        self._fleet = FLEETS[mode]
        self._util = Util(self._fleet)

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_BUILT:
            return not_built(f"FleetUtil.{name}", _NOT_BUILT[name])
        raise UnknownName(f"FleetUtil has no {name!r}; {nearest(name, dir(FleetUtil))}")

    # ------------------------------------------------------------------ words

    def rank0_print(self, s: object) -> None:
        """Log a text on worker 0."""
        self._say(notices.log().info, s)

    rank0_info = rank0_print

    def rank0_error(self, s: object) -> None:
        """Log a text on worker 0, as an error."""
        self._say(notices.log().error, s)

    def _say(self, log: Callable[..., None], text: object) -> None:
        if self._fleet.is_first_worker():
            log("%s", text)

    # ------------------------------------------------------------------ metrics

    def set_zero(self, var_name: str, scope: Scope | None = None, place: Any = None, param_type: str = "int64") -> None:
        """Begin to count anew: zeros for a variable of the scope, such as a histogram of ``layers.auc``."""
        tensor = self._tensor(var_name, scope)
        tensor.set(np.zeros(tensor.shape(), param_type), place)

    def get_global_auc(self, scope: Scope | None = None, stat_pos: str = "_generated_var_2",
                       stat_neg: str = "_generated_var_3") -> float:
        """Collective, workers: the area under the ROC curve over all workers' histograms; 0.5 without both classes."""
        positives, negatives = (self._tensor(one, scope).numpy() for one in (stat_pos, stat_neg))
        return metrics.auc(positives, negatives, util=self._util)

    def print_global_auc(self, scope: Scope | None = None, stat_pos: str = "_generated_var_2",
                         stat_neg: str = "_generated_var_3", print_prefix: str = "") -> float:
        """Collective, workers: log the area of ``get_global_auc`` on worker 0; returns it."""
        found = self.get_global_auc(scope, stat_pos, stat_neg)
        self.rank0_print(f"{print_prefix} global auc = {found}")
        return found

    def get_global_metrics(self, scope: Scope | None = None, stat_pos_name: str = "_generated_var_2",
                           stat_neg_name: str = "_generated_var_3", sqrerr_name: str = "sqrerr",
                           abserr_name: str = "abserr", prob_name: str = "prob", q_name: str = "q",
                           pos_ins_num_name: str = "pos", total_ins_num_name: str = "total") -> Any:
        """Collective, workers: [auc, bucket error, mae, rmse, actual and predicted click rate, copc, mean q, samples].

        The sums are those of all workers' scopes, as ``contrib.layers.ctr_metric_bundle`` keeps them.
        """
        positives, negatives = (self._sum(name, scope) for name in (stat_pos_name, stat_neg_name))
        sums = [self._sum(name, scope).reshape(-1)[0] for name in (
            sqrerr_name, abserr_name, prob_name, q_name, pos_ins_num_name, total_ins_num_name)]
        return list(click_metrics(metrics.auc(positives, negatives, util=_Summed()), positives, negatives, *sums))

    def print_global_metrics(self, scope: Scope | None = None, stat_pos_name: str = "_generated_var_2",
                             stat_neg_name: str = "_generated_var_3", sqrerr_name: str = "sqrerr",
                             abserr_name: str = "abserr", prob_name: str = "prob", q_name: str = "q",
                             pos_ins_num_name: str = "pos", total_ins_num_name: str = "total",
                             print_prefix: str = "") -> Any:
        """Collective, workers: log the list of ``get_global_metrics`` on worker 0; returns it."""
        found = self.get_global_metrics(scope, stat_pos_name, stat_neg_name, sqrerr_name, abserr_name, prob_name,
                                        q_name,
                                        pos_ins_num_name, total_ins_num_name)
        words = (f"{name}={value}" for name, value in zip(ClickMetrics._fields, found))
        self.rank0_print(f"{print_prefix} global {' '.join(words)}")
        return found

    def _sum(self, name: Any, scope: Scope | None) -> np.ndarray:
        return np.asarray(self._util.all_reduce(self._tensor(name, scope).numpy(), "sum"))

    def _tensor(self, name: Any, scope: Scope | None) -> Any:
        holder = (scope or global_scope()).find_var(getattr(name, "name", name))
        if holder is None:
            raise UsageError(f"FleetUtil: the scope has no variable {name!r}; run the program first, and give the "
                             f"names of its metric variables")
        return holder.get_tensor()

    # ------------------------------------------------------------------ models

    def save_fleet_model(self, path: str, mode: int = 0) -> None:
        """Collective, workers: save what the fleet has trained."""
        self._fleet.save_persistables(None, path)

    def load_fleet_model(self, path: str, mode: int = 0) -> None:
        """Collective, workers: load it again."""
        load_persistables(None, path, self._fleet.main_program)

    def save_model(self, output_path: str, day: str | int, pass_id: str | int) -> None:
        """Collective, workers: save into ``output_path/day/pass``."""
        self.save_fleet_model(model_folder(output_path, day, pass_id))

    def load_model(self, output_path: str, day: str | int, pass_id: str | int) -> None:
        """Collective, workers: load from ``output_path/day/pass``."""
        self.load_fleet_model(model_folder(output_path, day, pass_id))

    def pull_all_dense_params(self, scope: Scope | None = None, program: Program | None = None) -> None:
        """Take the servers' parameters as they are now; a worker without servers has them."""
        session = sessions.session_of(scope or global_scope())
        if session is not None and not session.is_over:
            session.pull()

    def get_online_pass_interval(self, days: str, hours: str, split_interval: int, split_per_pass: int,
                                 is_data_hourly_placed: bool) -> list[list[str]]:
        """[[names of splits] of each pass] of a day: splits of so many minutes, so many to a pass, within the hours."""
        every, together = int(split_interval), int(split_per_pass)
        first, *_, last = [int(hour) for hour in expanded(hours)] * 2
        times = [divmod(minute, 60) for minute in range(0, 24 * 60 // every * every, every)]
        names = [f"{hour:02d}" if is_data_hourly_placed else f"{hour:02d}{minute:02d}" for hour, minute in times
                 if first <= hour <= last]
        return [names[start:start + together] for start in range(0, len(names) - together + 1, together)]

    # ------------------------------------------------------------------ saved programs

    program_type_trans = staticmethod(saved_programs.program_type_trans)
    check_two_programs = staticmethod(saved_programs.check_two_programs)
    check_vars_and_dump = staticmethod(saved_programs.check_vars_and_dump)
    parse_program_proto = staticmethod(saved_programs.parse_program_proto)
    draw_from_program = staticmethod(saved_programs.draw_from_program)
    draw_from_program_file = staticmethod(saved_programs.draw_from_program_file)


class _Summed:
    """A ``util`` for arrays that are sums over the workers already."""

    def all_reduce(self, input: np.ndarray, mode: str = "sum") -> np.ndarray:
        """The array itself."""
        return input


def model_folder(output_path: str, day: str | int, pass_id: str | int) -> str:
    """``output_path/day/pass``."""
    return os.path.join(output_path, str(day), str(pass_id))


def expanded(text: str | Sequence[str]) -> list[str | int]:
    """The words of a text such as ``"0 1 2"`` or ``"{0..23}"``, as a shell would have them."""
    words = text if isinstance(text, (list, tuple)) else str(text).split()
    ranges = (re.fullmatch(r"\{(\d+)\.\.(\d+)\}", str(word)) for word in words)
    return [one for word, found in zip(words, ranges)
            for one in (range(int(found[1]), int(found[2]) + 1) if found else [word])]


def check_all_trainers_ready(ready_path: str, epoch: int) -> None:
    """Collective, workers: wait for all of them; no files are needed for that over MPI."""
    joined = [fleet for fleet in FLEETS.values() if fleet._role_maker is not None]
    if not joined:
        raise UsageError("check_all_trainers_ready: call fleet.init() first: the role of this process is not known yet")
    joined[-1].barrier_worker()
