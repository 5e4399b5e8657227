"""A job, as one of its processes sees it: what servers keep for the workers, and what workers do together.

What is declared (``parameter_server``, ``table``) is collected until the first use; then the workers compare it, and
worker 0 tells the servers (``training``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet_mpi.door import gate
from fleet_mpi.door.declaring import Declaring
from fleet_mpi.door.sums import Sums
from fleet_mpi.door.training import Training
from fleet_mpi.errors import UsageError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from types import TracebackType

    import numpy as np

    from fleet_mpi.collective.group import Group
    from fleet_mpi.door.parameters import ParameterServer
    from fleet_mpi.door.peers import Peers
    from fleet_mpi.door.rates import Lr
    from fleet_mpi.door.tables import Table


class Job:
    """A worker's part in a job; made by ``fleet_mpi.join``. A context manager: it leaves when the block ends.

    Attributes:
        role: "worker" or "server".
        worker: the number of this worker; of a server None.
        workers, servers: how many there are.
    """

    role = "worker"

    def __init__(self, peers: Peers) -> None:
        self._peers, self._declaring = peers, Declaring(self)
        self.worker: int | None = peers.worker
        self.workers, self.servers = peers.workers, peers.servers
        self.has_left = self._is_used = False
        self._training: Training | None = None
        self._sums: Sums | None = None

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        # After an exception nothing is sent any more: it ends the job, or who catches it leaves later.
        if error is None:
            self.leave()

    # ------------------------------------------------------------------ what servers keep

    def parameter_server(self, params: Any, rule: str = "sgd", lr: float | Lr | Mapping[str, Lr] = 0.01, *,
                         mode: str = "sync", rates: Mapping[str, float | str] | None = None,
                         each: Mapping[str, Mapping[str, Any]] | None = None, split: str = "round_robin",
                         in_place: bool = False, clip_value: float | tuple[float, float] | None = None,
                         clip_norm: float | None = None, clip_global_norm: float | None = None, l1: float = 0.0,
                         l2: float = 0.0, mode_options: Mapping[str, Any] | None = None,
                         **settings: Any) -> ParameterServer:
        """Let the servers keep these parameters, and update them by a rule.

        Every worker calls it once, with the same arguments; worker 0's values are the first ones for all. Returns at
        once: nothing is sent before the first use.

        Args:
            params: {name: array} or a list of arrays (called "0", "1", ...), float32 or float64. The dictionary or list
                is given other arrays, views of the flat array that answers go to.
            rule: a name of ``update_rules.RULES``; its hyper-parameters are further keywords.
            lr: a number, or a function of the step (0 for the first); or {group: one of these}.
            mode: when parameters move, a name of ``modes.MODES``; its options are further keywords. Where rule and mode
                have a keyword in common, it is the rule's; ``mode_options={...}`` are the mode's always.
            rates: {name: factor} for some parameters, by which lr is multiplied; or {name: group} of lr.
            each: {name: {keyword: value}}: other settings of the rule, "rule", clipping or decay for some parameters.
            split: which server keeps a block: "round_robin", "hash_name", "balanced", or "whole": balanced, uncut.
            in_place: the caller's arrays stay, and are filled after each step, by a copy.
            clip_value, clip_norm, clip_global_norm: bounds of every element (a number, or (low, high)), of each
                parameter's norm, of the norm of all together. Gradients are averaged, clipped, then decayed.
            l1, l2: decay; with "ftrl" the rule's own.
            settings: of the rule and the mode.
        """
        self._require_declaring("parameter_server")
        steps = _said(clip_value=clip_value, clip_norm=clip_norm, clip_global_norm=clip_global_norm, l1=l1, l2=l2)
        return self._declaring.add_parameters(params, rule, lr, mode, dict(mode_options or {}), split, rates or {},
                                              each or {}, in_place, {**settings, **steps})

    def table(self, name: str, dim: int, height: int | None = None, rule: str = "adagrad", lr: float | Lr = 0.05, *,
              init: Any = 0.0, dtype: Any = "float32", clip_value: float | tuple[float, float] | None = None,
              clip_norm: float | None = None, l1: float = 0.0, l2: float = 0.0, admit: Any = "all",
              score: str | None = None, evict: tuple[str, int] | None = None, evict_every: int = 100,
              budget_bytes: int | None = None, when_full: str = "refuse", **settings: Any) -> Table:
        """Let the servers keep a table of ``height`` rows of ``dim`` numbers, or of a row for every int64 id.

        Every worker calls it, with the same arguments, in the same order as other declarations. Returns at once:
        nothing is sent before the first use. A table without height grows: servers store a row from the first push
        to it.

        Args:
            rule: a name of ``update_rules.RULES``; without height one that leaves rows alone which are not stored.
            lr: a number, or a function of the step.
            init: a number, an array (worker 0's counts), or what servers draw rows from: ("uniform", low, high) or
                ("normal", mean, std), by counter from the job's seed (FLEET_MPI_SEED), the same for any number of
                servers, with height and without. Without height, not an array.
            clip_value, clip_norm, l1, l2: as for parameters; decay concerns every row at every step. Without height
                clip_value only.
            admit: without height, when the row of an id is stored: "all": with its first push; ("seen", k): with its
                k-th; ("probability", p): with this probability at every step that has it.
            score: what is kept of each row: "last_seen" or "count" (of pushes); None: what ``evict`` needs.
            evict: which rows go, every ``evict_every`` updates: ("older_than", n): those that none of the last n had;
                ("fewer_than", n): that fewer than n pushes had since; ("at_most", n): the lowest scores beyond n rows.
            budget_bytes: the most that each server gives to the table; None: its share of the machine's memory.
            when_full: beyond that, "refuse" the step, or "evict" rows with the lowest scores.
            settings: of the rule.
        """
        self._require_declaring("table")
        steps = _said(clip_value=clip_value, clip_norm=clip_norm, l1=l1, l2=l2)
        rows_kept = {"admit": admit, "score": score, "evict": evict, "evict_every": evict_every,
                     "budget_bytes": budget_bytes, "when_full": when_full}
        return self._declaring.add_table(name, dim, height, rule, lr, init, dtype, {**settings, **steps}, rows_kept)

    def step(self) -> None:
        """End a step: one request and one reply per server, with all gradients, dense and of rows.

        ``ParameterServer.push_pull`` ends with it; a job that has tables only calls it itself. Every worker, once a
        step. Blocks as the mode says; in "sync" until all workers that are still in the job have come.
        """
        training = self._training
        if training is None or self.has_left:
            training = self._use("step")
        training.step()

    @property
    def steps(self) -> int:
        """How many steps this worker has ended, those of a run that was loaded included."""
        return 0 if self._training is None else self._training.steps

    # ------------------------------------------------------------------ saving

    def save(self, folder: str | os.PathLike[str], format: str | None = None) -> None:
        """Save all that is kept, with the states of rules, steps and rates: whole variables, complete or absent.

        Every worker calls it, after the same step where steps are in common; worker 0 writes, or the first of those
        that have not left. Not Collective: the others send what they have left to send and go on; ``barrier`` if they
        are to wait. Training goes on while files are written from copies of one moment.

        Args:
            folder: it is made; an older save of the same names in it is replaced at once or not at all.
            format: None: a file per variable, as the original writes it. The name of a file: all parameters and tables
                in it, states in one beside it. Or a format by name, such as "safetensors".
        """
        self._use("save").save(folder, format)

    def load(self, folder: str | os.PathLike[str], states: bool = True) -> None:
        """Let servers and workers have what was saved, by any number of servers, or none.

        Collective: every worker calls it, and blocks until worker 0 has read the files and handed their values to the
        servers. All is checked before anything is changed. Steps go on from those of the save; learning rates that are
        numbers are the save's.

        Args:
            states: False: parameters and tables only; states, steps and rates stay as they are.
        """
        self._use("load").load(folder, states)

    # ------------------------------------------------------------------ what workers do together

    def all_reduce(self, arrays: Any, op: str = "sum", how: str | None = None) -> Any:
        """Replace arrays by their sum over all workers, in place; returns what was given.

        Collective: every worker calls it, with arrays of the same shapes and types in the same order, also in a job
        with servers. Blocks until all have.

        Args:
            arrays: an array, a list or a dictionary of arrays.
            op: "sum" or "mean".
            how: "exact": in worker order, the same bits at every run; "fast": as the MPI library likes; None: as
                FLEET_MPI_ALLREDUCE says, else exact up to 8 workers.
        """
        self._summing("all_reduce").all_reduce(_to_fill(arrays, "all_reduce"), op, how)
        return arrays

    def broadcast(self, arrays: Any) -> Any:
        """Let arrays have worker 0's values, in place; returns what was given.

        Collective: every worker calls it, with arrays of the same shapes and types in the same order. Blocks until
        worker 0's values are here.
        """
        self._summing("broadcast").broadcast(_to_fill(arrays, "broadcast"))
        return arrays

    def barrier(self) -> None:
        """Collective: returns when every worker has come; a worker that has left never comes."""
        self._require_open("barrier")
        self._peers.barrier()

    def group(self) -> Group:
        """Collective, workers: what sums, broadcasts and gathers arrays of the workers; for what is built on the
        door."""
        self._require_open("group")
        return self._peers.group()

    # ------------------------------------------------------------------ the end

    def leave(self) -> None:
        """Send what is left, and say goodbye to the servers; the others go on without this worker.

        Called at the end of a ``with`` block, and at the end of the process. Idempotent. Blocks until the servers have
        taken what is left.
        """
        if self.has_left:
            return
        if self._declaring.is_any and not self._is_used and self.workers > 1:
            self._use("leave")   # the others' first use waits for all, also for one that has no data
        self.has_left = True
        if self._training is None:
            self._peers.leave()
        else:
            self._training.finish()

    def serve(self) -> None:
        """A server's: keep what the workers declare, until all have left."""
        raise UsageError("serve: this process is a worker; ask job.role")

    # ------------------------------------------------------------------ the first use

    def _use(self, what: str) -> Training:
        """What was declared, in use from the first call on. Collective then: all workers come to it."""
        self._require_open(what)
        if self._training is None:
            if not self._declaring.is_any:
                raise UsageError(f"{what}: nothing was declared: call job.parameter_server or job.table first")
            self._is_used = True
            self._training = Training(self._peers, self._declaring, lambda: self._summing(what))
        return self._training

    def _summing(self, what: str) -> Sums:
        self._require_open(what)
        if self._sums is None:
            self._sums = Sums(self._peers.group())
        return self._sums

    def _require_open(self, what: str) -> None:
        if self.has_left:
            raise UsageError(f"{what}: this worker has left the job (job.leave, or the end of its with block): call it "
                             f"before that")

    def _require_declaring(self, what: str) -> None:
        self._require_open(what)
        if self._training is not None:
            raise UsageError(f"{what}: the servers have been told what to keep when it was first used (push_pull, "
                             f"pull, step, save or load): declare everything before that")


class ServerJob(Job):
    """A server's part in a job: ``serve`` is all that it can do. Made by ``fleet_mpi.join(serve=False)``."""

    role = "server"

    def __init__(self, peers: Peers, number: int, serve: Callable[[bool], None]) -> None:
        super().__init__(peers)
        self.worker, self.server = None, number
        self._serve = serve

    def serve(self) -> None:
        """Keep what the workers declare, until all have left. Blocks; called once."""
        self._require_open("serve")
        self.has_left = True
        self._serve(True)

    def leave(self) -> None:
        """Wait until the workers have left; one that wants something kept is an error. Idempotent."""
        if not self.has_left:
            self.has_left = True
            self._serve(False)

    def _require_open(self, what: str) -> None:
        if what != "serve":
            raise UsageError(f"{what}: this process is server {self.server}, and serves: ask job.role, and call "
                             f"job.serve()")
        super()._require_open(what)


def _said(l1: float, l2: float, **clips: Any) -> dict[str, Any]:
    """Of clipping and decay, what was said."""
    decays = {name: value for name, value in (("l1", l1), ("l2", l2)) if value != 0}
    return {**decays, **{name: value for name, value in clips.items() if value is not None}}


def _to_fill(arrays: Any, what: str) -> list[np.ndarray]:
    """What was given as arrays that may be written to."""
    if isinstance(arrays, (dict, list, tuple)):
        return [gate.to_fill(one, f"{what}: {name!r}") for name, one in gate.named(arrays, what).items()]
    return [gate.to_fill(arrays, what)]
