"""Parameters that servers keep and update, as one worker has them: whole arrays that are views of one flat array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.door import gate
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server.flat import FlatLayout
from fleet_mpi.placement import Variable

if TYPE_CHECKING:
    from fleet_mpi.door.job import Job
    from fleet_mpi.door.rates import LearningRate

WHAT = "parameter_server"


class ParameterServer:
    """The dense parameters of a job. Made by ``Job.parameter_server``.

    Attributes:
        params: {name: array}, views of the flat array that the servers' answers go to.
        grads: {name: array}, views of the flat array that is sent: compute in them, and nothing is copied.
    """

    def __init__(self, job: Job, params: Any, rates: dict[str, LearningRate], in_place: bool) -> None:
        self._job, self._rates = job, rates
        given = {name: gate.floats(one, f"{WHAT}: {name!r}") for name, one in gate.named(params, WHAT).items()}
        if not given:
            raise UsageError(f"{WHAT}: no parameters were given")
        self.variables = [Variable(name, one.shape, str(one.dtype)) for name, one in given.items()]
        layout = FlatLayout(self.variables)
        self.flat = layout.new_array(), layout.new_array()
        self.params, self.grads = (layout.views(one) for one in self.flat)
        for name, one in given.items():
            self.params[name][...] = one
        self._callers = [(gate.to_fill(one, f"{WHAT}: {name!r}"), self.params[name])
                         for name, one in given.items()] if in_place else []
        self.fills = in_place
        if not in_place:
            _hand_over(params, self.params)

    @property
    def lr(self) -> Any:
        """The learning rate: a number, a function of the step, or {group: one of these}. May be set at any time."""
        if "" in self._rates:
            return self._rates[""].value
        return {group: rate.value for group, rate in self._rates.items()}

    @lr.setter
    def lr(self, value: Any) -> None:
        if "" in self._rates:
            self._rates[""].set(value)
            return
        if not isinstance(value, Mapping):
            raise UsageError(f"{WHAT}: lr: this job has rates by groups, {', '.join(self._rates)}: give some of them "
                             f"as {{group: rate}}")
        gate.refuse_unknown(value, self._rates, f"{WHAT}: lr")
        for group, one in value.items():
            self._rates[group].set(one)

    @property
    def steps(self) -> int:
        """How many steps this worker has ended, those of a run that was loaded included."""
        return self._job.steps

    def push_pull(self, grads: Any = None) -> None:
        """End a step: send gradients, and let ``params`` be what the servers answer.

        Every worker calls it once a step. Blocks as the mode says: in "sync" until all workers that are still in the
        job have sent theirs. Row gradients that were pushed to tables since the last step go with it, in the same
        messages: one request and one reply per server.

        Args:
            grads: {name: array} or a list, of the parameters' shapes and types; they are copied, and None counts as
                zeros. Without it, what was computed in ``self.grads`` is sent.
        """
        if grads is not None:
            self._take(grads)
        self._job.step()

    def pull(self) -> None:
        """Let ``params`` be the servers' as they are now. Blocks for the answer; waits for no other worker."""
        self._job._use("pull").pull()

    def fetch(self, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """{name: whole array} of all that the job keeps, of one moment: parameters, tables, the states of their rules.

        States are called ``NAME_STATE_0``, as in files. Any worker, at any time between steps; blocks for the servers.

        Args:
            names: of what is fetched, in this order; None: everything.
        """
        return dict(self._job._use("fetch").fetched(names))

    def store(self, values: Mapping[str, Any]) -> None:
        """Let servers and workers have whole arrays, by the names that ``fetch`` has; others stay as they are.

        Collective: every worker calls it; worker 0's values count. Blocks until the servers have them.
        """
        training = self._job._use("store")
        kept = training.values()
        gate.refuse_unknown(values, kept.names, "store")
        found = {name: kept.checked(name, one, f"store: {name!r}") for name, one in values.items()}
        training.store(kept, lambda: found.items(), "store", sorted(found))

    def _take(self, grads: Any) -> None:
        """Copy gradients to where they are sent from."""
        given = gate.named(grads, f"{WHAT}: gradients")
        gate.refuse_unknown(given, self.grads, f"{WHAT}: gradients")
        for name, place in self.grads.items():
            if name not in given:
                raise UsageError(f"{WHAT}: there is no gradient for {name!r}: give one for every parameter, None for "
                                 f"zeros")
            place[...] = 0 if given[name] is None else gate.like(
                given[name], place.shape, place.dtype, f"{WHAT}: gradient of {name!r}")

    def _fill(self) -> None:
        """After parameters have come: let the caller's own arrays have them."""
        for mine, view in self._callers:
            np.copyto(mine, view)


def _hand_over(params: Any, views: dict[str, np.ndarray]) -> None:
    """Let the caller's dictionary or list have the views."""
    if isinstance(params, MutableMapping):
        params.update(views)
    elif isinstance(params, MutableSequence):
        params[:] = list(views.values())
    else:
        raise UsageError(f"{WHAT}: a {type(params).__name__} cannot be given other arrays: give a dict or a list, or "
                         f"in_place=True, so that the arrays themselves are filled")
